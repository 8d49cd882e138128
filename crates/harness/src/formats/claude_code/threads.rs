//! Names of threads.
use std::sync::Arc;

use super::link::Links;
use super::turns::{TurnKind, Turns};
use crate::core::threads::{self, Branch};

/// The thread of every turn.
pub(super) fn names(turns: &Turns, links: &Links) -> Vec<Arc<str>> {
    let branch = |turn: &super::turns::Turn| Branch {
        parent: turn.parent,
        conversation: turn.conversation,
        place: links.place[turn.head],
        is_call: matches!(turn.kind, TurnKind::Call(_)),
    };
    let branches: Vec<Branch> = turns.turns.iter().map(branch).collect();
    let conversations: Vec<&str> =
        links.conversations.iter().map(|conversation| conversation.name.as_str()).collect();
    threads::names(&branches, &turns.parents_first(), &conversations)
}
