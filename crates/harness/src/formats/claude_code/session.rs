//! From the files of a session to its records.
use std::io::BufRead;
use std::sync::Arc;

use pleach_tree::{GenerationId, Location, ReadOptions};

use rustc_hash::FxHashMap;

use super::copies::Copies;
use super::link::Links;
use super::load::SessionLog;
use super::replay::Replay;
use super::summary;
use super::turns::Turns;
use crate::core::format::Format;
use crate::core::input::{Member, Relation};
use crate::core::shape::Shape;
use crate::core::usage::UsageCheck;
use crate::{Conversion, HarnessError, Input};

/// One file of a session, opened.
#[derive(Debug)]
pub struct SessionInput<R> {
    /// Its text.
    pub reader: R,
    /// The name that errors use.
    pub name: String,
    /// The name that the header lists, relative to the folder of the session.
    pub listed: String,
}

/// How a session of Claude Code is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("claude-code", "a Claude Code session", is_line, convert);

fn is_line(shape: &Shape) -> bool {
    let line = shape.has("uuid") && (shape.has("sessionId") || shape.has("isSidechain"));
    let beside = shape.has("leafUuid") || shape.has_all(&["messageId", "snapshot"]);
    shape.has("type") && (line || beside || shape.has("sessionId"))
}

/// Converts a session file and what its sub-agents wrote beside it; what cannot be read of the
/// latter is a warning.
fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut session = SessionLog::new(options);
    session.copies = Copies::find(input, options, &mut session.draft.report)?;
    let (main, stem) = (input.main(), input.stem());
    read(&mut session, &main)?;
    let report = &mut session.draft.report;
    for member in &subagents(input, &stem, |error| main.warn_unread(Relation::Part, error, report))
    {
        if let Err(error) = read(&mut session, member) {
            member.warn_unread(Relation::Part, &error, &mut session.draft.report);
        }
    }
    finish(session)
}

/// The files of the sub-agents of a session, and in the folders inside theirs, where those of a
/// workflow lie beside its journal.
pub(super) fn subagents(
    input: &Input,
    session: &str,
    mut unlisted: impl FnMut(&HarnessError),
) -> Vec<Member> {
    let folder = format!("{session}/subagents");
    let (mut found, mut open) = (Vec::new(), vec![folder.clone()]);
    while let Some(inside) = open.pop().filter(|_| !session.is_empty()) {
        let listed = input.beside(&inside).and_then(|files| Ok((files, input.folders(&inside)?)));
        let (files, folders) = listed.unwrap_or_else(|error| {
            unlisted(&error);
            Default::default()
        });
        let is_agent =
            |name: &str| is_session(name) && (inside == folder || name.starts_with("agent-"));
        found.extend(files.into_iter().filter(|member| is_agent(member.file_name())));
        open.extend(folders.iter().rev().map(|name| format!("{inside}/{name}")));
    }
    found
}

fn read(session: &mut SessionLog, member: &Member) -> Result<(), HarnessError> {
    let read = session.read(member.open()?, member.name.clone(), member.listed.clone());
    read.map_err(|source| HarnessError::io(&member.name, source))
}

pub(super) fn is_session(name: &str) -> bool {
    [".jsonl", ".jsonl.gz", ".jsonl.zst"].iter().any(|end| name.ends_with(end))
}

/// Converts a session that is already open: its own file and those of its sub-agents.
///
/// # Errors
/// [`HarnessError::Io`], or [`HarnessError::Rejected`] with every fault of the files.
pub fn convert_readers<R: BufRead>(
    main: SessionInput<R>,
    subagents: impl IntoIterator<Item = SessionInput<R>>,
    options: ReadOptions,
) -> Result<Conversion, HarnessError> {
    let mut session = SessionLog::new(options);
    for input in std::iter::once(main).chain(subagents) {
        let name: Arc<str> = input.name.as_str().into();
        let read = session.read(input.reader, name, input.listed);
        read.map_err(|source| HarnessError::Io { file: input.name, source })?;
    }
    finish(session)
}

fn finish(mut session: SessionLog) -> Result<Conversion, HarnessError> {
    let links = Links::new(&mut session);
    let turns = Turns::new(&mut session, &links);
    let summarisers = summary::find(&mut session, &links, &turns);
    let mut replay = Replay::new(&mut session, &links, &turns, summarisers);
    replay.run();
    let usage = UsageCheck::of(&replay.counted);
    let heads: FxHashMap<GenerationId, usize> = replay
        .generations
        .iter()
        .map(|(&turn, &generation)| (generation, turns.turns[turn].head))
        .collect();
    report_copies(&mut session);
    report_usage(&mut session, &heads, &usage);
    let usage = Some(usage).filter(|usage| !usage.eras.is_empty());
    Ok(Conversion { usage, ..session.draft.finish()? })
}

fn report_copies(session: &mut SessionLog) {
    let copies = std::mem::take(&mut session.copies);
    let mut warn = |at: Location, message| session.draft.warn(&at, "", "copied-history", message);
    if let Some(at) = copies.first {
        let (calls, lines) = (copies.calls, copies.of_main);
        let message = format!(
            "calls ({calls}) of other files, and lines ({lines}) of the session itself, are repeated; they are context"
        );
        warn(at, message);
    }
    if let Some((at, from)) = copies.strange {
        let message = format!(
            "lines are forked from session {from}, which is not beside this one, cannot be read or does not have them: they are calls here"
        );
        warn(at, message);
    }
}

/// Warns of what the usage check shows; `heads` has the first line of every call.
fn report_usage(
    session: &mut SessionLog,
    heads: &FxHashMap<GenerationId, usize>,
    usage: &UsageCheck,
) {
    let head = |generation: GenerationId| heads.get(&generation).copied();
    for era in &usage.eras {
        if let Some(line) = era
            .calls
            .first()
            .filter(|_| era.hidden_tokens >= 1.0)
            .and_then(|call| head(call.generation))
        {
            let message = format!(
                "about {:.0} tokens of every request of thread {} from here on are not in the file: system prompt, tools, reminders, attached files",
                era.hidden_tokens, era.thread
            );
            session.warn(line, "message.usage", "hidden-context", message);
        }
        for call in era.calls.iter().filter(|call| call.deviates) {
            if let Some(line) = head(call.generation) {
                let mut message = format!(
                    "the API counted {} input tokens where the reconstructed request has about {:.0}",
                    call.recorded_tokens, call.expected_tokens
                );
                if let Some(jump) = era.jumps.iter().find(|jump| jump.generation == call.generation)
                {
                    let more = if jump.tokens > 0.0 { "more" } else { "fewer" };
                    message += &format!(
                        "; every request from here on has about {:.0} {more}, {}",
                        jump.tokens.abs(),
                        jump.cause
                    );
                }
                session.warn(line, "message.usage", "usage-deviates", message);
            }
        }
    }
}
