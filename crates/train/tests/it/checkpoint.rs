//! Contract: a Hugging Face folder, sharded or not, in any float dtype, gives the decoder that was
//! saved; a missing, unexpected or wrongly shaped tensor is an error that names tensor and file;
//! gradients are saved under the checkpoint's own names and shapes.

use crate::fixtures::device::cpu;
use crate::fixtures::{
    causal,
    near::{self, assert_all_near},
    read_gradients,
};
use burn::tensor::DType;
use burn::tensor::Device;
use burn_store::{ModuleSnapshot, SafetensorsStore};
use pleach_layout::Sequence;
use pleach_train::{
    TrainError,
    decoder::{Decoder, DecoderConfig, Family, load_decoder, read_config},
    evaluation::{evaluate, log_probabilities},
};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Name, dtype, shape and bytes of a tensor in a file.
type Stored = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn device() -> Device {
    cpu()
}

fn decoder(family: Family) -> Decoder {
    Decoder::seeded(DecoderConfig::small(family, 19, 2), 3, DType::F32, &device()).unwrap()
}

fn config_json(family: Family) -> String {
    let tied = family == Family::Qwen3;
    format!(
        r#"{{"model_type": "{}", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 19, "rms_norm_eps": 1e-6, "tie_word_embeddings": {tied}}}"#,
        family.model_type()
    )
}

/// A folder with a decoder's weights as burn-store writes them: the module's own paths and shapes.
fn folder(family: Family) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.json"), config_json(family)).unwrap();
    let mut store = SafetensorsStore::from_file(single(&folder));
    decoder(family).save_into(&mut store).unwrap();
    folder
}

fn single(folder: &TempDir) -> PathBuf {
    folder.path().join("model.safetensors")
}

