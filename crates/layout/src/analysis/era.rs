use indexmap::IndexMap;
use pleach_tree::{BranchTree, ContextId, GenerationId, Operation};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::TermId;
use crate::layouts::Layouts;

/// Where a sampled token stands between the evictions of its thread.
///
/// Flattened layouts go wrong around evictions: `full` in what follows one, `compressed` in what
/// precedes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Era {
    /// Id of the generation.
    pub generation: u32,
    /// Index of the token in the generation's output.
    pub offset: u32,
    /// The context that the last eviction before the token made.
    pub eviction: Option<u32>,
    /// Tokens sampled in the thread between that eviction and the token.
    pub since: Option<u32>,
    /// The context that the thread's next eviction made: of several with nothing sampled between
    /// them, the first.
    pub next: Option<u32>,
    /// Tokens sampled in the thread between the token and that eviction.
    pub until: Option<u32>,
}

impl Era {
    /// The token's name, which is that of its loss term.
    pub fn id(&self) -> TermId {
        TermId::new(self.generation, self.offset)
    }
}

impl Layouts<'_> {
    /// The era of every token that the policy sampled, in file order of generations, then by
    /// offset.
    pub fn eras(&self) -> Vec<Era> {
        let tree = self.tree();
        let mut last = FxHashMap::default();
        let mut threads: IndexMap<(&str, &str), Vec<Sampled>> = IndexMap::new();
        for generation in tree.generations() {
            let eviction = last_eviction(tree, generation.context, &mut last);
            threads
                .entry((&generation.rollout, &generation.thread))
                .or_default()
                .push(Sampled { generation: generation.id, eviction });
        }
        let place: FxHashMap<GenerationId, usize> =
            tree.generations().map(|generation| generation.id).zip(0..).collect();
        let mut eras: Vec<Era> = threads
            .values()
            .flat_map(|generations| of_thread(tree, generations, &mut last))
            .collect();
        eras.sort_by_key(|era| (place[&GenerationId(era.generation)], era.offset));
        eras
    }
}

/// The nearest evict or replace at or above a context, those of a chat template apart.
fn last_eviction(
    tree: &BranchTree,
    context: ContextId,
    known: &mut FxHashMap<ContextId, Option<u32>>,
) -> Option<u32> {
    let mut walked = Vec::new();
    let mut at = Some(context);
    let found = loop {
        let Some(id) = at else { break None };
        if let Some(&found) = known.get(&id) {
            break found;
        }
        walked.push(id);
        let by = match tree.operation(id) {
            Some(Operation::Evict(evict)) => Some(evict.by.as_ref()),
            Some(Operation::Replace(replace)) => Some(replace.by.as_ref()),
            _ => None,
        };
        if by.is_some_and(|by| by.is_none_or(|by| !super::account::by_chat_template(by))) {
            break Some(id.0);
        }
        at = tree.parent(id);
    };
    known.extend(walked.into_iter().map(|id| (id, found)));
    found
}

/// A generation and the last eviction before it.
struct Sampled {
    generation: GenerationId,
    eviction: Option<u32>,
}

/// The first eviction after the one that made `before`, on the way to the one that made `eviction`:
/// several may follow each other with nothing sampled between them.
fn first_after(
    tree: &BranchTree,
    before: Option<u32>,
    eviction: u32,
    known: &mut FxHashMap<ContextId, Option<u32>>,
) -> u32 {
    let mut first = eviction;
    while let Some(parent) = tree.parent(ContextId(first)) {
        match last_eviction(tree, parent, known) {
            Some(earlier) if Some(earlier) != before => first = earlier,
            _ => break,
        }
    }
    first
}

fn of_thread(
    tree: &BranchTree,
    generations: &[Sampled],
    known: &mut FxHashMap<ContextId, Option<u32>>,
) -> Vec<Era> {
    let mut eras: Vec<Era> = Vec::new();
    let (mut sampled, mut current) = (0, None);
    for &Sampled { generation: id, eviction } in generations {
        if eviction != current {
            (sampled, current) = (0, eviction);
        }
        for token in tree
            .view(id)
            .into_iter()
            .flat_map(|view| view.output())
            .filter(|token| token.weight.is_some())
        {
            let since = eviction.map(|_| sampled);
            eras.push(Era {
                generation: id.0,
                offset: token.offset,
                eviction,
                since,
                next: None,
                until: None,
            });
            sampled += 1;
        }
    }
    let mut ahead: Option<(Option<u32>, u32)> = None;
    let mut next = None;
    for era in eras.iter_mut().rev() {
        match &mut ahead {
            Some((eviction, count)) if *eviction == era.eviction => *count += 1,
            _ => {
                let eviction = ahead.and_then(|(eviction, _)| eviction);
                next = eviction.map(|eviction| first_after(tree, era.eviction, eviction, known));
                ahead = Some((era.eviction, 0));
            }
        }
        era.next = next;
        era.until = next.and(ahead.map(|(_, count)| count));
    }
    eras
}
