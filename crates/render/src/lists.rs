//! What contexts hold, as long as a record is still to be made of it.
use std::rc::Rc;

use pleach_tree::{BranchTree, ContextId, Record, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a context holds: in new segments, and in those of the tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    /// The new segments.
    pub(super) list: Vec<Span>,
    /// The numbers of the tree's segments.
    pub(super) members: Vec<u32>,
    /// Which members begin a message.
    pub(super) starts: Vec<usize>,
    /// How many messages there were when the list was last a rendering of the whole.
    pub(super) rendered: usize,
}

/// The lists of new segments of the contexts that later records start from.
///
/// A list is as long as its context, so keeping all of them would take the square of a session's
/// length.
#[derive(Debug)]
pub(super) struct Lists {
    uses: FxHashMap<ContextId, usize>,
    lists: FxHashMap<ContextId, Rc<Held>>,
    /// Contexts that something is appended to.
    appended: FxHashSet<ContextId>,
}

impl Lists {
    /// No lists yet, and how often each will be taken.
    pub(super) fn of(tree: &BranchTree) -> Self {
        let mut uses = FxHashMap::default();
        for context in tree.records().iter().filter_map(start) {
            *uses.entry(context).or_default() += 1;
        }
        let appends = tree.records().iter().filter_map(|record| match record {
            Record::Append(append) => append.from,
            _ => None,
        });
        Self { uses, lists: FxHashMap::default(), appended: appends.collect() }
    }

    /// Whether nothing is ever appended to a context.
    pub(super) fn is_end(&self, context: ContextId) -> bool {
        !self.appended.contains(&context)
    }

    /// Keeps what a context holds where a record will start from it.
    pub(super) fn put(&mut self, context: ContextId, list: Rc<Held>) {
        if self.uses.contains_key(&context) {
            self.lists.insert(context, list);
        }
    }

    /// What a context holds, for one of the records that start from it.
    pub(super) fn take(&mut self, context: ContextId) -> Rc<Held> {
        let list = match self.uses.get_mut(&context) {
            Some(uses) if *uses > 1 => {
                *uses -= 1;
                self.lists.get(&context).cloned()
            }
            _ => {
                self.uses.remove(&context);
                self.lists.remove(&context)
            }
        };
        list.unwrap_or_default()
    }
}

/// The context that a record starts from.
fn start(record: &Record) -> Option<ContextId> {
    match record {
        Record::Append(append) => append.from,
        Record::Evict(evict) => Some(evict.from),
        Record::Replace(replace) => Some(replace.from),
        Record::Fork(fork) => Some(fork.from),
        Record::Generation(generation) => Some(generation.context),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pleach_tree::{ReadOptions, SegmentId};

    use super::*;

    #[test]
    fn a_list_is_there_for_every_record_that_starts_from_it_and_no_longer() {
        let records = r#"{"t":"header","version":1,"harness":"test","fidelity":"message"}
{"t":"segment","id":0,"role":"user","origin":"human","text":"Q"}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"generation","id":0,"context":0,"output":[]}
{"t":"fork","context":1,"from":0,"reason":"rewind"}
"#;
        let (tree, _) =
            BranchTree::read(records.as_bytes(), "lists.jsonl", ReadOptions::STRICT).unwrap();
        let mut lists = Lists::of(&tree);
        let list = vec![Span { segment: SegmentId(0), start: 0, end: 1 }];
        let list = Rc::new(Held { list, ..Held::default() });
        lists.put(ContextId(0), Rc::clone(&list));
        lists.put(ContextId(1), Rc::clone(&list));
        assert!(!lists.lists.contains_key(&ContextId(1)), "nothing starts from it");
        for _ in 0..2 {
            assert!(Rc::ptr_eq(&lists.take(ContextId(0)), &list));
        }
        assert!(lists.lists.is_empty());
    }
}
