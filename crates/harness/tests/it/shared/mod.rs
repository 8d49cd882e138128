//! The real sessions beside the repository, converted, with their lines as the files hold them.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pleach_harness::{Conversion, ReadOptions, convert};
use pleach_tree::{BranchTree, Generation, Segment};
use serde_json::Value;

pub(crate) const SESSIONS: [&str; 5] = [
    "auto-compact-dangling-parent",
    "one-microcompact",
    "three-microcompacts",
    "rewind_then_compact",
    "rewind_then_compact_preserved",
];

pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/transcripts/claude-code");
    let path = folder.join(name).with_extension("jsonl");
    if !path.exists() {
        eprintln!("skipped: {name} is not there");
        return None;
    }
    Some(path)
}

pub(crate) struct Session {
    pub(crate) name: &'static str,
    pub(crate) conversion: Conversion,
    pub(crate) tree: BranchTree,
    /// The lines of each of its files.
    pub(crate) lines: Vec<Vec<Value>>,
}

pub(crate) fn sessions() -> impl Iterator<Item = Session> {
    SESSIONS.into_iter().filter_map(session)
}

pub(crate) fn session(name: &'static str) -> Option<Session> {
    let path = path(name)?;
    let conversion = convert(&path, ReadOptions::LENIENT).unwrap();
    let (tree, _) =
        BranchTree::from_records(conversion.records.clone(), name, ReadOptions::STRICT).unwrap();
    let read = |file: &String| {
        let text = std::fs::read_to_string(path.with_file_name("").join(file)).unwrap();
        text.split('\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let lines = tree.header().files.iter().map(read).collect();
    Some(Session { name, conversion, tree, lines })
}

impl Session {
    pub(crate) fn context(&self, generation: &Generation) -> Vec<&Segment> {
        let spans = self.tree.spans(generation.context).unwrap();
        spans.iter().map(|span| self.tree.segment(span.segment).unwrap()).collect()
    }

    pub(crate) fn calls(&self) -> usize {
        let calls: HashSet<&str> = self.lines.iter().flatten().filter_map(call_of).collect();
        calls.len()
    }
}

/// The message id of a line of a call.
pub(crate) fn call_of(line: &Value) -> Option<&str> {
    (line["type"] == "assistant" && line["message"]["model"] != "<synthetic>")
        .then(|| line["message"]["id"].as_str().unwrap())
}

pub(crate) fn text(segment: &Segment) -> &str {
    segment.text.as_deref().unwrap()
}
