//! Which line follows which, and in which conversation.
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::entry::{Body, UserKind};
use super::load::{Fork, SessionLog};
use super::preserve::{self, Compaction};

/// A main thread, a sub-agent or a summariser: lines that form contexts of their own.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) name: String,
    /// Whether the harness names it as the call that summarises.
    pub(super) summarizer: bool,
    /// The last line of another conversation that it starts from, where it does not start from
    /// nothing.
    pub(super) inherits: Option<usize>,
    /// The same where its file names the line, as that of a forked sub-agent does.
    pub(super) forks: Option<usize>,
    pub(super) entries: Vec<usize>,
}

impl Conversation {
    fn new(name: String) -> Self {
        let summarizer = name.starts_with("agent-acompact");
        Self { name, summarizer, inherits: None, forks: None, entries: Vec::new() }
    }
}

/// Every entry with its place, its parent and its conversation.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) parent: Vec<Option<usize>>,
    /// Order in the file, as it would be without lines that were written late.
    pub(super) place: Vec<u64>,
    pub(super) conversation: Vec<usize>,
    pub(super) conversations: Vec<Conversation>,
    pub(super) compactions: Vec<Compaction>,
    /// The lines that reminders of summarisers' files stand behind.
    behind: FxHashMap<usize, usize>,
}

/// Room between the places of two lines, for preserved lines that were written late.
const STEP: u64 = 1 << 24;

/// Room behind the place of a line, for what another file says was sent with it.
pub(super) const BEHIND: u64 = 1 << 20;

enum Raw {
    None,
    Here(usize),
    /// A line of another conversation.
    Elsewhere(usize),
    Dangling,
}

impl Links {
    /// Finds the parent of every entry; a parent that is missing is a fault.
    pub(super) fn new(session: &mut SessionLog) -> Self {
        let count = session.entries.len();
        let mut sorted = Sorted::default();
        sorted.sort(session);
        let mut links = Self {
            parent: vec![None; count],
            place: (1..=count as u64).map(|at| at * STEP).collect(),
            conversation: sorted.of,
            conversations: sorted.all,
            compactions: Vec::new(),
            behind: sorted.behind,
        };
        for (behind, lines) in sorted.reminders {
            for (rank, line) in (1..BEHIND).zip(lines) {
                links.place[line] = links.place[behind] + rank;
            }
        }
        for conversation in 0..links.conversations.len() {
            links.link(session, conversation);
        }
        links.inherit(session);
        preserve::apply(session, &mut links);
        links.cut_cycles(session);
        links
    }

    fn link(&mut self, session: &mut SessionLog, conversation: usize) {
        let entries = self.conversations[conversation].entries.clone();
        let mut previous = None;
        for entry in entries {
            self.parent[entry] = match self.raw_parent(session, entry) {
                Raw::None => None,
                Raw::Here(parent) => Some(parent),
                Raw::Elsewhere(parent) => {
                    let place = |entry: usize| self.place[entry];
                    let inherits = &mut self.conversations[conversation].inherits;
                    if inherits.is_none_or(|other| place(other) < place(parent)) {
                        *inherits = Some(parent);
                    }
                    previous
                }
                Raw::Dangling => {
                    let uuid = session.entries[entry].parent.clone().unwrap_or_default();
                    let taken = match previous {
                        Some(previous) => {
                            format!("line {} before it is taken", session.entries[previous].line)
                        }
                        None => "nothing stands before it, so it is taken as a start".into(),
                    };
                    let message = format!("the parent {uuid} is not in the file; {taken}");
                    session.fault(entry, "parentUuid", "dangling-parent", message);
                    previous
                }
            };
            previous = Some(entry);
        }
    }

    /// Lets the contexts of forked sub-agents go on from the lines that their files name.
    fn inherit(&mut self, session: &mut SessionLog) {
        for file in 0..session.files.len() {
            let Some(Fork { uuid, at }) = session.files[file].fork.take() else { continue };
            let found = session.find_anywhere(&uuid);
            match found.filter(|&entry| file > 0 && self.conversation[entry] != file) {
                Some(entry) => {
                    let conversation = &mut self.conversations[file];
                    (conversation.inherits, conversation.forks) = (Some(entry), Some(entry));
                }
                None => {
                    let message = format!(
                        "the contexts go on from line {uuid}, which is not in what is read: give the session that it is of; else they are taken to start here"
                    );
                    session.draft.fault(&at, "parentLastUuid", "history-elsewhere", message);
                }
            }
        }
    }

    fn raw_parent(&self, session: &SessionLog, entry: usize) -> Raw {
        let line = &session.entries[entry];
        let Some(uuid) = &line.parent else { return Raw::None };
        if let Some(&behind) = self.behind.get(&entry) {
            return Raw::Here(behind);
        }
        match session.find(line.file, uuid) {
            Some(parent) if parent == entry => Raw::Dangling,
            Some(parent) if self.conversation[parent] == self.conversation[entry] => {
                Raw::Here(parent)
            }
            Some(parent) if self.conversation[entry] != 0 => Raw::Elsewhere(parent),
            Some(_) => Raw::Dangling,
            None if line.file == 0 => Raw::Dangling,
            None => session.find_anywhere(uuid).map_or(Raw::Dangling, Raw::Elsewhere),
        }
    }

    /// The line before an entry in its conversation.
    pub(super) fn previous(&self, entry: usize) -> Option<usize> {
        let entries = &self.conversations[self.conversation[entry]].entries;
        let at = entries.binary_search(&entry).ok()?;
        at.checked_sub(1).map(|at| entries[at])
    }

