//! Calls that stand in several conversations of a session: the file of a forked sub-agent begins
//! with the call that forked it.
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::link::Links;
use super::load::SessionLog;
use super::turns::{Turn, TurnKind};

/// The turns that repeat a call of another conversation, each with the turn of that call; marks
/// their lines as copies.
///
/// A fork repeats a call of the conversation that it goes on from. Of others that say the same
/// under one id, the first has the call.
pub(super) fn find(
    session: &mut SessionLog,
    links: &Links,
    turns: &[Turn],
) -> FxHashMap<usize, usize> {
    if links.conversations.len() < 2 {
        return FxHashMap::default();
    }
    let mut by_message: FxHashMap<Arc<str>, Vec<usize>> = FxHashMap::default();
    for (turn, record) in turns.iter().enumerate() {
        if let Some(assistant) = session.entries[record.head].assistant() {
            by_message.entry(Arc::clone(&assistant.message)).or_default().push(turn);
        }
    }
    let mut clones = FxHashMap::default();
    for group in by_message.values().filter(|group| group.len() > 1) {
        for &turn in group {
            let parent = links.conversations[turns[turn].conversation]
                .forks
                .map(|entry| links.conversation[entry]);
            let same = |&&other: &&usize| {
                Some(turns[other].conversation) == parent && repeats(session, turns, turn, other)
            };
            clones.extend(group.iter().find(same).map(|&other| (turn, other)));
        }
        let mut firsts: Vec<usize> = Vec::new();
        let rest: Vec<usize> =
            group.iter().copied().filter(|turn| !clones.contains_key(turn)).collect();
        for turn in rest {
            let elsewhere =
                |&&first: &&usize| turns[first].conversation != turns[turn].conversation;
            match firsts
                .iter()
                .filter(elsewhere)
                .find(|&&first| repeats(session, turns, turn, first))
            {
                Some(&first) => {
                    clones.insert(turn, first);
                }
                None => firsts.push(turn),
            }
        }
    }
    let mut copied: Vec<usize> =
        clones.keys().flat_map(|&turn| lines(turns, turn)).copied().collect();
    copied.sort_unstable();
    copied.into_iter().for_each(|entry| session.copied(entry));
    clones
}

/// Whether a turn says nothing that another one does not say; a clone may lack parts that were not
/// written yet.
fn repeats(session: &SessionLog, turns: &[Turn], turn: usize, other: usize) -> bool {
    let said = |turn| {
        lines(turns, turn)
            .iter()
            .filter_map(|&line| session.entries[line].assistant())
            .flat_map(|call| &call.said)
    };
    said(turn).all(|part| said(other).any(|other| other == part))
}

fn lines(turns: &[Turn], turn: usize) -> &[usize] {
    match &turns[turn].kind {
        TurnKind::Call(lines) => lines,
        _ => &[],
    }
}
