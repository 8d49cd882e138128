//! Every fault of the format has a code, a file, a line, a key and a message that says what to do;
//! strict reading lists all of them, and lenient reading repairs what can be repaired, says how,
//! and lowers the fidelity.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod evictions;
mod files;
mod graph;
mod keys;
mod lines;
mod reading;
mod returns;
mod tokens;

use pleach_tree::{BranchTree, ReadOptions, Record, TreeError};

/// A sound file of seven lines; what a test adds begins at line 8.
const STORY: &str = r#"{"t":"header","version":1,"harness":"test","fidelity":"token"}
{"t":"segment","id":0,"role":"system","origin":"harness","tokens":[5,6,7]}
{"t":"segment","id":1,"role":"user","origin":"human","tokens":[8]}
{"t":"append","context":0,"from":null,"segments":[0,1]}
{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[9,10]}
{"t":"generation","id":0,"context":0,"output":[2]}
{"t":"append","context":1,"from":0,"segments":[2]}
"#;

/// The story with lines behind it.
fn story(lines: &str) -> Vec<u8> {
    format!("{STORY}{lines}").into_bytes()
}

/// What a reader says; for a tree also what it holds.
fn said(bytes: &[u8], options: ReadOptions) -> String {
    match BranchTree::read(bytes, "f.jsonl", options) {
        Ok((tree, report)) if report.diagnostics.is_empty() => told(&tree),
        Ok((tree, report)) => format!("{report}\n{}", told(&tree)),
        Err(TreeError::Rejected(report)) => report.to_string(),
        Err(error) => error.to_string(),
    }
}

fn strict(bytes: impl AsRef<[u8]>) -> String {
    said(bytes.as_ref(), ReadOptions::STRICT)
}

fn lenient(bytes: impl AsRef<[u8]>) -> String {
    said(bytes.as_ref(), ReadOptions::LENIENT)
}

/// Contexts and generations of a tree, one a line, after its fidelity.
fn told(tree: &BranchTree) -> String {
    let mut lines = vec![format!("{:?}", tree.header().fidelity)];
    for context in tree.contexts() {
        let id = context.id().unwrap();
        let spans = tree.spans(id).unwrap();
        let spans: Vec<String> = spans
            .iter()
            .map(|span| format!("{}[{}..{}]", span.segment.0, span.start, span.end))
            .collect();
        lines.push(format!("{id}: {}", spans.join(" ")).trim_end().into());
    }
    for view in tree.views() {
        let output: Vec<String> = view
            .output()
            .map(|token| {
                format!(
                    "{}:{}",
                    token.token,
                    token.weight.map_or("-".into(), |weight| weight.to_string())
                )
            })
            .collect();
        let generation = view.generation();
        let line = format!(
            "{} of {}/{}: {}",
            generation.id,
            generation.rollout,
            generation.thread,
            output.join(" ")
        );
        lines.push(line.trim_end().into());
    }
    lines.join("\n")
}

/// The story's records and one more, for what JSON cannot say.
fn with(record: Record, options: ReadOptions) -> String {
    let (tree, _) = BranchTree::read(STORY.as_bytes(), "f.jsonl", ReadOptions::STRICT).unwrap();
    let records = tree.records().iter().cloned().chain([record]);
    match BranchTree::from_records(records, "made", options) {
        Ok((tree, report)) => format!("{report}\n{}", told(&tree)),
        Err(error) => error.to_string(),
    }
}