fn read(path: &Path) -> Stored {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let entry = |(name, view): (String, TensorView<'_>)| {
        (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
    };
    file.tensors().into_iter().map(entry).collect()
}

fn write(path: &Path, stored: &Stored) {
    let view = |(name, (dtype, shape, bytes)): (&String, &(Dtype, Vec<usize>, Vec<u8>))| {
        (
            name.clone(),
            TensorView::new(*dtype, shape.clone(), bytes).unwrap().data().to_vec(),
            *dtype,
            shape.clone(),
        )
    };
    let owned: Vec<_> = stored.iter().map(view).collect();
    let views = owned.iter().map(|(name, bytes, dtype, shape)| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize_to_file(views, None, path).unwrap();
}

fn edit(folder: &TempDir, change: impl Fn(&mut Stored)) {
    let mut stored = read(&single(folder));
    change(&mut stored);
    write(&single(folder), &stored);
}

fn load(folder: &TempDir) -> Result<Decoder, TrainError> {
    load_decoder(folder.path(), DType::F64, &device())
}

fn sequence() -> Sequence {
    causal(&[1, 5, 9, 13, 2, 7])
}

fn logp(model: &Decoder) -> Vec<f64> {
    let terms = log_probabilities(model, &[sequence()], &mut |_| {}).unwrap();
    terms.into_iter().map(|term| term.logp).collect()
}

/// Cuts the single file into two shards and an index.
fn shard(folder: &TempDir) {
    let stored = read(&single(folder));
    let mut parts = [Stored::new(), Stored::new()];
    let mut map = BTreeMap::new();
    for (index, (name, tensor)) in stored.into_iter().enumerate() {
        map.insert(name.clone(), format!("part-{}.safetensors", index % 2));
        parts[index % 2].insert(name, tensor);
    }
    for (index, part) in parts.iter().enumerate() {
        write(&folder.path().join(format!("part-{index}.safetensors")), part);
    }
    let index = serde_json::json!({"metadata": {"total_size": 1}, "weight_map": map});
    fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    fs::remove_file(single(folder)).unwrap();
}

#[test]
fn every_family_comes_back_as_it_was_saved() {
    for family in [Family::Llama, Family::Qwen2, Family::Qwen3] {
        let folder = folder(family);
        assert_eq!(read_config(folder.path()).unwrap(), DecoderConfig::small(family, 19, 2));
        let (found, expected) = (logp(&load(&folder).unwrap()), logp(&decoder(family)));
        assert_all_near(&found, &expected, near::LOGP_SINGLE, format_args!("{family:?}"));
    }
}

#[test]
fn shards_give_what_the_single_file_gives() {
    let folder = folder(Family::Qwen2);
    let whole = logp(&load(&folder).unwrap());
    shard(&folder);
    assert_eq!(logp(&load(&folder).unwrap()), whole);
}

#[test]
fn shards_that_disagree_with_the_index_are_refused() {
    let folder = folder(Family::Llama);
    shard(&folder);
    let part = folder.path().join("part-1.safetensors");
    let stored = read(&part);
    let name = stored.keys().next().unwrap().clone();
    let mut fewer = stored.clone();
    fewer.remove(&name);
    write(&part, &fewer);
    assert_eq!(load(&folder).unwrap_err(), TrainError::MissingTensor { path: part.clone(), name });
    let mut more = stored.clone();
    more.insert("model.extra".to_owned(), stored.values().next().unwrap().clone());
    write(&part, &more);
    let unexpected =
        TrainError::UnexpectedTensor { path: part.clone(), name: "model.extra".to_owned() };
    assert_eq!(load(&folder).unwrap_err(), unexpected);
    fs::remove_file(&part).unwrap();
    assert!(load(&folder).unwrap_err().to_string().contains("part-1.safetensors"));
}

#[test]
fn bfloat16_and_float16_weights_are_cast_to_the_asked_dtype() {
    for (dtype, tolerance) in [(Dtype::BF16, near::BFLOAT16), (Dtype::F16, near::FLOAT16)] {
        let folder = folder(Family::Llama);
        edit(&folder, |stored| {
            for (kind, _, bytes) in stored.values_mut() {
                let values =
                    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                let halves = values.flat_map(|value| match dtype {
                    Dtype::BF16 => ((value.to_bits() >> 16) as u16).to_le_bytes(),
                    _ => half_bits(value).to_le_bytes(),
                });
                *bytes = halves.collect();
                *kind = dtype;
            }
        });
        let found = logp(&load(&folder).unwrap());
        let whole = logp(&decoder(Family::Llama));
        assert_all_near(&found, &whole, tolerance, format_args!("{dtype:?}"));
        assert_ne!(found, whole);
    }
}

/// Truncates to float16; the weights here are normal numbers in its range, or tiny.
fn half_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    match exponent {
        1..=30 => {
            ((bits >> 16) & 0x8000) as u16 | (exponent as u16) << 10 | ((bits >> 13) & 0x3ff) as u16
        }
        _ => 0,
    }
}

#[test]
fn a_missing_tensor_is_named_with_its_file() {
    let folder = folder(Family::Qwen3);
    let name = "model.layers.1.self_attn.k_norm.weight";
    edit(&folder, |stored| {
        stored.remove(name).unwrap();
    });
    let missing = TrainError::MissingTensor { path: single(&folder), name: name.to_owned() };
    assert_eq!(load(&folder).unwrap_err(), missing);
}

#[test]
fn an_unexpected_tensor_is_named_with_its_file() {
    let folder = folder(Family::Llama);
    edit(&folder, |stored| {
        let bias = stored["model.norm.weight"].clone();
        stored.insert("model.layers.0.self_attn.q_proj.bias".to_owned(), bias);
    });
    let found = load(&folder).unwrap_err();
    let name = "model.layers.0.self_attn.q_proj.bias".to_owned();
    assert_eq!(found, TrainError::UnexpectedTensor { path: single(&folder), name });
}

#[test]
fn a_tensor_of_another_shape_is_named_with_both_shapes() {
    let folder = folder(Family::Llama);
    edit(&folder, |stored| {
        stored.get_mut("model.layers.0.mlp.down_proj.weight").unwrap().1.reverse();
    });
    let found = load(&folder).unwrap_err();
    assert_eq!(
        found,
        TrainError::TensorShape {
            path: single(&folder),
            name: "model.layers.0.mlp.down_proj.weight".to_owned(),
            expected: vec![32, 48],
            found: vec![48, 32],
        }
    );
}

#[test]
fn a_tied_checkpoint_may_repeat_its_embedding_and_nothing_else() {
    let folder = folder(Family::Qwen3);
    let tied = logp(&load(&folder).unwrap());
    edit(&folder, |stored| {
        let embedding = stored["model.embed_tokens.weight"].clone();
        stored.insert("lm_head.weight".to_owned(), embedding);
    });
    assert_eq!(logp(&load(&folder).unwrap()), tied);
    edit(&folder, |stored| stored.get_mut("lm_head.weight").unwrap().2[0] ^= 1);
    let found = load(&folder).unwrap_err();
    let name = "lm_head.weight".to_owned();
    assert_eq!(found, TrainError::TiedHead { path: single(&folder), name });
    assert!(found.to_string().contains("tie_word_embeddings"), "{found}");
}

#[test]
fn an_index_beside_a_single_file_that_it_does_not_name_is_refused_with_both_names() {
    let folder = folder(Family::Llama);
    let stored = read(&single(&folder));
    shard(&folder);
    assert!(load(&folder).is_ok());
    write(&single(&folder), &stored);
    let found = load(&folder).unwrap_err().to_string();
    assert!(found.contains("model.safetensors.index.json names other files than"), "{found}");
    assert!(found.contains("model.safetensors, which lies beside it"), "{found}");
}

#[test]
fn weights_that_are_no_numbers_are_named_before_anything_is_computed() {
    for value in [f32::NAN, f32::INFINITY] {
        let folder = folder(Family::Llama);
        edit(&folder, |stored| {
            let norm = stored.get_mut("model.norm.weight").unwrap();
            norm.2[4..8].copy_from_slice(&value.to_le_bytes());
        });
        let found = load(&folder).unwrap_err();
        assert!(
            matches!(&found, TrainError::TensorValue { name, .. } if name == "model.norm.weight"),
            "{found}"
        );
    }
}

#[test]
fn weights_in_eight_bits_are_named_with_their_dtype() {
    let folder = folder(Family::Llama);
    edit(&folder, |stored| {
        let norm = stored.get_mut("model.norm.weight").unwrap();
        norm.0 = Dtype::F8_E4M3;
        norm.2.truncate(norm.1.iter().product());
    });
    let found = load(&folder).unwrap_err().to_string();
    assert!(found.contains("tensor `model.norm.weight` is F8_E4M3"), "{found}");
    assert!(found.contains("dequantise"), "{found}");
}

#[test]
fn keys_of_generation_leave_the_function_alone() {
    let folder = folder(Family::Llama);
    let plain = logp(&load(&folder).unwrap());
    let config = config_json(Family::Llama).replacen(
        '{',
        r#"{"temperature": 0.6, "top_p": 0.9, "do_sample": true, "#,
        1,
    );
    fs::write(folder.path().join("config.json"), config).unwrap();
    assert_eq!(logp(&load(&folder).unwrap()), plain);
}

#[test]
fn stored_rotary_frequencies_are_passed_over() {
    let folder = folder(Family::Llama);
    edit(&folder, |stored| {
        let table = (Dtype::F32, vec![4], vec![0; 16]);
        stored.insert("model.layers.0.self_attn.rotary_emb.inv_freq".to_owned(), table);
    });
    assert!(load(&folder).is_ok());
}

#[test]
fn integer_weights_and_damaged_files_are_refused() {
    let folder = folder(Family::Llama);
    edit(&folder, |stored| stored.get_mut("model.norm.weight").unwrap().0 = Dtype::I32);
    let found = load(&folder).unwrap_err().to_string();
    assert!(
        found.contains("`model.norm.weight`") && found.contains("only float weights"),
        "{found}"
    );
    let bytes = fs::read(single(&folder)).unwrap();
    fs::write(single(&folder), &bytes[..bytes.len() / 2]).unwrap();
    let found = load(&folder).unwrap_err().to_string();
    assert!(found.contains("model.safetensors: "), "{found}");
    fs::remove_file(single(&folder)).unwrap();
    let found = load(&folder).unwrap_err().to_string();
    assert!(found.contains("a checkpoint folder needs model.safetensors"), "{found}");
}

#[test]
fn saved_gradients_read_back_in_their_dtype() {
    let model = load(&folder(Family::Qwen2)).unwrap();
    let gradients = evaluate(&model, &[sequence()], &mut |_| {}).unwrap().gradients;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gradients.safetensors");
    gradients.save(&path, DType::F64).unwrap();
    assert_eq!(read_gradients(&path), gradients);
    gradients.save(&path, DType::F32).unwrap();
    assert!(read(&path).values().all(|(dtype, _, _)| *dtype == Dtype::F32));
    let found = gradients.save(&folder.path().join("no/such/folder"), DType::F64).unwrap_err();
    assert!(found.to_string().contains("choose a path that can be written"), "{found}");
}
