//! Session files as entries.
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use pleach_tree::{Fidelity, JsonLines, Location, ReadOptions};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use super::copies::Copies;
use super::entry::{Flaw, LogEntry};
use super::line::Line;
use super::queue::Move;
use crate::core::draft::Draft;
use crate::core::input::stem;
use crate::core::script::Spot;

/// Subtypes of system lines that are known.
const SYSTEM: [&str; 16] = [
    "compact_boundary",
    "microcompact_boundary",
    "local_command",
    "turn_duration",
    "stop_hook_summary",
    "api_error",
    "api_metrics",
    "informational",
    "model_consent_fallback",
    "model_refusal_fallback",
    "away_summary",
    "memory_saved",
    "agents_killed",
    "bridge_status",
    "permission_retry",
    "scheduled_task_fire",
];

/// Types of lines that are known and stand in no context.
const SILENT: [&str; 22] = [
    "progress",
    "summary",
    "file-history-snapshot",
    "queue-operation",
    "custom-title",
    "ai-title",
    "last-prompt",
    "tag",
    "agent-name",
    "agent-color",
    "agent-setting",
    "pr-link",
    "mode",
    "permission-mode",
    "file-history-delta",
    "bridge-session",
    "worktree-state",
    "relocated",
    "continued-in",
    "cost-state",
    "frame-link",
    "atis-latch",
];

/// What the types of the bookkeeping of published pages begin with; it stands in no context.
const SILENT_START: &str = "artifact-";

/// Everything that was read: a session and what its sub-agents wrote.
#[derive(Debug)]
pub(super) struct SessionLog {
    pub(super) files: Vec<SessionFile>,
    /// The lines of all files, file after file, in file order.
    pub(super) entries: Vec<LogEntry>,
    /// The lines of sub-agents, of which one may begin with those of another.
    agents: FxHashSet<Arc<str>>,
    /// The movements of the session's queue of prompts, while it is read.
    pub(super) moves: Vec<Move>,
    /// Whether the session writes a line for queued text that a turn takes in.
    pub(super) queued_lines: bool,
    pub(super) draft: Draft,
    pub(super) copies: Copies,
}

/// One file of a session.
#[derive(Debug)]
pub(super) struct SessionFile {
    /// The name that errors use.
    pub(super) name: Arc<str>,
    /// What its thread is called.
    pub(super) stem: String,
    /// Where its contexts go on from, as those of a forked sub-agent do.
    pub(super) fork: Option<Fork>,
    by_uuid: FxHashMap<Arc<str>, usize>,
}

/// A line of another file that the contexts of a file go on from.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) uuid: Arc<str>,
    /// Where the file says so.
    pub(super) at: Location,
}

impl SessionLog {
    pub(super) fn new(options: ReadOptions) -> Self {
        Self {
            files: Vec::new(),
            entries: Vec::new(),
            agents: FxHashSet::default(),
            moves: Vec::new(),
            queued_lines: false,
            draft: Draft::new("claude-code", Fidelity::Message, options),
            copies: Copies::default(),
        }
    }

    /// Reads one file; the first is the session itself.
    ///
    /// # Errors
    /// Only those of `reader`.
    pub(super) fn read(
        &mut self,
        reader: impl BufRead,
        name: Arc<str>,
        listed: String,
    ) -> std::io::Result<()> {
        let stem = stem(&listed).to_owned();
        self.draft.file_named(Arc::clone(&name), listed);
        self.files.push(SessionFile {
            name: Arc::clone(&name),
            stem,
            fork: None,
            by_uuid: FxHashMap::default(),
        });
        let mut lines = JsonLines::new(reader, Arc::clone(&name), self.draft.options);
        let mut values: Vec<Line> = Vec::new();
        let mut unknown: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        let mut counted: BTreeMap<Flaw, (u64, usize)> = BTreeMap::new();
        while let Some(at) = lines.next_line(&mut values, &mut self.draft.report)? {
            for mut line in values.drain(..) {
                match line.kind.as_deref() {
                    Some("user" | "assistant" | "attachment") => {}
                    Some("queue-operation") if self.files.len() == 1 => {
                        self.queue(&mut line, &at);
                        continue;
                    }
                    Some("fork-context-ref") => {
                        self.fork(line, &at);
                        continue;
                    }
                    Some(kind) if SILENT.contains(&kind) || kind.starts_with(SILENT_START) => {}
                    Some("system")
                        if line
                            .subtype
                            .as_deref()
                            .is_none_or(|subtype| SYSTEM.contains(&subtype)) => {}
                    kind => {
                        let subtype = line.subtype.as_deref().filter(|_| kind == Some("system"));
                        let name =
                            [kind, subtype].into_iter().flatten().collect::<Vec<_>>().join("/");
                        unknown.entry(name).or_insert((at.line, 0)).1 += 1;
                    }
                }
                self.take(line, &at, &mut counted);
            }
        }
        if self.files.len() == 1 {
            self.take_queued();
        }
        for (kind, (line, count)) in unknown {
            let message = format!(
                "type {kind:?} is not known to this adapter; lines of it ({count}) are taken as no context"
            );
            self.draft.warn(&Location::line(&name, line), "", "unknown-line-type", message);
        }
        self.report_counted(&name, counted);
        Ok(())
    }

