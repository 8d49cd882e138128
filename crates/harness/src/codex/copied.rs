//! History that a rollout copies from the one it was forked from.
use pleach_tree::{JsonLines, ReadOptions, Report};

use super::item::{self, Piece};
use super::line::{Line, Meta, Payload};
use crate::input::{Member, Relation};
use crate::script::{Script, Spot};
use crate::{HarnessError, Input};

/// What is known of the copied part.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// The rollout's own id.
    own: Option<String>,
    /// The rollout that it was forked from, and where that is said.
    parent: Option<(String, Spot)>,
    /// The items of the parent, by a number for their content, where its file lies beside and can be read.
    items: Option<Vec<u64>>,
    /// How many of the items were met.
    met: usize,
    /// Whether items of its own have begun.
    own_begun: bool,
    /// Calls that are copies.
    pub(super) calls: u64,
}

impl Copied {
    /// Takes note of a session line: it says where the rollout was forked from, or is copied from there itself; of a parent that
    /// cannot be read to its end nothing is known to be a copy.
    pub(super) fn meta(&mut self, script: &mut Script, input: &Input, meta: &Meta, spot: &Spot) {
        if self.parent.is_some() {
            return;
        }
        let parent = match &self.own {
            None => meta.forked_from_id.clone(),
            Some(own) => meta.id.clone().filter(|id| id != own),
        };
        self.own = self.own.take().or_else(|| meta.id.clone());
        let Some(parent) = parent.filter(|parent| !parent.is_empty()) else { return };
        let member = find(script, input, &parent);
        self.parent = Some((parent, spot.clone()));
        match member.map(|member| (items(&member, spot, script.draft.options), member)) {
            Some((Ok(items), _)) => self.items = Some(items),
            Some((Err(error), member)) => script.draft.unread(&member, Relation::Neighbour, &error),
            None => {}
        }
    }

    /// Whether an item is one of the parent's.
    pub(super) fn is_copy(&mut self, piece: &Piece) -> bool {
        let Some(items) = self.items.as_ref().filter(|_| !self.own_begun) else { return false };
        let Some(number) = piece.number() else { return false };
        match items[self.met..].iter().position(|&item| item == number) {
            Some(at) => {
                self.met += at + 1;
                true
            }
            None => {
                self.own_begun = true;
                false
            }
        }
    }

    pub(super) fn report(&self, script: &mut Script) {
        let Some((parent, spot)) = &self.parent else { return };
        let message = match &self.items {
            Some(_) => {
                format!("calls ({}) are copied from rollout {parent}, which lies beside; they are context here", self.calls)
            }
            None => {
                format!(
                    "the rollout was forked from {parent}, which is not beside it or cannot be read: calls of that one are in both files"
                )
            }
        };
        script.draft.warn(&spot.at, "payload", "copied-history", message);
    }
}

/// The items of a rollout, by a number for their content.
fn items(member: &Member, spot: &Spot, options: ReadOptions) -> Result<Vec<u64>, HarnessError> {
    // What is wrong with that file is told where it is converted itself.
    let (mut items, mut values, mut report) = (Vec::new(), Vec::<Line>::new(), Report::default());
    let lenient = ReadOptions { lenient: true, ..options };
    let mut lines = JsonLines::new(member.open()?, member.name.clone(), lenient);
    let io = |source| HarnessError::io(&member.name, source);
    while lines.next_line(&mut values, &mut report).map_err(io)?.is_some() {
        for line in values.drain(..) {
            if let Payload::Item(item) = line.payload {
                items.extend(item::piece(*item, "", spot).number());
            }
        }
    }
    Ok(items)
}

/// The file of a rollout, in the folder of the one that is read or in that of another day, `../../../YYYY/MM/DD`.
fn find(script: &mut Script, input: &Input, id: &str) -> Option<Member> {
    let (main, end) = (input.main(), format!("-{id}"));
    let is_it = |member: &Member| {
        let name = member.file_name();
        let stem = name.split_once(".jsonl").map_or(name, |(stem, _)| stem);
        stem.ends_with(&end) && member.name != main.name
    };
    let beside = listed(script, &main, input.beside(""));
    if let Some(found) = beside.into_iter().find(|member| is_it(member) && member.listed != main.listed) {
        return Some(found);
    }
    let mut folders = vec!["../../..".to_owned()];
    for digits in [4, 2, 2] {
        let mut inside = Vec::new();
        for folder in folders {
            let names = listed(script, &main, input.folders(&folder));
            let dated = names.iter().filter(|name| name.len() == digits && name.bytes().all(|byte| byte.is_ascii_digit()));
            inside.extend(dated.map(|name| format!("{folder}/{name}")));
        }
        folders = inside;
    }
    folders.iter().find_map(|folder| listed(script, &main, input.beside(folder)).into_iter().find(is_it))
}

/// What is in a folder; one that cannot be listed is passed over with a warning.
fn listed<T>(script: &mut Script, main: &Member, found: Result<Vec<T>, HarnessError>) -> Vec<T> {
    found.unwrap_or_else(|error| {
        script.draft.unread(main, Relation::Neighbour, &error);
        Vec::new()
    })
}
