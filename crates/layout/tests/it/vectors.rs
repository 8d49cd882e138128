//! Layouts, statistics and conditioning equal those of an independent implementation, to the index.
use std::path::{Path, PathBuf};

use pleach_layout::{LayoutKind, Layouts, Sequence};
use pleach_tree::{BranchTree, ReadOptions};
use serde_json::{Value, json};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(entries) = folder.read_dir() else {
        eprintln!("skipped: the conformance vectors are not at {}", folder.display());
        return Vec::new();
    };
    let mut cases: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("records.jsonl").exists())
        .collect();
    cases.sort();
    cases
}

fn read(case: &Path) -> (BranchTree, Value) {
    let (tree, report) = BranchTree::open(case.join("records.jsonl"), ReadOptions::STRICT).unwrap();
    assert!(report.diagnostics.is_empty(), "{report}");
    let expected = std::fs::read_to_string(case.join("expected.json")).unwrap();
    (tree, serde_json::from_str(&expected).unwrap())
}

fn written(sequence: &Sequence) -> Value {
    let terms: Vec<Value> = sequence
        .terms
        .iter()
        .map(|term| json!({"source": term.source, "target": term.target, "generation": term.generation, "offset": term.offset}))
        .collect();
    json!({"tokens": sequence.tokens, "positions": sequence.positions, "terms": terms})
}

#[test]
fn every_layout_of_every_vector_is_the_expected_one() {
    for case in cases() {
        let (tree, expected) = read(&case);
        let layouts = Layouts::new(&tree).unwrap();
        let packed = layouts.packed().unwrap();
        let mut value = written(&packed.sequences[0]);
        value["ends"] = json!(packed.sequences[0].ends);
        if let Some(parents) = &packed.parents {
            value["parents"] = json!(parents);
        }
        assert_eq!(value, expected["packed"], "packed of {}", case.display());
        for kind in [LayoutKind::Segments, LayoutKind::Compressed, LayoutKind::Full] {
            let Some(expected) = expected.get(kind.name()) else { continue };
            let layout = layouts.layout(kind).unwrap();
            let value: Vec<Value> = layout.sequences.iter().map(written).collect();
            assert_eq!(&json!(value), expected, "{} of {}", kind.name(), case.display());
        }
    }
}

#[test]
fn statistics_of_every_vector_are_the_expected_ones() {
    for case in cases() {
        let (tree, expected) = read(&case);
        let account = Layouts::new(&tree).unwrap().account().unwrap();
        if let Some(expected) = expected.get("stats") {
            assert_eq!(
                &serde_json::to_value(account.stats).unwrap(),
                expected,
                "{}",
                case.display()
            );
        }
    }
}

#[test]
fn missing_and_leaked_conditioning_of_every_vector_is_the_expected_one() {
    for case in cases() {
        let (tree, expected) = read(&case);
        let layouts = Layouts::new(&tree).unwrap();
        for kind in [LayoutKind::Compressed, LayoutKind::Full] {
            let Some(expected) = expected.get("conditioning") else { continue };
            let mut found: Vec<[u32; 4]> = layouts
                .conditioning(kind)
                .iter()
                .map(|term| [term.generation, term.offset, term.missing, term.leaked])
                .collect();
            let mut expected: Vec<[u32; 4]> =
                serde_json::from_value(expected[kind.name()].clone()).unwrap();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{} of {}", kind.name(), case.display());
        }
    }
}

#[test]
fn vectors_are_written_back_as_they_were_read() {
    for case in cases() {
        let (tree, _) = read(&case);
        let mut written = Vec::new();
        tree.write(&mut written).unwrap();
        let original = std::fs::read_to_string(case.join("records.jsonl")).unwrap();
        let parse = |text: &str| -> Vec<Value> {
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert_eq!(
            parse(std::str::from_utf8(&written).unwrap()),
            parse(&original),
            "{}",
            case.display()
        );
    }
}
