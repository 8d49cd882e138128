//! Contract: what `layout --mask` writes is read by any reader of safetensors, is the mask
//! `j <= i < ends[j]` pair by pair, true = may attend, and says the same as `layout --json`.
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::pleach::{failure, json, stdout};

const GATE: &str = "examples/records/gate.jsonl";

/// A prompt of which two tokens are dropped in place before the last token is sampled.
const EVICTED_IN_PLACE: &str = r#"{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"kv_evict"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
{"t":"generation","id":0,"context":0,"output":[1]}
{"t":"append","context":1,"from":0,"segments":[1]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,3]}]}
{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
{"t":"generation","id":1,"context":2,"output":[2]}
"#;

/// The arrays of a rollout as JSON, one a sequence, and the file that `--mask` wrote of it.
fn written(file: &str, layout: &str, more: &[&str]) -> (Vec<Value>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("mask.safetensors").display().to_string();
    let command = ["layout", file, "--layout", layout, "--out", &out, "--mask"];
    stdout(&[&command[..], more].concat());
    let sequences = match json(&["layout", file, "--layout", layout, "--json"]) {
        Value::Array(sequences) => sequences,
        one => vec![one],
    };
    (sequences, std::fs::read(out).unwrap())
}

fn integers(file: &SafeTensors<'_>, name: &str) -> Vec<i64> {
    let array = file.tensor(name).unwrap();
    assert_eq!(array.dtype(), Dtype::I64, "{name}");
    let (values, rest) = array.data().as_chunks::<8>();
    assert_eq!((array.shape(), rest.len()), (&[values.len()][..], 0), "{name}");
    values.iter().map(|value| i64::from_le_bytes(*value)).collect()
}

fn of(sequence: &Value, array: &str) -> Vec<i64> {
    let values = sequence[array].as_array().unwrap().iter();
    values.map(|value| value.as_i64().unwrap()).collect()
}

/// Compares the mask called `name` with the rule, and returns how many pairs are visible.
fn assert_is_the_rule(
    file: &SafeTensors<'_>,
    name: &str,
    sequence: &Value,
    window: Option<i64>,
) -> usize {
    let (ends, positions) = (of(sequence, "ends"), of(sequence, "positions"));
    let mask = file.tensor(name).unwrap();
    let time = ends.len();
    assert_eq!((mask.dtype(), mask.shape()), (Dtype::BOOL, &[1, 1, time, time][..]), "{name}");
    let mut visible = 0;
    for i in 0..time {
        for j in 0..time {
            let near = window.is_none_or(|window| positions[i] - positions[j] < window);
            let expected = j <= i && (i as i64) < ends[j] && near;
            assert_eq!(mask.data()[i * time + j], u8::from(expected), "{name}[0, 0, {i}, {j}]");
            visible += usize::from(expected);
        }
    }
    visible
}

#[test]
fn the_dense_mask_is_the_rule_pair_by_pair() {
    let (sequences, file) = written(GATE, "packed", &["dense"]);
    let file = SafeTensors::deserialize(&file).unwrap();
    let visible = assert_is_the_rule(&file, "mask", &sequences[0], None);
    assert_eq!(visible, 47_871);
    assert!(file.tensor("ends").is_err());
    for array in ["tokens", "positions"] {
        assert_eq!(integers(&file, array), of(&sequences[0], array));
    }
}

#[test]
fn several_sequences_are_numbered() {
    let (sequences, file) = written(GATE, "segments", &["dense"]);
    let file = SafeTensors::deserialize(&file).unwrap();
    assert_eq!(sequences.len(), 3);
    for (at, sequence) in sequences.iter().enumerate() {
        assert_is_the_rule(&file, &format!("mask.{at}"), sequence, None);
        assert_eq!(integers(&file, &format!("tokens.{at}")), of(sequence, "tokens"));
    }
    assert!(file.tensor("mask").is_err());
}

#[test]
fn a_window_counts_positions() {
    let (sequences, file) = written(GATE, "packed", &["dense", "--window", "16"]);
    let file = SafeTensors::deserialize(&file).unwrap();
    let visible = assert_is_the_rule(&file, "mask", &sequences[0], Some(16));
    assert!(visible > 401 && visible < 401 * 16, "{visible}");
}

#[test]
fn a_mask_under_eviction_in_place_is_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv_evict.jsonl");
    std::fs::write(&path, EVICTED_IN_PLACE).unwrap();
    let (sequences, file) = written(path.to_str().unwrap(), "packed", &["dense"]);
    let file = SafeTensors::deserialize(&file).unwrap();
    assert_eq!(of(&sequences[0], "ends"), [6, 5, 5, 6, 6, 6]);
    assert_eq!(assert_is_the_rule(&file, "mask", &sequences[0], None), 19);
}

#[test]
fn the_interval_form_holds_the_arrays_and_the_terms() {
    let (sequences, file) = written(GATE, "packed", &["intervals"]);
    let file = SafeTensors::deserialize(&file).unwrap();
    for array in ["tokens", "positions", "ends"] {
        assert_eq!(integers(&file, array), of(&sequences[0], array), "{array}");
    }
    let terms = sequences[0]["terms"].as_array().unwrap();
    assert_eq!(terms.len(), 70);
    for (array, key) in [
        ("term_sources", "source"),
        ("term_targets", "target"),
        ("term_generations", "generation"),
        ("term_offsets", "offset"),
    ] {
        let expected: Vec<i64> = terms.iter().map(|term| term[key].as_i64().unwrap()).collect();
        assert_eq!(integers(&file, array), expected, "{array}");
    }
    let weights = file.tensor("term_weights").unwrap();
    let expected: Vec<u8> =
        terms.iter().flat_map(|term| term["weight"].as_f64().unwrap().to_le_bytes()).collect();
    assert_eq!((weights.dtype(), weights.data()), (Dtype::F64, &expected[..]));
    assert!(file.tensor("mask").is_err());
}

#[test]
fn what_cannot_be_written_says_what_to_do() {
    let (status, message) = failure(&["layout", GATE, "--mask", "dense"]);
    assert_eq!(status, 2);
    assert!(message.contains("--out"), "{message}");
    let command = ["layout", GATE, "--mask", "intervals", "--window", "8", "--out", "x"];
    let (status, message) = failure(&command);
    assert_eq!(status, 2);
    assert!(message.contains("--window goes with --mask dense"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/mask.safetensors").display().to_string();
    let (status, message) = failure(&["layout", GATE, "--mask", "dense", "--out", &missing]);
    assert_eq!(status, 2);
    assert!(message.contains("choose another path for --out"), "{message}");
}

#[test]
fn a_mask_beyond_memory_is_refused_and_the_interval_form_is_named() {
    const TOKENS: usize = 1 << 22;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.jsonl").display().to_string();
    let tokens = vec!["1"; TOKENS].join(",");
    let records = format!(
        r#"{{"t":"header","version":1,"harness":"example","fidelity":"token"}}
{{"t":"segment","id":0,"role":"user","origin":"human","tokens":[{tokens}]}}
{{"t":"append","context":0,"from":null,"segments":[0]}}
{{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[2]}}
{{"t":"generation","id":0,"context":0,"output":[1]}}
"#
    );
    std::fs::write(&path, records).unwrap();
    let out = folder.path().join("mask.safetensors");
    let (status, message) =
        failure(&["layout", &path, "--mask", "dense", "--out", out.to_str().unwrap()]);
    assert_eq!(status, 2);
    assert!(message.contains("16384.0 GiB") && message.contains("--mask intervals"), "{message}");
    assert!(!out.exists());
}
