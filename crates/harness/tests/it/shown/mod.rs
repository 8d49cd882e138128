//! Records as lines of text, in the order of the records: each context by the keys of its segments
//! and each call by what it said.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pleach_harness::{Conversion, HarnessError, Input, ReadOptions, convert, convert_from};
use pleach_tree::{
    BranchTree, ContextId, Fidelity, Generation, Operation, Record, Report, Segment, SegmentId,
    Severity,
};

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("jsonl")
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn converted(path: &Path, options: ReadOptions) -> (Conversion, BranchTree) {
    let conversion = convert(path, options).unwrap();
    let (tree, _) =
        BranchTree::from_records(conversion.records.clone(), "records", ReadOptions::STRICT)
            .unwrap();
    (conversion, tree)
}

/// Records as lines of text.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn shown(name: &str) -> String {
    shown_with(&fixture(name), ReadOptions::STRICT)
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn shown_with(path: &Path, options: ReadOptions) -> String {
    let (conversion, tree) = converted(path, options);
    let mut out = Vec::new();
    for record in &conversion.records {
        match record {
            Record::Append(record) => out.push(context(&tree, record.context)),
            Record::Evict(record) => out.push(context(&tree, record.context)),
            Record::Replace(record) => out.push(context(&tree, record.context)),
            Record::Fork(record) => out
                .push(format!("{} = fork of {}, {:?}", record.context, record.from, record.reason)),
            Record::Generation(generation) => out.push(call(&tree, generation)),
            _ => {}
        }
    }
    for found in &conversion.report.diagnostics {
        let text = found.to_string();
        if !text.contains("hidden-context") {
            let name = path.file_name().unwrap().to_str().unwrap();
            let cut = text.find(name).unwrap_or_default();
            out.push(text[cut..].to_owned());
        }
    }
    out.join("\n")
}

pub(crate) fn context(tree: &BranchTree, id: ContextId) -> String {
    let keys = tree
        .spans(id)
        .unwrap()
        .iter()
        .map(|span| key(tree, span.segment))
        .collect::<Vec<_>>()
        .join(" ");
    let how = match tree.operation(id).unwrap() {
        Operation::Append(record) => match record.from {
            Some(from) => format!("append to {from}"),
            None => "root".into(),
        },
        Operation::Evict(record) => {
            let out = record
                .evicted
                .iter()
                .map(|evicted| key(tree, evicted.segment))
                .collect::<Vec<_>>()
                .join(" ");
            let (by, trigger) = (record.by.as_ref().unwrap(), record.trigger);
            let (kind, place) =
                record.replacement.as_ref().map(|put| (put.kind, put.place)).unzip();
            let author = by
                .generation
                .map(|generation| generation.to_string())
                .or(by.name.clone())
                .unwrap_or_default();
            format!(
                "evict from {}: -({out}) +{kind:?} {place:?} by {:?} {author}, {trigger:?}",
                record.from, by.kind
            )
        }
        Operation::Replace(record) => format!("replace {}", record.from),
        Operation::Fork(_) => unreachable!("shown on its own"),
    };
    format!("{id} = {how}\n    [{keys}]")
}

pub(crate) fn call(tree: &BranchTree, generation: &Generation) -> String {
    let head = format!(
        "{} in {} of thread {} by {}{}",
        generation.id,
        generation.context,
        generation.thread,
        generation.policy.as_deref().unwrap_or("?"),
        if generation.unrecorded.is_empty() {
            String::new()
        } else {
            format!(", unrecorded {:?}", generation.unrecorded)
        }
    );
    let said = generation.output.iter().map(|&id| {
        let segment = tree.segment(id).unwrap();
        format!(
            "    {}: {:?} {:?} {:?}",
            key(tree, id),
            segment.origin,
            segment.part.unwrap(),
            text(segment)
        )
    });
    std::iter::once(head).chain(said).collect::<Vec<_>>().join("\n")
}

pub(crate) fn key(tree: &BranchTree, id: SegmentId) -> String {
    tree.segment(id).unwrap().source.as_ref().unwrap().key.clone()
}

pub(crate) fn text(segment: &Segment) -> &str {
    segment.text.as_deref().unwrap()
}

#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn of_key<'t>(tree: &'t BranchTree, wanted: &str) -> Vec<&'t Segment> {
    let segments = tree.records().iter().filter_map(|record| match record {
        Record::Segment(segment) => Some(segment),
        _ => None,
    });
    segments.filter(|segment| segment.source.as_ref().unwrap().key == wanted).collect()
}

/// Everything that a session in memory became: what each key says, contexts, calls, and what was
/// found.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn told(
    name: &str,
    text: &[u8],
    beside: &[(&str, &[u8])],
    options: ReadOptions,
) -> String {
    let beside = beside.iter().map(|(name, text)| ((*name).to_owned(), text.to_vec()));
    told_of(&Input::memory(name, text.to_vec(), beside), options)
}

/// The same of any input.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn told_of(input: &Input, options: ReadOptions) -> String {
    let conversion = match convert_from(input, None, options) {
        Ok(conversion) => conversion,
        Err(error) => return format!("rejected:\n{error}"),
    };
    let (tree, _) =
        BranchTree::from_records(conversion.records.clone(), "records", ReadOptions::STRICT)
            .unwrap();
    let outputs: HashSet<SegmentId> =
        tree.generations().flat_map(|generation| generation.output.iter().copied()).collect();
    let mut out = Vec::new();
    for record in &conversion.records {
        match record {
            Record::Header(header) => {
                let version = header.harness_version.as_deref().unwrap_or("?");
                out.push(format!(
                    "{} {version}, {:?}, {:?}",
                    header.harness, header.fidelity, header.files
                ));
            }
            Record::Segment(segment) if !outputs.contains(&segment.id) => {
                let open = if segment.open { " ..." } else { "" };
                out.push(format!(
                    "  {}: {:?} {:?} {:?}{open}",
                    key(&tree, segment.id),
                    segment.role,
                    segment.origin,
                    text(segment)
                ));
            }
            Record::Append(record) => out.push(context(&tree, record.context)),
            Record::Evict(record) => out.push(context(&tree, record.context)),
            Record::Replace(record) => out.push(context(&tree, record.context)),
            Record::Fork(record) => out
                .push(format!("{} = fork of {}, {:?}", record.context, record.from, record.reason)),
            Record::Generation(generation) => out.push(call(&tree, generation)),
            _ => {}
        }
    }
    out.extend(conversion.report.diagnostics.iter().map(ToString::to_string));
    out.join("\n")
}

/// Place and text of what is wrong under strict reading; lenient reading must call the same faults
/// repaired.
#[allow(dead_code, reason = "each test file uses what it needs of this module")]
pub(crate) fn faults(name: &str, text: &[u8]) -> Vec<String> {
    let read = |options| convert_from(&Input::memory(name, text.to_vec(), []), None, options);
    let Err(HarnessError::Rejected(report)) = read(ReadOptions::STRICT) else {
        panic!("strict reading must reject it")
    };
    let of = |report: &Report, severity| -> Vec<String> {
        report.of(severity).map(|found| format!("{}: {}", found.location, found.fault)).collect()
    };
    let errors = of(&report, Severity::Error);
    let repaired = read(ReadOptions::LENIENT).unwrap();
    assert_eq!(of(&repaired.report, Severity::Repaired), errors);
    let Record::Header(header) = &repaired.records[0] else { panic!("the header stands first") };
    assert_eq!(header.fidelity, Fidelity::Inferred);
    BranchTree::from_records(repaired.records, "records", ReadOptions::STRICT).unwrap();
    errors
}
