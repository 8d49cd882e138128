//! What the program prints for the conformance vectors is what an independent implementation
//! expects: sizes, arrays, log-probabilities to 1e-10 nats and gradients to 1e-9 relative, in
//! float64.
use crate::pleach;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::Value;

/// Each vector: its folder and what is expected.
fn vectors() -> Vec<(PathBuf, Value)> {
    let folder = pleach::root().join("../shared/vectors");
    let Ok(entries) = folder.read_dir() else {
        eprintln!("skipped: the conformance vectors are not at {}", folder.display());
        return Vec::new();
    };
    let mut cases: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("expected.json").exists())
        .collect();
    cases.sort();
    let read = |case: PathBuf| {
        let expected = std::fs::read_to_string(case.join("expected.json")).unwrap();
        (case, serde_json::from_str(&expected).unwrap())
    };
    cases.into_iter().map(read).collect()
}

fn records(case: &Path) -> String {
    case.join("records.jsonl").display().to_string()
}

#[test]
fn inspect_prints_the_expected_statistics() {
    for (case, expected) in vectors() {
        let found = pleach::json(&["inspect", &records(&case), "--json"]);
        if let Some(stats) = expected.get("stats") {
            assert_eq!(&found["stats"], stats, "{}", case.display());
        }
    }
}

#[test]
fn layout_prints_the_expected_arrays() {
    for (case, expected) in vectors() {
        for layout in ["packed", "segments", "compressed", "full"] {
            let Some(expected) = expected.get(layout) else { continue };
            let found = pleach::json(&["layout", &records(&case), "--layout", layout, "--json"]);
            assert_covers(&found, expected, &format!("{layout} of {}", case.display()));
        }
    }
}

/// Everything in `expected` is in `found`; an object may have more keys.
fn assert_covers(found: &Value, expected: &Value, at: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected
                .iter()
                .for_each(|(key, value)| assert_covers(&found[key], value, &format!("{at}.{key}")));
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{at}");
            found
                .iter()
                .zip(expected)
                .for_each(|(found, expected)| assert_covers(found, expected, at));
        }
        (found, expected) => assert_eq!(found, expected, "{at}"),
    }
}

#[test]
fn check_prints_the_expected_log_probabilities() {
    for device in devices() {
        for (case, expected) in vectors() {
            for (model, expected) in expected["models"].as_object().unwrap() {
                let folder =
                    case.parent().unwrap().join("models").join(model).display().to_string();
                let found = pleach::json(&[
                    "check",
                    &records(&case),
                    "--model",
                    &folder,
                    "--device",
                    device,
                    "--json",
                ]);
                for (layout, expected) in expected["logp"].as_object().unwrap() {
                    let at = format!("{layout} of {} with {model} on {device}", case.display());
                    assert_near(&logp(&found["logp"][layout]), &logp(expected), 1e-10, &at);
                }
                assert_eq!(
                    found["equivalence"]["holds"],
                    true,
                    "{} with {model} on {device}",
                    case.display()
                );
                assert_eq!(found["equivalence"]["dtype"], "f64");
            }
        }
    }
}

/// The CPU devices that are built in.
fn devices() -> Vec<&'static str> {
    let built = [("flex", cfg!(feature = "flex")), ("ndarray", cfg!(feature = "ndarray"))];
    built.into_iter().filter_map(|(name, built)| built.then_some(name)).collect()
}

fn logp(list: &Value) -> BTreeMap<(u64, u64), f64> {
    let term = |term: &Value| {
        ((term[0].as_u64().unwrap(), term[1].as_u64().unwrap()), term[2].as_f64().unwrap())
    };
    list.as_array().unwrap().iter().map(term).collect()
}

fn assert_near(
    found: &BTreeMap<(u64, u64), f64>,
    expected: &BTreeMap<(u64, u64), f64>,
    tolerance: f64,
    at: &str,
) {
    assert!(found.keys().eq(expected.keys()), "{at}: other terms");
    for (term, expected) in expected {
        let difference = (found[term] - expected).abs();
        assert!(difference <= tolerance, "{at}, term {term:?}: {} against {expected}", found[term]);
    }
}

#[test]
fn check_writes_the_expected_gradients() {
    let folder = tempfile::tempdir().unwrap();
    for (case, expected) in vectors() {
        for model in expected["models"].as_object().unwrap().keys() {
            let golden = case.join(format!("nll-sum-exact.{model}.grads.safetensors"));
            let Ok(golden) = std::fs::read(golden) else { continue };
            let model = case.parent().unwrap().join("models").join(model).display().to_string();
            for layout in ["packed", "segments"] {
                let out = folder.path().join("gradients.safetensors");
                let paths = [records(&case), model.clone(), out.display().to_string()];
                pleach::stdout(&[
                    "check",
                    &paths[0],
                    "--model",
                    &paths[1],
                    "--gradients",
                    &paths[2],
                    "--layout",
                    layout,
                ]);
                assert_gradients(
                    &std::fs::read(&out).unwrap(),
                    &golden,
                    &format!("{layout} of {}, {model}", case.display()),
                );
            }
        }
    }
}

/// Names, shapes and values; relative as the largest difference over the largest of the tensor, at
/// least 1e-6 of all.
fn assert_gradients(found: &[u8], expected: &[u8], at: &str) {
    let (found, expected) =
        (SafeTensors::deserialize(found).unwrap(), SafeTensors::deserialize(expected).unwrap());
    let names = |tensors: &SafeTensors<'_>| -> Vec<String> {
        let mut names: Vec<String> = tensors.names().into_iter().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(names(&found), names(&expected), "{at}");
    let largest = |values: &[f64]| values.iter().fold(0.0, |max: f64, value| max.max(value.abs()));
    let floor =
        expected.iter().map(|(_, tensor)| largest(&values(tensor.data()))).fold(0.0, f64::max)
            * 1e-6;
    for (name, tensor) in expected.iter() {
        let other = found.tensor(name).unwrap();
        assert_eq!(
            (other.shape(), other.dtype()),
            (tensor.shape(), tensor.dtype()),
            "{name} in {at}"
        );
        let (found, expected) = (values(other.data()), values(tensor.data()));
        let differences: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
        let error = largest(&differences) / largest(&expected).max(floor);
        assert!(error <= 1e-9, "{name} in {at}: {error:e}");
    }
}

fn values(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
}
