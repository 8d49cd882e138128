//! Records as lines of text: each context by what its segments say, shortened, and each call by
//! what it said.
#![allow(dead_code, reason = "each test file uses a part of it")]
use pleach_harness::{Conversion, Harness, HarnessError, Input, ReadOptions, convert_from};
use pleach_tree::{
    BranchTree, ContextId, Evict, Evicted, Record, Report, Segment, SegmentId, Span,
};

pub(crate) fn convert_text(
    text: &str,
    harness: Option<Harness>,
    options: ReadOptions,
) -> Result<Conversion, HarnessError> {
    convert_from(&Input::memory("log.jsonl", text.as_bytes().to_vec(), []), harness, options)
}

/// What a log that strict reading takes becomes.
pub(crate) fn told(text: &str, harness: Harness) -> String {
    told_of(&convert_text(text, Some(harness), ReadOptions::STRICT).unwrap())
}

pub(crate) fn tree(conversion: &Conversion) -> BranchTree {
    BranchTree::from_records(conversion.records.clone(), "records", ReadOptions::STRICT).unwrap().0
}

pub(crate) fn told_of(conversion: &Conversion) -> String {
    let tree = tree(conversion);
    let mut out = Vec::new();
    for record in &conversion.records {
        match record {
            Record::Append(record) => {
                let from = record.from.map_or("nothing".into(), |from| from.to_string());
                out.push(format!("{} = {from} and more", record.context));
            }
            Record::Evict(record) => out.push(evict(&tree, record)),
            Record::Replace(record) => out.push(format!(
                "{} = {} as a new list\n{}",
                record.context,
                record.from,
                list(&tree, record.context)
            )),
            Record::Fork(record) => {
                out.push(format!("{} = {} again, {:?}", record.context, record.from, record.reason))
            }
            Record::Generation(generation) => {
                let said: Vec<String> =
                    generation.output.iter().map(|id| brief(tree.segment(*id).unwrap())).collect();
                let unrecorded = if generation.unrecorded.is_empty() {
                    String::new()
                } else {
                    format!(" without {:?}", generation.unrecorded)
                };
                out.push(format!(
                    "{} in {} of {} {}{unrecorded}\n{}\n    => {}",
                    generation.id,
                    generation.context,
                    generation.rollout,
                    generation.thread,
                    list(&tree, generation.context),
                    said.join(" | ")
                ));
            }
            Record::Outcome(outcome) => {
                out.push(format!(
                    "{} of group {} ended {:?} with {}",
                    outcome.rollout, outcome.group, outcome.status, outcome.reward
                ));
            }
            _ => {}
        }
    }
    out.extend(found(&conversion.report));
    out.join("\n")
}

/// Everything that was found, one a line.
pub(crate) fn found(report: &Report) -> Vec<String> {
    report.diagnostics.iter().map(ToString::to_string).collect()
}

/// The faults of a log that strict reading rejects.
pub(crate) fn rejected(text: &str, harness: Harness) -> String {
    match convert_text(text, Some(harness), ReadOptions::STRICT) {
        Err(HarnessError::Rejected(report)) => found(&report).join("\n"),
        other => panic!("must be rejected: {other:?}"),
    }
}

fn evict(tree: &BranchTree, record: &Evict) -> String {
    let gone: Vec<String> = record.evicted.iter().map(|evicted| range(tree, evicted)).collect();
    let put = record.replacement.as_ref().map_or("nothing".into(), |put| {
        let put_for: Vec<String> =
            put.segments.iter().map(|id| brief(tree.segment(*id).unwrap())).collect();
        format!("{:?} {:?} {}", put.kind, put.place, put_for.join(" | "))
    });
    let by = record.by.as_ref().map_or("nobody".into(), |by| {
        let name = by.generation.map(|id| id.to_string()).or(by.name.clone()).unwrap_or_default();
        format!("{:?} {name}", by.kind).trim_end().to_owned()
    });
    let evidence = record.evidence.map_or(String::new(), |evidence| format!(", {evidence:?}"));
    format!(
        "{} = {} without {}\n    for it {put} by {by}{evidence}",
        record.context,
        record.from,
        gone.join(" | ")
    )
}

fn range(tree: &BranchTree, evicted: &Evicted) -> String {
    let segment = tree.segment(evicted.segment).unwrap();
    match evicted.tokens {
        Some((start, end)) => {
            format!("{:?}", &segment.tokens.as_ref().unwrap()[start as usize..end as usize])
        }
        None => brief(segment),
    }
}

fn list(tree: &BranchTree, context: ContextId) -> String {
    let spans: Vec<String> =
        tree.spans(context).unwrap().iter().map(|span| part(tree, *span)).collect();
    format!("    [{}]", spans.join(" | "))
}

fn part(tree: &BranchTree, span: Span) -> String {
    let segment = tree.segment(span.segment).unwrap();
    match &segment.tokens {
        Some(tokens) => {
            format!("{}{:?}", mark(segment), &tokens[span.start as usize..span.end as usize])
        }
        None => brief(segment),
    }
}

/// A segment by who wrote it and what it says.
fn brief(segment: &Segment) -> String {
    match (&segment.text, &segment.tokens) {
        (_, Some(tokens)) => format!("{}{tokens:?}", mark(segment)),
        (Some(text), None) => {
            let short: String = text.chars().take(48).collect();
            let more = if short.len() < text.len() { ".." } else { "" };
            format!("{}{}{more}", mark(segment), short.replace('\n', "\\n"))
        }
        (None, None) => format!("{}?", mark(segment)),
    }
}

fn mark(segment: &Segment) -> String {
    let weight = if segment.loss.is_some() { "*" } else { "" };
    format!("{:?}/{:?}{weight} ", segment.role, segment.origin).to_lowercase()
}

/// The ids of segments that are the output of more than one call.
pub(crate) fn trained_twice(tree: &BranchTree) -> Vec<SegmentId> {
    let mut seen = std::collections::HashSet::new();
    tree.generations()
        .flat_map(|generation| generation.output.clone())
        .filter(|id| !seen.insert(*id))
        .collect()
}