    /// Takes the parent from one line of every circle.
    fn cut_cycles(&mut self, session: &mut SessionLog) {
        let mut seen = vec![0_usize; self.parent.len()];
        for start in 0..self.parent.len() {
            let (mut at, mark) = (start, start + 1);
            while seen[at] == 0 {
                seen[at] = mark;
                let Some(parent) = self.parent[at] else { break };
                if seen[parent] == mark {
                    self.parent[at] = None;
                    let message = "the line is its own ancestor; it is taken as a start".into();
                    session.fault(at, "parentUuid", "parent-cycle", message);
                    break;
                }
                at = parent;
            }
        }
    }
}

/// Lines sorted into the main conversation, one for each other file, and one for each sidechain in
/// the main file.
#[derive(Debug, Default)]
struct Sorted {
    /// The conversation of every line.
    of: Vec<usize>,
    all: Vec<Conversation>,
    /// Lines of summarisers' files that stand in the conversation that is summarised, by the line
    /// of it that they follow.
    reminders: BTreeMap<usize, Vec<usize>>,
    /// The line of it that each of them follows.
    behind: FxHashMap<usize, usize>,
    /// For a reminder that an earlier summariser's file has too, the line of that file.
    first: FxHashMap<usize, usize>,
}

impl Sorted {
    fn sort(&mut self, session: &mut SessionLog) {
        self.all.push(Conversation::new("main".into()));
        for file in session.files.iter().skip(1) {
            let taken = |name: &str| self.all.iter().any(|conversation| conversation.name == name);
            let more = (2..).map(|count| format!("{}-{count}", file.stem));
            let name = std::iter::once(file.stem.clone())
                .chain(more)
                .find(|name| !taken(name))
                .unwrap_or_default();
            self.all.push(Conversation::new(name));
        }
        let main = session.entries.iter().filter(|entry| entry.file == 0);
        let only_sidechains = main.clone().all(|entry| entry.sidechain);
        let is_summariser =
            |file: u32| self.all.get(file as usize).is_some_and(|file| file.summarizer);
        let (summarisers, others): (Vec<usize>, Vec<usize>) = (0..session.entries.len())
            .partition(|&index| is_summariser(session.entries[index].file));
        self.of = vec![usize::MAX; session.entries.len()];
        // What reminders stand behind has its conversation before them.
        for index in others.into_iter().chain(summarisers) {
            let entry = &session.entries[index];
            let conversation = if entry.file > 0 {
                self.reminds(session, index).unwrap_or(entry.file as usize)
            } else if !entry.sidechain || only_sidechains {
                0
            } else {
                let parent = entry.parent.as_deref().and_then(|uuid| session.find(0, uuid));
                match parent.filter(|&parent| parent < index).map(|parent| self.of[parent]) {
                    Some(conversation) if conversation != 0 => conversation,
                    _ => {
                        self.all.push(Conversation::new(format!("sidechain-{}", entry.line)));
                        self.all.len() - 1
                    }
                }
            };
            self.of[index] = conversation;
            self.all[conversation].entries.push(index);
            if self.first.contains_key(&index) {
                session.entries[index].body = Body::Link;
            }
        }
        self.all.iter_mut().for_each(|conversation| conversation.entries.sort_unstable());
    }

    /// The conversation whose requests hold a line of a summariser's file: a reminder that was sent
    /// with a line of it, and that its own file does not have.
    fn reminds(&mut self, session: &SessionLog, index: usize) -> Option<usize> {
        let line = &session.entries[index];
        let own = line.file as usize;
        let user = line.user().filter(|_| self.all[own].summarizer)?;
        // The last line before the call is what asks for the summary.
        let next = session.entries.get(index + 1).filter(|next| next.file == line.file);
        let asks = next.is_none_or(|next| next.user().is_none());
        if asks || user.kind == UserKind::Prompt || !user.answers.is_empty() {
            return None;
        }
        let parent = session.find_anywhere(line.parent.as_deref()?)?;
        let parent = self.first.get(&parent).copied().unwrap_or(parent);
        let conversation = self.of[parent];
        if self.all.get(conversation).is_none_or(|there| there.summarizer) {
            return None;
        }
        let behind = self.behind.get(&parent).copied().unwrap_or(parent);
        let there = self.reminders.entry(behind).or_default();
        let file = |line: usize| session.entries[line].file;
        let repeats = |first: usize| {
            self.first.iter().any(|(&line, &other)| other == first && file(line) == file(index))
        };
        let same = |&other: &usize| {
            let texts = session.entries[other].user().map(|user| &user.texts);
            texts == Some(&user.texts) && file(other) != file(index) && !repeats(other)
        };
        // A line that the conversation itself has of what was attached there.
        let own = |&other: &usize| {
            let entry = &session.entries[other];
            let attached = entry.user().filter(|user| user.kind == UserKind::Attachment);
            entry.parent == line.parent
                && self.of[other] == conversation
                && !repeats(other)
                && attached.is_some_and(|attached| {
                    let whole = user.texts.concat();
                    attached.texts.iter().all(|text| whole.contains(text))
                })
        };
        let known = there.iter().copied().find(same);
        let known = known.or_else(|| (0..session.entries.len()).find(own));
        if let Some(known) = known {
            self.first.insert(index, known);
            return None;
        }
        there.push(index);
        self.behind.insert(index, behind);
        Some(conversation)
    }
}
