//! History that a rollout copies from the one it was forked from.
use pleach_tree::{JsonLines, ReadOptions, Report};
use rustc_hash::FxHashSet;

use super::item::{self, Piece};
use super::line::{Line, Meta, Payload};
use crate::core::input::{Member, Relation};
use crate::core::script::{Script, Spot};
use crate::{HarnessError, Input};

/// What is known of the copied part.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// The rollout's own id.
    own: Option<String>,
    /// The rollout that it was forked from, and where that is said.
    parent: Option<(String, Spot)>,
    /// The items of the parent, where its file lies beside and can be read.
    items: Option<Vec<Theirs>>,
    /// Where in them this rollout may stand: a first prompt can say what others say too. Nowhere,
    /// once items of its own have begun.
    places: Vec<Progress>,
    /// The first item behind its own ones that has id and content of one of the parent's, and how
    /// many there are.
    late: Option<(Spot, u64)>,
    /// Ids of the parent's items, each with what that one says.
    ids: FxHashSet<(String, u64)>,
    /// Calls that are copies.
    pub(super) calls: u64,
}

/// A place among the items of the parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    /// How many of the items were met or passed over.
    met: usize,
    /// Whether a prompt was met.
    prompted: bool,
    /// What the prompt says that was met last, where it was taken back: it may stand again behind
    /// what was taken back with it.
    asked: Option<u64>,
}

impl Progress {
    /// The place behind an item: a fork may leave out turns before the first that it holds, but
    /// none between two, save those that a rollback took back; within a turn it may leave out
    /// anything.
    fn behind(self, items: &[Theirs], id: Option<&str>, number: u64) -> Option<Self> {
        for (at, item) in items.iter().enumerate().skip(self.met) {
            if item.is(id, number) {
                let asked = match item {
                    Theirs { back: false, .. } => None,
                    Theirs { turn: true, number, .. } => Some(*number),
                    Theirs { .. } => self.asked,
                };
                return Some(Self { met: at + 1, prompted: self.prompted || item.turn, asked });
            }
            if self.prompted && item.turn && !item.back && self.asked != Some(item.number) {
                return None;
            }
        }
        None
    }
}

/// An item of the parent.
#[derive(Debug)]
struct Theirs {
    id: Option<String>,
    /// A number for what it says.
    number: u64,
    /// Whether it begins a turn.
    turn: bool,
    /// Whether a rollback took it back, so that a later fork does not hold it.
    back: bool,
}

impl Theirs {
    /// Whether an item of the fork is this one; ids that differ name two items, whatever they say.
    fn is(&self, id: Option<&str>, number: u64) -> bool {
        self.number == number && (self.id.is_none() || id.is_none() || self.id.as_deref() == id)
    }
}

impl Copied {
    /// Takes note of a session line: it says where the rollout was forked from, or is copied from
    /// there itself; of a parent that cannot be read to its end nothing is known to be a copy.
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
            Some((Ok(items), _)) => {
                self.ids =
                    items.iter().filter_map(|item| Some((item.id.clone()?, item.number))).collect();
                (self.items, self.places) = (Some(items), vec![Progress::default()]);
            }
            Some((Err(error), member)) => script.draft.unread(&member, Relation::Neighbour, &error),
            None => {}
        }
    }

    /// Whether an item is one of the parent's, in order.
    pub(super) fn is_copy(&mut self, id: Option<&str>, number: u64, spot: &Spot) -> bool {
        /// So many places are followed from either end where more of the parent's prompts say the
        /// same.
        const PLACES: usize = 32;
        let Some(items) = &self.items else { return false };
        let mut next: Vec<Progress> = Vec::new();
        for place in &self.places {
            let mut from = *place;
            while let Some(found) = from.behind(items, id, number) {
                next.push(found);
                // Before a prompt was met, any of those that say the same may be it; of anything
                // else the first is as good as all.
                if from.prompted || !found.prompted {
                    break;
                }
                from.met = found.met;
            }
        }
        next.sort_unstable_by_key(|place| place.met);
        next.dedup();
        if next.len() > 2 * PLACES {
            next.drain(PLACES..next.len() - PLACES);
        }
        self.places = next;
        if self.places.is_empty() {
            if id.is_some_and(|id| self.ids.contains(&(id.to_owned(), number))) {
                self.late.get_or_insert_with(|| (spot.clone(), 0)).1 += 1;
            }
            return false;
        }
        true
    }

    pub(super) fn report(&self, script: &mut Script) {
        let Some((parent, spot)) = &self.parent else { return };
        let message = match &self.items {
            Some(_) => {
                format!(
                    "calls ({}) are copied from rollout {parent}, which lies beside; they are context here",
                    self.calls
                )
            }
            None => {
                format!(
                    "the rollout was forked from {parent}, which is not beside it or cannot be read: calls of that one are in both files"
                )
            }
        };
        script.draft.warn(&spot.at, "payload", "copied-history", message);
        if let Some((spot, count)) = &self.late {
            let message = format!(
                "items ({count}) stand behind the rollout's own with ids and texts of rollout {parent}; they are taken for its own"
            );
            script.draft.warn(&spot.at, "payload.id", "copied-late", message);
        }
    }
}