    /// Warns of what is told once for all lines of a file.
    fn report_counted(&mut self, file: &Arc<str>, found: BTreeMap<Flaw, (u64, usize)>) {
        for (flaw, (line, count)) in found {
            let (key, code, message) = match flaw {
                Flaw::Unsent(kind) => (
                    "attachment.type",
                    "unknown-attachment",
                    format!(
                        "what was sent of attachments of type {kind:?} ({count}) is neither recorded nor known to this adapter; they stand in no context"
                    ),
                ),
                Flaw::Worded(kind) => (
                    "attachment.type",
                    "worded-attachment",
                    format!(
                        "attachments of type {kind:?} ({count}) are recorded as data; they stand in the words that the harness is known to use"
                    ),
                ),
                Flaw::Transformed(kind) => (
                    "message.input_transformations",
                    "unknown-transformation",
                    format!(
                        "what changes of type {kind:?} ({count}) do to a request is not known to this adapter; contexts are as if there were none"
                    ),
                ),
                _ => continue,
            };
            self.draft.warn(&Location::line(file, line), key, code, message);
        }
    }

    fn fork(&mut self, line: Line, at: &Location) {
        let key = "parentLastUuid";
        let Some(file) = self.files.last_mut() else { return };
        let (code, message) = match (&line.parent_last_uuid, &file.fork) {
            (Some(uuid), Some(fork)) if **uuid == *fork.uuid => return,
            (Some(uuid), None) => {
                file.fork = Some(Fork { uuid: uuid.as_str().into(), at: at.clone() });
                return;
            }
            (Some(_), Some(_)) => {
                ("second-fork", "the file goes on from another line already, which is taken")
            }
            (None, _) => (
                "no-fork-parent",
                "the line that the contexts go on from is not named; they are taken to start here",
            ),
        };
        self.draft.fault(at, key, code, message);
    }

    fn take(&mut self, mut line: Line, at: &Location, counted: &mut BTreeMap<Flaw, (u64, usize)>) {
        if self.draft.header.harness_version.is_none() {
            self.draft.header.harness_version.clone_from(&line.version);
        }
        let file = self.files.len() - 1;
        let number = u32::try_from(file).unwrap_or(u32::MAX);
        let forked = line.forked_from.take();
        let queued = |raw: &RawValue| raw.get().contains(r#""queued_command""#);
        self.queued_lines |= line.attachment.as_deref().is_some_and(queued);
        let (entry, flaws) = LogEntry::new(line, number, at.line, file > 0);
        for flaw in flaws {
            let Some((code, key, message)) = flaw.fault() else {
                counted.entry(flaw).or_insert((at.line, 0)).1 += 1;
                continue;
            };
            self.draft.fault(at, key, code, message);
        }
        let Some(mut entry) = entry else { return };
        if file == 0 {
            entry.copied = self.copies.has(
                &entry.uuid,
                forked.as_ref(),
                at,
                self.draft.options,
                &mut self.draft.report,
            );
        } else if self.files[0].by_uuid.contains_key(&entry.uuid)
            || self.agents.contains(&entry.uuid)
                && !self.files[file].by_uuid.contains_key(&entry.uuid)
        {
            // Its children find it where it stands first.
            self.copies.of_main += 1;
            self.copies.first.get_or_insert_with(|| at.clone());
            return;
        } else {
            entry.copied =
                self.copies.has(&entry.uuid, None, at, self.draft.options, &mut self.draft.report);
            self.agents.insert(Arc::clone(&entry.uuid));
        }
        match self.files[file].by_uuid.get(&entry.uuid) {
            None => {
                self.files[file].by_uuid.insert(Arc::clone(&entry.uuid), self.entries.len());
                self.entries.push(entry);
            }
            Some(&first) if self.entries[first].body == entry.body => {
                let message = format!(
                    "the line repeats line {}, which holds its place",
                    self.entries[first].line
                );
                self.draft.warn(at, "uuid", "repeated-line", message);
            }
            Some(&first) => {
                let message = format!(
                    "line {} has the same uuid and other content; the first is kept",
                    self.entries[first].line
                );
                self.draft.fault(at, "uuid", "duplicate-uuid", message);
            }
        }
    }

    /// The entry of a file with this uuid.
    pub(super) fn find(&self, file: u32, uuid: &str) -> Option<usize> {
        self.files.get(file as usize)?.by_uuid.get(uuid).copied()
    }

    /// The entry with this uuid of the first file that has one.
    pub(super) fn find_anywhere(&self, uuid: &str) -> Option<usize> {
        self.files.iter().find_map(|file| file.by_uuid.get(uuid).copied())
    }

    /// Where an entry was read, as segments have it.
    pub(super) fn spot(&self, entry: usize) -> Spot {
        Spot { file: self.entries[entry].file, at: self.location(entry) }
    }

    /// Where an entry was read.
    pub(super) fn location(&self, entry: usize) -> Location {
        let entry = &self.entries[entry];
        Location::line(&self.files[entry.file as usize].name, entry.line)
    }

    /// Marks a line as one that another file has as its own.
    pub(super) fn copied(&mut self, entry: usize) {
        let at = self.location(entry);
        self.copies.first.get_or_insert(at);
        self.entries[entry].copied = true;
    }

    /// Notes a fault that lenient reading repairs as `message` says.
    pub(super) fn fault(&mut self, entry: usize, key: &str, code: &'static str, message: String) {
        let at = self.location(entry);
        self.draft.fault(&at, key, code, message);
    }

    /// Notes what a reader should know although nothing had to be guessed.
    pub(super) fn warn(&mut self, entry: usize, key: &str, code: &'static str, message: String) {
        let at = self.location(entry);
        self.draft.warn(&at, key, code, message);
    }
}
