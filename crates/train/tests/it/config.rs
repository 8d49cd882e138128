//! Contract: every key of a `config.json` is used, or known not to change the function, or an error
//! that names file and key.

use crate::fixtures::device::cpu;
use crate::fixtures::near::{FORMULA, assert_near};
use burn::tensor::DType;
use pleach_train::{
    TrainError,
    decoder::{Decoder, DecoderConfig, Family, RopeScaling},
    memory::{MemoryEstimate, Workload},
};
use serde_json::{Value, json};
use std::path::Path;

fn base(model_type: &str) -> Value {
    json!({
        "model_type": model_type, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu", "tie_word_embeddings": true
    })
}

fn parse(config: &Value) -> Result<DecoderConfig, TrainError> {
    DecoderConfig::from_json(&config.to_string(), Path::new("model/config.json"))
}

fn with(model_type: &str, changes: &Value) -> Value {
    let mut config = base(model_type);
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn without(model_type: &str, key: &str) -> Value {
    let mut config = base(model_type);
    config.as_object_mut().unwrap().remove(key);
    config
}

/// The key and the problem of the error that a configuration gives.
fn problem(config: &Value) -> (String, String) {
    match parse(config).unwrap_err() {
        TrainError::ConfigKey { path, key, problem } => {
            assert_eq!(path, Path::new("model/config.json"));
            (key, problem)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_three_families_are_read() {
    let llama = parse(&base("llama")).unwrap();
    assert_eq!(
        (llama.family, llama.kv_heads, llama.head_dim, llama.layers),
        (Family::Llama, 2, 16, 3)
    );
    assert_eq!(
        (llama.rms_norm_eps, llama.rope_theta, llama.tie_word_embeddings),
        (1e-5, 500000.0, true)
    );
    assert!(!llama.qkv_bias && !llama.qk_norm && llama.windows == [None, None, None]);
    let qwen2 = parse(&base("qwen2")).unwrap();
    assert!(qwen2.qkv_bias && !qwen2.output_bias && !qwen2.qk_norm);
    let qwen3 = parse(&base("qwen3")).unwrap();
    assert!(!qwen3.qkv_bias && qwen3.qk_norm);
}

#[test]
fn absent_keys_have_the_familys_defaults() {
    let llama = parse(&without("llama", "head_dim")).unwrap();
    assert_eq!(llama.head_dim, 16);
    assert_eq!(parse(&without("llama", "num_key_value_heads")).unwrap().kv_heads, 4);
    assert!(!parse(&without("llama", "tie_word_embeddings")).unwrap().tie_word_embeddings);
    assert_eq!(parse(&without("llama", "rope_theta")).unwrap().rope_theta, 10_000.0);
    assert_eq!(problem(&without("qwen3", "head_dim")).0, "head_dim");
    assert_eq!(problem(&without("qwen2", "num_key_value_heads")).0, "num_key_value_heads");
    for key in [
        "model_type",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
    ] {
        let (found, problem) = problem(&without("llama", key));
        assert!(found == key && problem.contains("is missing"), "{found}: {problem}");
    }
}

#[test]
fn keys_that_leave_the_function_alone_are_accepted() {
    let neutral = json!({
        "architectures": ["X"], "torch_dtype": "bfloat16", "dtype": "float32", "transformers_version": "5.0", "bos_token_id": 1,
        "eos_token_id": [2, 3], "pad_token_id": null, "use_cache": true, "initializer_range": 0.02, "attention_dropout": 0.0,
        "max_position_embeddings": 131072, "pretraining_tp": 1, "rope_scaling": null, "rope_interleaved": false,
        "attention_bias": false, "mlp_bias": false, "is_llama_config": true, "transformers.js_config": {"a": 1}
    });
    assert_eq!(parse(&with("llama", &neutral)).unwrap(), parse(&base("llama")).unwrap());
    let windows =
        json!({"sliding_window": null, "use_sliding_window": false, "max_window_layers": 2});
    assert_eq!(parse(&with("qwen3", &windows)).unwrap(), parse(&base("qwen3")).unwrap());
    let inactive =
        json!({"sliding_window": 4096, "use_sliding_window": false, "max_window_layers": 2});
    assert_eq!(parse(&with("qwen2", &inactive)).unwrap(), parse(&base("qwen2")).unwrap());
}

#[test]
fn keys_that_change_the_function_are_refused_by_name() {
    let refused = [
        ("llama", json!({"logit_scale": 0.5}), "logit_scale", "is not known"),
        (
            "llama",
            json!({"quantization_config": {"bits": 4}}),
            "quantization_config",
            "is not known",
        ),
        ("llama", json!({"hidden_act": "gelu"}), "hidden_act", "only \"silu\""),
        ("qwen2", json!({"use_mrope": true}), "use_mrope", "only false"),
        ("llama", json!({"pretraining_tp": 2}), "pretraining_tp", "only 1"),
        ("llama", json!({"attention_dropout": 0.1}), "attention_dropout", "only 0.0"),
        ("llama", json!({"sliding_window": 512}), "sliding_window", "no windowed layers"),
        (
            "llama",
            json!({"rope_scaling": {"type": "dynamic", "factor": 2.0}}),
            "rope_scaling.rope_type",
            "`dynamic` is not supported",
        ),
        (
            "llama",
            json!({"rope_scaling": {"rope_type": "longrope"}}),
            "rope_scaling.rope_type",
            "`longrope` is not supported",
        ),
        (
            "llama",
            json!({"rope_parameters": {"rope_type": "default", "mscale": 1}}),
            "rope_parameters.mscale",
            "is not known",
        ),
        (
            "llama",
            json!({"rope_parameters": {"rope_theta": 1.0}}),
            "rope_parameters.rope_theta",
            "make them agree",
        ),
        ("llama", json!({"rope_parameters": {}, "rope_scaling": {}}), "rope_scaling", "keep one"),
        ("llama", json!({"partial_rotary_factor": 0.5}), "partial_rotary_factor", "only 1.0"),
        ("qwen2", json!({"attention_bias": false}), "attention_bias", "only true"),
        ("qwen3", json!({"mlp_bias": true}), "mlp_bias", "only false"),
        ("qwen3", json!({"use_sliding_window": true}), "sliding_window", "is missing"),
        (
            "qwen3",
            json!({"use_sliding_window": true, "sliding_window": 8}),
            "max_window_layers",
            "is missing",
        ),
        ("mistral", json!({}), "model_type", "`mistral` is not supported"),
        ("llama", json!({"hidden_size": "64"}), "hidden_size", "expected a whole number"),
        ("llama", json!({"hidden_size": -1}), "hidden_size", "expected a whole number"),
    ];
    for (model_type, change, key, part) in refused {
        let (found, problem) = problem(&with(model_type, &change));
        assert!(found == key && problem.contains(part), "{change}: {found}: {problem}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    for change in [
        json!({"head_dim": 15}),
        json!({"num_key_value_heads": 3}),
        json!({"vocab_size": 0}),
        json!({"rms_norm_eps": 0.0}),
    ] {
        let found = parse(&with("llama", &change)).unwrap_err();
        assert!(matches!(&found, TrainError::File { .. }), "{change}: {found}");
    }
    let found = problem(&with("llama", &json!({"head_dim": null, "hidden_size": 66})));
    assert_eq!(found.0, "head_dim");
}

#[test]
fn absurd_sizes_are_refused_by_name_before_anything_is_allocated() {
    for key in [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
    ] {
        for size in [(1 << 31) + 1, u64::MAX] {
            let (found, problem) = problem(&with("llama", &json!({key: size})));
            assert!(
                found == key && problem.contains("a whole number of at most 2147483648"),
                "{found}: {problem}"
            );
        }
    }
    for layers in [(1 << 16) + 1, 1 << 31, u64::MAX] {
        let (found, problem) = problem(&with("llama", &json!({"num_hidden_layers": layers})));
        assert!(
            found == "num_hidden_layers" && problem.contains("at most 65536"),
            "{found}: {problem}"
        );
    }
    let mut config = DecoderConfig::small(Family::Llama, (1 << 31) + 1, 1);
    let device = cpu();
    let found = Decoder::seeded(config.clone(), 1, DType::F32, &device).unwrap_err().to_string();
    assert!(found.contains("vocab_size is 2147483649: give at most 2147483648"), "{found}");
    (config.vocab_size, config.layers, config.windows) =
        (10, (1 << 16) + 1, vec![None; (1 << 16) + 1]);
    let found = Decoder::seeded(config, 1, DType::F32, &device).unwrap_err().to_string();
    assert!(found.contains("layers is 65537: give at most 65536"), "{found}");
}

#[test]
fn what_a_huge_model_needs_is_counted_without_overflow() {
    let size = 1_u64 << 31;
    let huge = parse(&with(
        "llama",
        &json!({
            "vocab_size": size, "hidden_size": size, "intermediate_size": size, "num_attention_heads": size,
            "num_key_value_heads": size, "head_dim": size, "num_hidden_layers": 1 << 16
        }),
    ));
    let huge = huge.unwrap();
    assert_eq!(huge.parameters(), u64::MAX);
    for gradients in [false, true] {
        let workload = Workload { rows: 1, time: usize::MAX, terms: usize::MAX, batches: 2 };
        assert_eq!(MemoryEstimate::new(&huge, DType::F64, workload, gradients).total(), u64::MAX);
        assert_eq!(MemoryEstimate::replay(&huge, DType::F64, workload, u64::MAX).total(), u64::MAX);
        assert_eq!(
            MemoryEstimate::union(&huge, DType::F64, workload).beside_gradients(&huge, 2).total(),
            u64::MAX
        );
    }
}

#[test]
fn windows_belong_to_layers() {
    let late = json!({"use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1});
    assert_eq!(parse(&with("qwen2", &late)).unwrap().windows, [None, Some(8), Some(8)]);
    let typed = json!({
        "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 0,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]
    });
    assert_eq!(parse(&with("qwen3", &typed)).unwrap().windows, [Some(8), None, Some(8)]);
    let full = json!({"layer_types": ["full_attention", "full_attention", "full_attention"]});
    assert_eq!(parse(&with("llama", &full)).unwrap().windows, [None, None, None]);
    for types in [
        json!(["full_attention"]),
        json!(["full_attention", "full_attention", "sliding_attention"]),
        json!(["a", "b", "c"]),
    ] {
        assert_eq!(problem(&with("qwen3", &json!({"layer_types": types}))).0, "layer_types");
    }
}

#[test]
fn llama3_scaling_keeps_high_frequencies_and_divides_low_ones() {
    let scaling = json!({"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192
    }});
    let scaled = parse(&with("llama", &scaling)).unwrap();
    assert!(matches!(
        scaled.rope_scaling,
        RopeScaling::Llama3 { factor: 8.0, original_context: 8192.0, .. }
    ));
    // transformers 5.24, `_compute_llama3_parameters`, head_dim 16, base 500000, evaluated in
    // float64.
    let expected = [
        1.0,
        0.19392274474868576,
        0.03760603093086393,
        0.0072926647372171085,
        0.0005248461609929547,
        3.428102195952591e-05,
        6.647869871181236e-06,
        1.2891731721515574e-06,
    ];
    for (found, expected) in scaled.inverse_frequencies().iter().zip(expected) {
        assert_near(found / expected, 1.0, FORMULA, format_args!("a frequency of {expected}"));
    }
    let new_style = json!({"rope_theta": null, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192
    }});
    assert_eq!(parse(&with("llama", &new_style)).unwrap(), scaled);
}

#[test]
fn yarn_scaling_divides_what_turns_seldom_and_scales_queries_and_keys() {
    let scaling = |more: serde_json::Value| {
        let mut yarn =
            json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048});
        yarn.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse(&with("llama", &json!({"rope_theta": 10000.0, "rope_scaling": yarn}))).unwrap()
    };
    let near = |found: &DecoderConfig, expected: [f64; 8]| {
        for (found, expected) in found.inverse_frequencies().iter().zip(expected) {
            assert_near(found / expected, 1.0, FORMULA, format_args!("a frequency of {expected}"));
        }
    };
    // The formula of transformers, `_compute_yarn_parameters`, head_dim 16, evaluated in float64.
    let whole = scaling(json!({}));
    near(
        &whole,
        [
            1.0,
            0.31622776601683794,
            0.1,
            0.02569350598886808,
            0.00625,
            0.0013834964763236657,
            0.00025,
            7.905694150420948e-05,
        ],
    );
    assert_near(whole.rotary_scale(), 1.138629436111989, FORMULA, format_args!("the scale"));
    let between = scaling(json!({"truncate": false, "attention_factor": 1.0}));
    near(
        &between,
        [
            1.0,
            0.31622776601683794,
            0.1,
            0.023870192321736323,
            0.005056971521129435,
            0.0008112903817014309,
            0.00025,
            7.905694150420948e-05,
        ],
    );
    assert_eq!(between.rotary_scale(), 1.0);
    let equal = scaling(json!({"mscale": 1.0, "mscale_all_dim": 1.0}));
    assert_eq!(equal.rotary_scale(), 1.0);
}

#[test]
fn linear_scaling_divides_every_frequency() {
    let plain = parse(&with("llama", &json!({}))).unwrap();
    let scaling = json!({"rope_scaling": {"type": "linear", "factor": 2.5}});
    let scaled = parse(&with("llama", &scaling)).unwrap();
    for (scaled, plain) in scaled.inverse_frequencies().iter().zip(plain.inverse_frequencies()) {
        assert_near(scaled * 2.5 / plain, 1.0, FORMULA, format_args!("a frequency of {plain}"));
    }
}

#[test]
fn text_that_is_no_configuration_is_an_error_with_the_file() {
    for text in ["", "[]", "{", "{\"model_type\": 3}"] {
        let found = DecoderConfig::from_json(text, Path::new("model/config.json")).unwrap_err();
        assert!(found.to_string().starts_with("model/config.json: "), "{found}");
    }
    let found = DecoderConfig::from_file(Path::new("nowhere/config.json")).unwrap_err();
    assert!(found.to_string().contains("a checkpoint folder needs a config.json"), "{found}");
}