/// The items of a rollout.
fn items(member: &Member, spot: &Spot, options: ReadOptions) -> Result<Vec<Theirs>, HarnessError> {
    // What is wrong with that file is told where it is converted itself.
    let lenient = ReadOptions { lenient: true, ..options };
    let (mut items, mut values) = (Vec::new(), Vec::<Line>::new());
    let mut report = Report::new(lenient);
    let mut lines = JsonLines::new(member.open()?, member.name.clone(), lenient);
    let io = |source| HarnessError::io(&member.name, source);
    while lines.next_line(&mut values, &mut report).map_err(io)?.is_some() {
        for line in values.drain(..) {
            match line.payload {
                Payload::Item(item) => {
                    let id = item.id.clone().filter(|id| !id.is_empty());
                    let piece = item::piece(*item, "", spot);
                    let turn = matches!(piece, Piece::Given { turn: true, .. });
                    items.extend(piece.number().map(|number| Theirs {
                        id,
                        number,
                        turn,
                        back: false,
                    }));
                }
                Payload::Event(event) if event.kind == "thread_rolled_back" => {
                    roll_back(&mut items, event.turns().unwrap_or(0))
                }
                _ => {}
            }
        }
    }
    Ok(items)
}

/// Marks the newest turns as taken back.
fn roll_back(items: &mut [Theirs], turns: usize) {
    let mut left = turns;
    for item in items.iter_mut().rev().filter(|item| !item.back) {
        if left == 0 {
            return;
        }
        left -= usize::from(item.turn);
        item.back = true;
    }
}

/// The file of a rollout, in the folder of the one that is read or in that of another day,
/// `../../../YYYY/MM/DD`.
fn find(script: &mut Script, input: &Input, id: &str) -> Option<Member> {
    let (main, end) = (input.main(), format!("-{id}"));
    let is_it = |member: &Member| member.stem().ends_with(&end) && member.name != main.name;
    let beside = listed(script, &main, input.beside(""));
    if let Some(found) =
        beside.into_iter().find(|member| is_it(member) && member.listed != main.listed)
    {
        return Some(found);
    }
    let mut folders = vec!["../../..".to_owned()];
    for digits in [4, 2, 2] {
        let mut inside = Vec::new();
        for folder in folders {
            let names = listed(script, &main, input.folders(&folder));
            let dated = names.iter().filter(|name| {
                name.len() == digits && name.bytes().all(|byte| byte.is_ascii_digit())
            });
            inside.extend(dated.map(|name| format!("{folder}/{name}")));
        }
        folders = inside;
    }
    folders
        .iter()
        .find_map(|folder| listed(script, &main, input.beside(folder)).into_iter().find(is_it))
}

/// What is in a folder; one that cannot be listed is passed over with a warning.
fn listed<T>(script: &mut Script, main: &Member, found: Result<Vec<T>, HarnessError>) -> Vec<T> {
    found.unwrap_or_else(|error| {
        script.draft.unread(main, Relation::Neighbour, &error);
        Vec::new()
    })
}
