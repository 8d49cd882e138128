//! Contract: `docs/records.schema.json` says what the types of the records say: the same keys, the
//! same ones required, the same values of enumerations.
use std::collections::BTreeSet;

use pleach_tree::Record;
use serde_json::{Value, json};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/records.schema.json")).unwrap()
}

/// Every record with every key of the format.
fn full() -> Vec<Value> {
    vec![
        json!({"t": "header", "version": 1, "harness": "h", "harness_version": "1", "fidelity": "token", "files": ["f"], "cache": "kv_evict",
            "tokenizer": {"id": "t", "sha256": "0", "chat_template_sha256": "0", "vocab_size": 9}}),
        json!({"t": "segment", "id": 0, "role": "assistant", "origin": "policy", "tokens": [1], "text": "a", "logprobs": [-1.0],
            "loss": [[0, 1, 1.0]], "source": {"file": 0, "line": 1, "key": "k"}, "part": "content", "open": true, "calls": ["c"], "result_of": "c"}),
        json!({"t": "append", "context": 0, "from": null, "segments": [0]}),
        json!({"t": "evict", "context": 1, "from": 0, "evicted": [{"segment": 0, "tokens": [0, 1]}],
            "replacement": {"kind": "latent", "segments": [1], "place": "head", "latent": {"count": 1, "ratio": 8.0, "file": "f", "offset": 0}},
            "by": {"kind": "policy", "generation": 0, "name": "n"}, "trigger": "auto", "evidence": "recorded"}),
        json!({"t": "replace", "context": 2, "from": 1, "segments": [], "by": {"kind": "rule", "name": "n", "generation": 0}, "evidence": "inferred"}),
        json!({"t": "fork", "context": 3, "from": 2, "reason": "retry"}),
        json!({"t": "generation", "id": 0, "context": 0, "output": [1], "rollout": "a", "thread": "b", "policy": "p", "unrecorded": ["reasoning"], "prompt_tokens": [1]}),
        json!({"t": "outcome", "rollout": "a", "group": "g", "reward": 1.0, "status": "finished"}),
    ]
}

/// The definition that a schema refers to.
fn resolved<'s>(schema: &'s Value, of: &'s Value) -> &'s Value {
    match of["$ref"].as_str() {
        Some(name) => &schema["$defs"][name.rsplit('/').next().unwrap()],
        None => of,
    }
}

fn reads(record: &Value) -> bool {
    serde_json::from_value::<Record>(record.clone()).is_ok()
}

/// What the types say of an enumeration: the values that its error names.
fn values(record: &Value) -> BTreeSet<String> {
    let error = serde_json::from_value::<Record>(record.clone()).unwrap_err().to_string();
    let list = error.split("expected one of ").nth(1).or(error.split("expected ").nth(1)).unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Holds the object at `pointer` of a full record against its definition.
fn check(schema: &Value, definition: &Value, record: &Value, pointer: &str) {
    let object = record.pointer(pointer).unwrap().as_object().unwrap();
    let properties = definition["properties"].as_object().unwrap();
    let keys = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(object), keys(properties), "{pointer} of {record}");
    let required: BTreeSet<&str> =
        definition["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (key, value) in object {
        let at = format!("{pointer}/{key}");
        let mut without = record.clone();
        without.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key);
        assert_eq!(!reads(&without), required.contains(key.as_str()), "{at} of {record}");
        let property = resolved(schema, &properties[key]);
        let choices = match &property["enum"] {
            Value::Null => &property["oneOf"][0]["enum"],
            choices => choices,
        };
        if let Value::Array(choices) = choices {
            let mut other = record.clone();
            *other.pointer_mut(&at).unwrap() = "no such value".into();
            let mut named = values(&other);
            let choices: BTreeSet<String> =
                choices.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            if property["oneOf"].is_array() {
                assert!(named.remove("index"), "{at}");
            }
            assert_eq!(choices, named, "{at}");
        }
        match value {
            Value::Object(_) => check(schema, property, record, &at),
            Value::Array(items) if items.first().is_some_and(Value::is_object) => {
                check(schema, resolved(schema, &property["items"]), record, &format!("{at}/0"));
            }
            _ => {}
        }
    }
}

#[test]
fn the_schema_has_the_keys_and_values_of_the_types() {
    let schema = schema();
    let records = full();
    let known = schema["oneOf"].as_array().unwrap().len() - 1;
    assert_eq!(records.len(), known, "a definition for each record");
    for record in &records {
        assert!(reads(record), "{record}");
        check(&schema, &schema["$defs"][record["t"].as_str().unwrap()], record, "");
    }
}

#[test]
fn the_example_of_the_documentation_is_read_strictly_and_means_what_it_says() {
    let page = include_str!("../../../../docs/records.md");
    let example = page.split("```jsonl\n").nth(1).unwrap().split("```").next().unwrap();
    let (tree, report) = pleach_tree::BranchTree::read(
        example.as_bytes(),
        "records.md",
        pleach_tree::ReadOptions::STRICT,
    )
    .unwrap();
    assert!(report.diagnostics.is_empty(), "{report}");
    let views: Vec<Vec<u32>> = tree.views().map(|view| view.tokens()).collect();
    assert_eq!(views, [vec![5, 6, 7, 8, 9], vec![5, 6, 7, 8, 9, 1, 13]]);
}
