//! What a full compaction starts from and what it keeps.
use rustc_hash::FxHashMap;

use super::link::Links;
use super::load::SessionLog;

/// A full compaction, its lines found.
#[derive(Debug)]
pub(super) struct Compaction {
    /// The line of the boundary.
    pub(super) boundary: usize,
    /// The lines of the summary.
    pub(super) summary: Vec<usize>,
    /// The preserved lines, in order.
    pub(super) preserved: Vec<usize>,
    /// Whether what stands between the first and the last of them is preserved too: a walk over
    /// parents loses parallel results.
    pub(super) whole_run: bool,
    /// Whether the preserved lines stand before the summary.
    pub(super) summary_last: bool,
}

/// Finds the compactions and gives late lines the place they were sampled at.
pub(super) fn apply(session: &mut SessionLog, links: &mut Links) {
    let lines = 0..session.entries.len();
    let boundaries: Vec<usize> =
        lines.clone().filter(|&entry| session.entries[entry].boundary().is_some()).collect();
    let mut summaries: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for entry in lines.filter(|&entry| session.entries[entry].is_summary()) {
        if let Some(boundary) = summarises(session, links, entry) {
            summaries.entry(boundary).or_default().push(entry);
        }
    }
    let mut kept_by: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for boundary in boundaries {
        let summary = summaries.remove(&boundary).unwrap_or_default();
        let compaction = find(session, links, boundary, summary);
        place(session, links, &compaction);
        for &line in &compaction.preserved {
            kept_by.entry(line).or_default().push(links.compactions.len());
        }
        links.compactions.push(compaction);
    }
    follow(links, &kept_by);
}

fn find(
    session: &mut SessionLog,
    links: &Links,
    boundary: usize,
    summary: Vec<usize>,
) -> Compaction {
    let mut compaction = Compaction {
        boundary,
        summary,
        preserved: Vec::new(),
        whole_run: false,
        summary_last: false,
    };
    let Some(record) = session.entries[boundary].boundary() else { return compaction };
    let file = session.entries[boundary].file;
    let anchor = record.anchor.as_deref().and_then(|uuid| session.find(file, uuid));
    compaction.summary_last = anchor == Some(boundary);
    match (record.preserved.clone(), record.ends.clone()) {
        (Some(uuids), _) => compaction.preserved = listed(session, boundary, &uuids),
        (None, Some((head, tail))) => {
            compaction.preserved = walked(session, links, boundary, [&head, &tail]);
            compaction.whole_run = true;
        }
        (None, None) => {}
    }
    compaction
}

/// The boundary that a summary belongs to: the first one above it that no other summary or message
/// parts from it.
fn summarises(session: &SessionLog, links: &Links, summary: usize) -> Option<usize> {
    let mut at = links.parent[summary];
    for _ in 0..session.entries.len() {
        let entry = at?;
        if session.entries[entry].boundary().is_some() {
            return Some(entry);
        }
        if session.entries[entry].assistant().is_some() {
            return None;
        }
        at = links.parent[entry];
    }
    None
}

fn listed(session: &mut SessionLog, boundary: usize, uuids: &[String]) -> Vec<usize> {
    let file = session.entries[boundary].file;
    let mut found = Vec::with_capacity(uuids.len());
    for uuid in uuids {
        match session.find(file, uuid) {
            Some(entry) if found.contains(&entry) => {}
            Some(entry) => found.push(entry),
            None => missing(session, boundary, uuid),
        }
    }
    found
}

fn missing(session: &mut SessionLog, boundary: usize, uuid: &str) {
    let message = format!("the preserved line {uuid} is not in the file; it is left out");
    session.fault(boundary, "compactMetadata", "preserved-missing", message);
}

