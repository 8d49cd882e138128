//! Damage to the lines of a log is named as in every file of lines, whichever harness wrote it, and
//! what is mended gives the same calls.

use std::path::Path;

use crate::shown::faults;
use pleach_harness::{Input, ReadOptions, convert_from};
use pleach_tree::{BranchTree, Severity};

const LOGS: [&str; 5] =
    ["codex.jsonl", "pi.jsonl", "qwen_code.jsonl", "gemini_cli.jsonl", "openhands.jsonl"];

fn sample(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
        .unwrap()
}

/// The context of every call and what it said, by their texts.
fn calls(name: &str, text: &[u8]) -> Vec<Vec<String>> {
    let conversion =
        convert_from(&Input::memory(name, text.to_vec(), []), None, ReadOptions::LENIENT).unwrap();
    let (tree, _) =
        BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
    let text = |id| tree.segment(id).unwrap().text.clone().unwrap();
    let call = |generation: &pleach_tree::Generation| {
        let context = tree
            .spans(generation.context)
            .unwrap()
            .iter()
            .map(|span| text(span.segment))
            .collect::<Vec<_>>();
        context.into_iter().chain(generation.output.iter().map(|&id| text(id))).collect()
    };
    tree.generations().map(call).collect()
}

fn codes(name: &str, text: impl AsRef<[u8]>) -> Vec<String> {
    faults(name, text.as_ref())
        .iter()
        .map(|fault| fault.split(": ").next().unwrap().replace(name, ""))
        .collect()
}

#[test]
fn glued_records_and_nul_bytes_are_mended() {
    for name in LOGS {
        let sound = sample(name);
        let glued = sound.replacen("}\n{", "}{", 1);
        assert_eq!(codes(name, &glued), [":1"], "{name}");
        assert_eq!(calls(name, glued.as_bytes()), calls(name, sound.as_bytes()), "{name}");
        let holed = sound.replacen('\n', &format!("\n{}", "\0".repeat(512)), 2) + &"\0".repeat(512);
        let last = sound.lines().count() + 1;
        assert_eq!(
            codes(name, &holed),
            [":2".to_owned(), ":3".to_owned(), format!(":{last}")],
            "{name}"
        );
        assert_eq!(calls(name, holed.as_bytes()), calls(name, sound.as_bytes()), "{name}");
    }
}

#[test]
fn a_last_line_that_breaks_off_is_left_out() {
    for name in LOGS {
        let sound = sample(name);
        let cut = &sound[..sound.len() - 5];
        assert_eq!(codes(name, cut), [format!(":{}", sound.lines().count())], "{name}");
        let before = calls(name, sound.as_bytes());
        assert_eq!(calls(name, cut.as_bytes()), before[..before.len() - 1], "{name}");
    }
}

#[test]
fn a_byte_order_mark_is_no_fault_and_a_raw_line_separator_is_text() {
    for name in LOGS {
        let sound = sample(name);
        let marked = format!("\u{feff}{sound}");
        let conversion =
            convert_from(&Input::memory(name, marked.into_bytes(), []), None, ReadOptions::STRICT)
                .unwrap();
        assert_eq!(conversion.report.of(Severity::Repaired).count(), 1, "{name}");
        let parted = sound.replacen("\"hi\"", "\"h\u{2028}i\"", 1).replacen(
            "\"first\"",
            "\"h\u{2028}i\"",
            1,
        );
        assert!(calls(name, parted.as_bytes())[0].contains(&"h\u{2028}i".to_owned()), "{name}");
    }
}

#[test]
fn half_of_a_surrogate_pair_is_put_by_a_replacement_character() {
    for name in LOGS {
        let half = sample(name).replacen("\"hi\"", "\"\\ud83d\"", 1).replacen(
            "\"first\"",
            "\"\\ud83d\"",
            1,
        );
        assert_eq!(codes(name, &half).len(), 1, "{name}");
        assert!(calls(name, half.as_bytes())[0].contains(&"\u{fffd}".to_owned()), "{name}");
    }
}
