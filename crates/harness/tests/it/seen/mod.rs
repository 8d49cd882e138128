//! Sessions of Claude Code in memory, and every call with its context by the keys of the lines.
use pleach_harness::{Conversion, Input, ReadOptions, convert_from};
use pleach_tree::{BranchTree, Report};

/// An id that no two lines share by chance.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) const U: &str = "0b5e0025-6c1d-4f0e-9a57-3d2c8e1003f1";

/// The session marks that detection looks for, put into every line.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn marked(text: &str) -> Vec<u8> {
    text.replace("{\"type\"", "{\"sessionId\":\"s\",\"type\"").into_bytes()
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn read(name: &str, text: &str, beside: &[(&str, &str)]) -> (BranchTree, Report) {
    let beside = beside.iter().map(|(name, text)| ((*name).to_owned(), marked(text)));
    built(
        convert_from(&Input::memory(name, marked(text), beside), None, ReadOptions::STRICT)
            .unwrap(),
    )
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn built(conversion: Conversion) -> (BranchTree, Report) {
    let (tree, _) =
        BranchTree::from_records(conversion.records, "records", ReadOptions::STRICT).unwrap();
    (tree, conversion.report)
}

/// The thread of every call, the keys of its context, and what it is.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn seen(tree: &BranchTree) -> Vec<String> {
    let key = |id| tree.segment(id).unwrap().source.as_ref().unwrap().key.clone();
    let shown = tree.generations().map(|generation| {
        let context: Vec<String> =
            tree.spans(generation.context).unwrap().iter().map(|span| key(span.segment)).collect();
        let output: Vec<String> = generation.output.iter().map(|&id| key(id)).collect();
        format!("{}: {} > {}", generation.thread, context.join(" "), output.join(" "))
            .replace(U, "U")
    });
    shown.collect()
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn codes(report: &Report) -> Vec<String> {
    report
        .diagnostics
        .iter()
        .map(|found| found.fault.to_string().split(':').next().unwrap().to_owned())
        .collect()
}