/// The lines from `head` to `tail` over parents; where the walk does not arrive, its ends and what
/// it found.
fn walked(session: &mut SessionLog, links: &Links, boundary: usize, ends: [&str; 2]) -> Vec<usize> {
    let file = session.entries[boundary].file;
    let [head, tail] = ends.map(|uuid| session.find(file, uuid));
    for (uuid, end) in ends.into_iter().zip([head, tail]) {
        if end.is_none() {
            missing(session, boundary, uuid);
        }
    }
    let (Some(head), Some(tail)) = (head, tail) else { return head.or(tail).into_iter().collect() };
    let mut walk = Vec::new();
    let mut at = Some(tail);
    while let Some(entry) =
        at.filter(|&entry| entry != boundary && !session.entries[entry].is_summary())
    {
        walk.push(entry);
        if entry == head || walk.len() > session.entries.len() {
            break;
        }
        at = links.parent[entry];
    }
    if walk.last() != Some(&head) {
        let late = |&entry: &usize| entry > boundary;
        walk.retain(late);
        walk.push(head);
    }
    walk.reverse();
    walk
}

/// Places the boundary and its late lines behind what stood before it.
fn place(session: &mut SessionLog, links: &mut Links, compaction: &Compaction) {
    let boundary = compaction.boundary;
    let logical = logical_parent(session, links, compaction);
    let mut before = logical;
    let count = compaction.preserved.len() as u64;
    for (rank, &line) in compaction.preserved.iter().enumerate() {
        if line > boundary && links.conversation[line] == links.conversation[boundary] {
            links.place[line] = links.place[boundary] - count + rank as u64;
            let preceding = rank.checked_sub(1).map(|rank| compaction.preserved[rank]);
            // Between the ends of a run that is not listed, what precedes a late line is known only
            // where the walk went through.
            let broken =
                |&preceding: &usize| compaction.whole_run && links.parent[line] != Some(preceding);
            links.parent[line] = preceding.filter(|preceding| !broken(preceding)).or(logical);
            before = Some(line);
            let number = session.entries[boundary].line;
            let message = format!(
                "the line was sampled before the boundary on line {number} that preserves it, and is placed there"
            );
            session.warn(line, "uuid", "late-line", message);
        }
    }
    links.parent[boundary] = before;
}

/// The line that a boundary follows; one that is not there before it is a fault, and the line
/// before the boundary is taken.
fn logical_parent(
    session: &mut SessionLog,
    links: &Links,
    compaction: &Compaction,
) -> Option<usize> {
    let boundary = compaction.boundary;
    let uuid =
        session.entries[boundary].boundary().and_then(|record| record.logical_parent.clone());
    let found = uuid.as_deref().and_then(|uuid| session.find(session.entries[boundary].file, uuid));
    let found = found.filter(|&entry| links.conversation[entry] == links.conversation[boundary]);
    if let Some(entry) = found.filter(|&entry| entry < boundary) {
        return Some(entry);
    }
    let taken = links.previous(boundary);
    if found.is_some_and(|entry| compaction.preserved.contains(&entry)) {
        return taken;
    }
    let what = match (&uuid, found) {
        (None, _) => "no logical parent is recorded".to_owned(),
        (Some(uuid), None) => format!("the logical parent {uuid} is not in the file"),
        (Some(uuid), Some(entry)) => {
            format!(
                "the logical parent {uuid} stands behind the boundary, on line {}",
                session.entries[entry].line
            )
        }
    };
    let then = match taken {
        Some(entry) => format!(
            "line {}, the last one before the boundary, is taken",
            session.entries[entry].line
        ),
        None => "nothing stands before the boundary, so the summary is taken as the start".into(),
    };
    session.fault(
        boundary,
        "logicalParentUuid",
        "dangling-logical-parent",
        format!("{what}; {then}"),
    );
    taken
}

/// A line that follows a preserved one behind the boundary follows the compaction, not what stood
/// before it.
fn follow(links: &mut Links, kept_by: &FxHashMap<usize, Vec<usize>>) {
    for entry in 0..links.parent.len() {
        let Some(compactions) = links.parent[entry].and_then(|parent| kept_by.get(&parent)) else {
            continue;
        };
        let moved = |&&index: &&usize| {
            let compaction = &links.compactions[index];
            entry > compaction.boundary && !compaction.preserved.contains(&entry)
        };
        if let Some(&last) = compactions.iter().rev().find(moved) {
            let compaction = &links.compactions[last];
            links.parent[entry] =
                Some(compaction.summary.last().copied().unwrap_or(compaction.boundary));
        }
    }
}
