//! Lines that another session has as well: the sessions that a resumed one repeats, the one that it
//! was forked from, a copy of its file.
use std::io::{BufRead, Read};
use std::sync::Arc;

use pleach_tree::{JsonLines, Location, ReadOptions, Report};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use super::session::{is_session, subagents};
use crate::core::input::{Member, Relation};
use crate::{HarnessError, Input};

/// What is known of lines that are copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The lines of earlier sessions with the same start, and of their sub-agents.
    uuids: FxHashSet<String>,
    /// The sessions that lie beside, by their ids.
    beside: FxHashMap<String, Member>,
    /// The lines of those that this one says it is forked from; none of one that cannot be read to
    /// its end.
    parents: FxHashMap<String, Option<FxHashSet<String>>>,
    /// Where the first copy stands, and the session that it says it is from, where that one does
    /// not lie beside.
    pub(super) first: Option<Location>,
    pub(super) strange: Option<(Location, String)>,
    /// Lines of a sub-agent's file that are those of the session.
    pub(super) of_main: u64,
    /// Calls that are copies.
    pub(super) calls: u64,
}

/// Where a line was forked from.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ForkedFrom {
    session_id: String,
    message_uuid: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Uuid {
    uuid: Option<String>,
}

impl Copies {
    /// Finds the sessions beside that begin with the same line and come first, by size and name.
    ///
    /// So each of several files that begin alike has the calls that no file before it has,
    /// whichever of them is read. A file beside that cannot be read is a warning, as it may have
    /// nothing to do with this session.
    pub(super) fn find(
        input: &Input,
        options: ReadOptions,
        report: &mut Report,
    ) -> Result<Self, HarnessError> {
        let main = input.main();
        let mut copies = Self::default();
        let start = first_uuid(&main)?;
        let own = rank(&main)?;
        let members = input.beside("").unwrap_or_else(|error| {
            main.warn_unread(Relation::Neighbour, &error, report);
            Vec::new()
        });
        for member in members {
            if !is_session(member.file_name()) || member.listed == main.listed {
                continue;
            }
            if let Some(start) = &start
                && let Err(error) = copies.take(input, &member, start, &own, options)
            {
                member.warn_unread(Relation::Neighbour, &error, report);
                copies.parents.insert(member.stem().to_owned(), None);
            }
            copies.beside.insert(member.stem().to_owned(), member);
        }
        Ok(copies)
    }

    /// Keeps the lines of a file that begins with `start` and comes before the one of rank `own`;
    /// of one that breaks off none, as its calls are in no other session's records then.
    fn take(
        &mut self,
        input: &Input,
        member: &Member,
        start: &str,
        own: &(u64, String),
        options: ReadOptions,
    ) -> Result<(), HarnessError> {
        if rank(member)? > *own || first_uuid(member)?.as_deref() != Some(start) {
            return Ok(());
        }
        self.uuids.extend(uuids(member, options)?);
        // What is wrong with those files is told where that session is converted.
        for agent in subagents(input, member.stem(), |_| {}) {
            self.uuids.extend(uuids(&agent, options).unwrap_or_default());
        }
        Ok(())
    }

    /// Whether a line is a copy; `forked` says where the file itself says that it was forked from.
    pub(super) fn has(
        &mut self,
        uuid: &Arc<str>,
        forked: Option<&ForkedFrom>,
        at: &Location,
        options: ReadOptions,
        report: &mut Report,
    ) -> bool {
        let of_parent = forked.and_then(|forked| {
            let lines = self.parent(&forked.session_id, options, report)?;
            Some(
                lines.contains(&**uuid)
                    || forked.message_uuid.as_ref().is_some_and(|uuid| lines.contains(uuid)),
            )
        });
        let copied = self.uuids.contains(&**uuid) || of_parent == Some(true);
        if let Some(forked) = forked.filter(|_| !copied) {
            self.strange.get_or_insert_with(|| (at.clone(), forked.session_id.clone()));
        }
        if copied {
            self.first.get_or_insert_with(|| at.clone());
        }
        copied
    }

    /// The lines of a session that lies beside.
    fn parent(
        &mut self,
        id: &str,
        options: ReadOptions,
        report: &mut Report,
    ) -> Option<&FxHashSet<String>> {
        if !self.parents.contains_key(id) {
            let lines = self.beside.get(id).and_then(|member| match uuids(member, options) {
                Ok(lines) => Some(lines),
                Err(error) => {
                    member.warn_unread(Relation::Neighbour, &error, report);
                    None
                }
            });
            self.parents.insert(id.to_owned(), lines);
        }
        self.parents.get(id)?.as_ref()
    }
}

/// The uuids of the lines of a file, whatever else is wrong with it.
fn uuids(member: &Member, options: ReadOptions) -> Result<FxHashSet<String>, HarnessError> {
    // What is wrong with that file is told where it is converted itself.
    let lenient = ReadOptions { lenient: true, ..options };
    let (mut values, mut uuids, mut report) =
        (Vec::<Uuid>::new(), FxHashSet::default(), Report::new(lenient));
    let mut lines = JsonLines::new(member.open()?, member.name.clone(), lenient);
    let io = |source| HarnessError::io(&member.name, source);
    while lines.next_line(&mut values, &mut report).map_err(io)?.is_some() {
        uuids.extend(values.drain(..).filter_map(|line| line.uuid));
    }
    Ok(uuids)
}

/// What files that begin alike are ordered by.
fn rank(member: &Member) -> Result<(u64, String), HarnessError> {
    Ok((member.size()?, member.file_name().to_owned()))
}

/// The uuid of the first line that has one, where it is one that no two lines share by chance.
///
/// Every session of a folder is held against every other one, so no more of a file is read than
/// that line.
fn first_uuid(member: &Member) -> Result<Option<String>, HarnessError> {
    /// Where a file that has none so far is given up.
    const LIMIT: u64 = 4 << 20;
    let mut reader = member.open_for(1 << 12)?.take(LIMIT);
    let mut line = Vec::new();
    let io = |source| HarnessError::io(&member.name, source);
    while reader.read_until(b'\n', &mut line).map_err(io)? > 0 {
        if let Some(uuid) = serde_json::from_slice::<Uuid>(&line).ok().and_then(|line| line.uuid) {
            return Ok(Some(uuid).filter(|uuid| is_unique(uuid)));
        }
        line.clear();
    }
    Ok(None)
}

fn is_unique(uuid: &str) -> bool {
    let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
