use super::{DecoderConfig, Family, MOST_LAYERS, keys::Keys, rope};
use crate::error::TrainError;
use serde_json::json;
use std::path::Path;

/// Keys that say how a model is stored, generated from or trained, and leave its function alone.
const NEUTRAL: &[&str] = &[
    "_attn_implementation_autoset",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "length_penalty",
    "max_length",
    "max_position_embeddings",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "pruned_heads",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
];

pub(super) fn parse(text: &str, path: &Path) -> Result<DecoderConfig, TrainError> {
    let mut keys = Keys::parse(text, path)?;
    let family = parse_family(&mut keys)?;
    let hidden_size = keys.required_size("hidden_size")?;
    let heads = keys.required_size("num_attention_heads")?;
    let layers = keys.size_up_to("num_hidden_layers", MOST_LAYERS)?;
    let layers = layers.ok_or_else(|| keys.missing("num_hidden_layers"))?;
    let (rope_theta, rope_scaling) = rope::parse(&mut keys)?;
    let biases = Biases::parse(family, &mut keys)?;
    let config = DecoderConfig {
        family,
        vocab_size: keys.required_size("vocab_size")?,
        hidden_size,
        intermediate_size: keys.required_size("intermediate_size")?,
        layers,
        heads,
        kv_heads: match keys.size("num_key_value_heads")? {
            Some(kv_heads) => kv_heads,
            None if family == Family::Llama => heads,
            None => keys.required_size("num_key_value_heads")?,
        },
        head_dim: parse_head_dim(family, hidden_size, heads, &mut keys)?,
        rms_norm_eps: keys.number("rms_norm_eps")?.unwrap_or(1e-6),
        rope_theta,
        rope_scaling,
        tie_word_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(false),
        qkv_bias: biases.qkv,
        output_bias: biases.output,
        mlp_bias: biases.mlp,
        qk_norm: family == Family::Qwen3,
        windows: parse_windows(family, layers, &mut keys)?,
    };
    neutral(&mut keys)?;
    keys.finish()?;
    Ok(config)
}

/// Keys that leave the function alone whatever they say, and those that do so with one value only.
fn neutral(keys: &mut Keys<'_>) -> Result<(), TrainError> {
    keys.neutral(NEUTRAL);
    for key in ["attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop"] {
        keys.only(key, &[json!(0.0), json!(0)])?;
    }
    for key in [
        "rope_interleaved",
        "is_encoder_decoder",
        "add_cross_attention",
        "tie_encoder_decoder",
        "use_mrope",
    ] {
        keys.only(key, &[json!(false)])?;
    }
    keys.only("pretraining_tp", &[json!(1)])?;
    keys.only("partial_rotary_factor", &[json!(1.0), json!(1)])?;
    keys.only("chunk_size_feed_forward", &[json!(0)])?;
    keys.only("hidden_act", &[json!("silu"), json!("swish")])
}

fn parse_family(keys: &mut Keys<'_>) -> Result<Family, TrainError> {
    let families = [Family::Llama, Family::Qwen2, Family::Qwen3];
    let supported = "only llama, qwen2 and qwen3 are";
    match keys.string("model_type")? {
        None => Err(keys.problem("model_type", &format!("is missing: {supported} supported"))),
        Some(name) => {
            families.into_iter().find(|family| family.model_type() == name).ok_or_else(|| {
                keys.problem("model_type", &format!("`{name}` is not supported: {supported}"))
            })
        }
    }
}

fn parse_head_dim(
    family: Family,
    hidden_size: usize,
    heads: usize,
    keys: &mut Keys<'_>,
) -> Result<usize, TrainError> {
    if let Some(head_dim) = keys.size("head_dim")? {
        return Ok(head_dim);
    }
    if family == Family::Qwen3 {
        return keys.required_size("head_dim");
    }
    if heads == 0 || !hidden_size.is_multiple_of(heads) {
        let problem = format!(
            "is missing, and hidden_size {hidden_size} does not divide among {heads} heads"
        );
        return Err(keys.problem("head_dim", &problem));
    }
    Ok(hidden_size / heads)
}

struct Biases {
    qkv: bool,
    output: bool,
    mlp: bool,
}

impl Biases {
    /// Which projections have biases: a choice of the configuration for Llama and Qwen3, fixed for
    /// Qwen2.
    fn parse(family: Family, keys: &mut Keys<'_>) -> Result<Self, TrainError> {
        if family == Family::Qwen2 {
            keys.only("attention_bias", &[json!(true)])?;
            keys.only("mlp_bias", &[json!(false)])?;
            return Ok(Self { qkv: true, output: false, mlp: false });
        }
        let attention = keys.flag("attention_bias")?.unwrap_or(false);
        let mlp = match family {
            Family::Llama => keys.flag("mlp_bias")?.unwrap_or(false),
            _ => {
                keys.only("mlp_bias", &[json!(false)])?;
                false
            }
        };
        Ok(Self { qkv: attention, output: attention, mlp })
    }
}

/// The sliding window of each layer. Rule: Hugging Face transformers, `Qwen2Config` and
/// `Qwen3Config`.
fn parse_windows(
    family: Family,
    layers: usize,
    keys: &mut Keys<'_>,
) -> Result<Vec<Option<u32>>, TrainError> {
    let length = keys.size("sliding_window")?;
    let active = keys.flag("use_sliding_window")?;
    let first = keys.size("max_window_layers")?;
    let types = keys.strings("layer_types")?;
    if family == Family::Llama && (length.is_some() || active == Some(true)) {
        return Err(keys.problem(
            "sliding_window",
            "llama has no windowed layers: remove the key, or name the family that has them",
        ));
    }
    let length = match (active, length) {
        (Some(true), Some(length)) => Some(u32::try_from(length).map_err(|_| {
            keys.problem("sliding_window", "is too long: use a window below 4294967296 tokens")
        })?),
        (Some(true), None) => {
            return Err(
                keys.problem("sliding_window", "is missing while use_sliding_window is true")
            );
        }
        _ => None,
    };
    match types {
        Some(types) => windows_by_type(&types, layers, length, keys),
        None => {
            let first = match (length, first) {
                (Some(_), None) => {
                    return Err(keys.problem(
                        "max_window_layers",
                        "is missing while use_sliding_window is true",
                    ));
                }
                (_, first) => first.unwrap_or(layers),
            };
            Ok((0..layers).map(|layer| length.filter(|_| layer >= first)).collect())
        }
    }
}

fn windows_by_type(
    types: &[String],
    layers: usize,
    length: Option<u32>,
    keys: &Keys<'_>,
) -> Result<Vec<Option<u32>>, TrainError> {
    if types.len() != layers {
        let problem =
            format!("has {} entries for {layers} layers: give one per layer", types.len());
        return Err(keys.problem("layer_types", &problem));
    }
    types
        .iter()
        .map(|kind| match (kind.as_str(), length) {
            ("full_attention", _) => Ok(None),
            ("sliding_attention", Some(length)) => Ok(Some(length)),
            ("sliding_attention", None) => Err(keys.problem(
                "layer_types",
                "has sliding_attention, but no active sliding_window says how long",
            )),
            (other, _) => Err(keys.problem(
                "layer_types",
                &format!(
                    "`{other}` is not supported: only full_attention and sliding_attention are"
                ),
            )),
        })
        .collect()
}
