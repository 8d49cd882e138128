use crate::{
    decoder::DecoderConfig,
    decoder::{Decoder, WeightSource},
    error::TrainError,
};
use burn::tensor::{DType, Device, TensorData};
use burn_store::{ModuleStore, SafetensorsStore, bridge, burn_pack};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::{Path, PathBuf},
};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The architecture of a Hugging Face folder, from its `config.json`.
///
/// # Errors
/// As [`DecoderConfig::from_file`].
pub fn read_config(folder: &Path) -> Result<DecoderConfig, TrainError> {
    DecoderConfig::from_file(&folder.join("config.json"))
}

/// The decoder of a Hugging Face folder, its weights cast to one dtype.
///
/// Reads `config.json` and `model.safetensors`, or the shards that `model.safetensors.index.json`
/// names. Every parameter must be there in its shape and finite, and nothing else may be.
///
/// # Errors
/// A dtype other than float32 and float64; files that cannot be read; configuration keys that are not supported; missing, unexpected or
/// wrongly shaped tensors.
pub fn load_decoder(folder: &Path, dtype: DType, device: &Device) -> Result<Decoder, TrainError> {
    let config = read_config(folder)?;
    let tied = config.tie_word_embeddings;
    let mut source = Checkpoint::open(folder)?;
    if tied {
        source.drop_tied_head()?;
    }
    let decoder = Decoder::build(config, &mut source, dtype, device)?;
    source.finish()?;
    Ok(decoder)
}

/// The tensors of a folder by name, read from their files when asked for.
struct Checkpoint {
    /// The file that is named when a tensor is missing.
    root: PathBuf,
    tensors: BTreeMap<String, (PathBuf, burn_pack::Tensor)>,
}

impl Checkpoint {
    fn open(folder: &Path) -> Result<Self, TrainError> {
        let (index, root) = (folder.join(INDEX), folder.join(SINGLE));
        if index.exists() {
            return Self::open_shards(folder, index, &root);
        }
        let mut tensors = BTreeMap::new();
        for (name, tensor) in read_file(&root)? {
            tensors.insert(name, (root.clone(), tensor));
        }
        Ok(Self { root, tensors })
    }

    fn open_shards(folder: &Path, root: PathBuf, single: &Path) -> Result<Self, TrainError> {
        let placed = read_index(&root)?;
        let files: BTreeSet<&String> = placed.values().collect();
        // Which of the two is the checkpoint cannot be told, and other programs read the single one.
        if single.exists() && !files.contains(&SINGLE.to_owned()) {
            return Err(TrainError::TwoCheckpoints { index: root, single: single.to_owned() });
        }
        let mut tensors = BTreeMap::new();
        for file in files {
            let path = folder.join(file);
            for (name, tensor) in read_file(&path)? {
                if placed.get(&name) != Some(file) {
                    return Err(TrainError::UnexpectedTensor { path, name });
                }
                tensors.insert(name, (path.clone(), tensor));
            }
        }
        match placed.into_iter().find(|(name, _)| !tensors.contains_key(name)) {
            Some((name, file)) => Err(TrainError::MissingTensor { path: folder.join(file), name }),
            None => Ok(Self { root, tensors }),
        }
    }

    /// Some checkpoints of tied models store the output matrix as well; it must then be the
    /// embedding.
    fn drop_tied_head(&mut self) -> Result<(), TrainError> {
        let Some((path, head)) = self.tensors.remove("lm_head.weight") else {
            return Ok(());
        };
        let embedding = match self.tensors.get("model.embed_tokens.weight") {
            Some((path, tensor)) => Some(read_tensor(path, tensor)?),
            None => None,
        };
        match embedding == Some(read_tensor(&path, &head)?) {
            true => Ok(()),
            false => Err(TrainError::TiedHead { path, name: head.name }),
        }
    }

    /// Refuses tensors that nobody asked for. Tables of rotary frequencies follow from the
    /// configuration.
    fn finish(self) -> Result<(), TrainError> {
        let left =
            self.tensors.into_iter().find(|(name, _)| !name.ends_with(".rotary_emb.inv_freq"));
        match left {
            None => Ok(()),
            Some((name, (path, _))) => Err(TrainError::UnexpectedTensor { path, name }),
        }
    }
}

impl WeightSource for Checkpoint {
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<TensorData, TrainError> {
        let Some((path, tensor)) = self.tensors.remove(name) else {
            return Err(TrainError::MissingTensor {
                path: self.root.clone(),
                name: name.to_owned(),
            });
        };
        if tensor.shape.as_slice() != shape {
            return Err(TrainError::TensorShape {
                path,
                name: name.to_owned(),
                expected: shape.to_vec(),
                found: tensor.shape.to_vec(),
            });
        }
        if !tensor.dtype.is_float() {
            return Err(unreadable(
                &path,
                &format!(
                    "tensor `{name}` is {:?}: only float weights are supported, dequantise it first",
                    tensor.dtype
                ),
            ));
        }
        let data = read_tensor(&path, &tensor)?;
        let wrong = data.iter::<f64>().find(|weight| !weight.is_finite());
        match wrong {
            None => Ok(data),
            Some(weight) => {
                Err(TrainError::TensorValue { path, name: name.to_owned(), value: weight })
            }
        }
    }
}

fn read_tensor(path: &Path, tensor: &burn_pack::Tensor) -> Result<TensorData, TrainError> {
    bridge::to_data(tensor)
        .map_err(|error| unreadable(path, &format!("tensor `{}`: {error}", tensor.name)))
}

/// Names a tensor in numbers that nothing here reads, before the file is taken for damaged.
fn check_dtypes(path: &Path) -> Result<(), TrainError> {
    const READ: [&str; 4] = ["F64", "F32", "F16", "BF16"];
    let Some(header) = read_header(path) else { return Ok(()) };
    let dtype = |value: &serde_json::Value| Some(value.get("dtype")?.as_str()?.to_owned());
    let tensors = header.iter().filter_map(|(name, value)| Some((name, dtype(value)?)));
    // Integers are named where a weight is asked for.
    match tensors.into_iter().find(|(_, dtype)| {
        !READ.contains(&dtype.as_str()) && !dtype.starts_with(['I', 'U']) && dtype != "BOOL"
    }) {
        None => Ok(()),
        Some((name, dtype)) => Err(unreadable(
            path,
            &format!(
                "tensor `{name}` is {dtype}: weights in {} are read; dequantise the checkpoint first",
                READ.join(", ")
            ),
        )),
    }
}

/// The header of a safetensors file; none where it is damaged.
fn read_header(path: &Path) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length).min(file.metadata().ok()?.len());
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).ok()?;
    serde_json::from_slice(&header).ok()
}

fn read_file(path: &Path) -> Result<BTreeMap<String, burn_pack::Tensor>, TrainError> {
    check_dtypes(path)?;
    let mut store = SafetensorsStore::from_file(path);
    match store.get_all_tensors() {
        Ok(tensors) => Ok(tensors.clone()),
        Err(error) => Err(unreadable(
            path,
            &format!("{error}: a checkpoint folder needs {SINGLE}, or {INDEX} and its shards"),
        )),
    }
}

fn read_index(path: &Path) -> Result<BTreeMap<String, String>, TrainError> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| unreadable(path, &error.to_string()))?;
    serde_json::from_str::<Index>(&text).map(|index| index.weight_map).map_err(|error| {
        unreadable(path, &format!("not a shard index: {error}: copy the file again"))
    })
}

fn unreadable(path: &Path, message: &str) -> TrainError {
    TrainError::File { path: path.to_owned(), message: message.to_owned() }
}
