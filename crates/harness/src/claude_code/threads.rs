//! Names of threads.
use std::collections::BTreeMap;

use super::link::Links;
use super::turns::{TurnKind, Turns};

/// The thread of every turn.
///
/// A conversation's own name goes to the branch of its last call, from the root on. Every other branch, in the order in which they
/// begin, is `NAME~1`, `NAME~2` and so on, so that what was given up by a rewind is a thread of its own.
pub(super) fn names(turns: &Turns, links: &Links) -> Vec<String> {
    let order = turns.parents_first();
    let place = |turn: usize| links.place[turns.turns[turn].head];
    let mut reach: Vec<(bool, u64)> =
        (0..turns.turns.len()).map(|turn| (matches!(turns.turns[turn].kind, TurnKind::Call(_)), place(turn))).collect();
    for &turn in order.iter().rev() {
        if let Some(parent) = turns.turns[turn].parent {
            reach[parent] = reach[parent].max(reach[turn]);
        }
    }
    let mut heirs: BTreeMap<(usize, Option<usize>), usize> = BTreeMap::new();
    for &turn in &order {
        let heir = heirs.entry((turns.turns[turn].conversation, turns.turns[turn].parent)).or_insert(turn);
        if reach[turn] > reach[*heir] {
            *heir = turn;
        }
    }
    let mut starts: Vec<usize> = order.clone();
    starts.retain(|&turn| heirs.get(&(turns.turns[turn].conversation, turns.turns[turn].parent)) != Some(&turn));
    starts.sort_by_key(|&turn| place(turn));
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut names = vec![String::new(); turns.turns.len()];
    for turn in starts {
        let conversation = turns.turns[turn].conversation;
        let count = counts.entry(conversation).or_default();
        *count += 1;
        names[turn] = format!("{}~{count}", links.conversations[conversation].name);
    }
    for turn in order {
        if names[turn].is_empty() {
            names[turn] = match turns.turns[turn].parent {
                Some(parent) => names[parent].clone(),
                None => links.conversations[turns.turns[turn].conversation].name.clone(),
            };
        }
    }
    names
}
