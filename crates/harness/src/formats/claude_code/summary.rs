//! Which call wrote the summary of a compaction, and what of the summary is that call's own text.
use std::ops::Range;

use pleach_tree::Part;

use super::link::Links;
use super::load::SessionLog;
use super::turns::{TurnKind, Turns};

/// The call that wrote a summary.
#[derive(Debug)]
pub(super) struct Summariser {
    pub(super) conversation: usize,
    /// The turn of its last call.
    pub(super) turn: usize,
    /// What of the call's text stands in the summary; absent where the summary is another text.
    pub(super) quote: Option<Quote>,
}

/// Text of a call that stands in a summary word for word.
#[derive(Debug)]
pub(super) struct Quote {
    /// Line and part of the call.
    pub(super) from: (usize, usize),
    /// Line and text of the summary.
    pub(super) to: (usize, usize),
    /// Ranges of bytes in the one and in the other.
    pub(super) pieces: Vec<(Range<usize>, Range<usize>)>,
}

/// The summariser of every compaction that has one.
pub(super) fn find(
    session: &mut SessionLog,
    links: &Links,
    turns: &Turns,
) -> Vec<Option<Summariser>> {
    let mut found: Vec<Option<Summariser>> = links.compactions.iter().map(|_| None).collect();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (conversation, record) in links.conversations.iter().enumerate() {
        if record.summarizer || record.inherits.is_some() {
            open.extend(last_call(links, turns, conversation).map(|turn| (conversation, turn)));
        }
    }
    open.retain(|&(conversation, turn)| {
        let quoted = (0..found.len())
            .filter(|&at| found[at].is_none() && conversation_of(links, at) != conversation);
        let Some((at, quote)) =
            quoted.into_iter().find_map(|at| Some((at, quote(session, links, turns, turn, at)?)))
        else {
            return true;
        };
        found[at] = Some(Summariser { conversation, turn, quote: Some(quote) });
        false
    });
    for (conversation, turn) in open {
        if !links.conversations[conversation].summarizer {
            continue;
        }
        let next = following(links, conversation).filter(|&at| found[at].is_none());
        let head = turns.turns[turn].head;
        match next {
            Some(at) => {
                let message = "the summary that followed this call does not hold its text".into();
                session.warn(head, "message.content", "summary-differs", message);
                found[at] = Some(Summariser { conversation, turn, quote: None });
            }
            None => {
                let message =
                    "no compaction follows this summary; it is a thread that nothing came of"
                        .into();
                session.warn(head, "message.content", "unused-summary", message);
            }
        }
    }
    found
}

fn conversation_of(links: &Links, compaction: usize) -> usize {
    links.conversation[links.compactions[compaction].boundary]
}

fn last_call(links: &Links, turns: &Turns, conversation: usize) -> Option<usize> {
    let call = |&turn: &usize| {
        turns.turns[turn].conversation == conversation
            && matches!(turns.turns[turn].kind, TurnKind::Call(_))
    };
    (0..turns.turns.len()).filter(call).max_by_key(|&turn| links.place[turns.turns[turn].head])
}

/// The first compaction behind the line that a conversation starts from.
fn following(links: &Links, conversation: usize) -> Option<usize> {
    let start = links.conversations[conversation].inherits?;
    let behind = |&at: &usize| {
        conversation_of(links, at) == links.conversation[start]
            && links.place[links.compactions[at].boundary] > links.place[start]
    };
    (0..links.compactions.len())
        .filter(behind)
        .min_by_key(|&at| links.place[links.compactions[at].boundary])
}

fn quote(
    session: &SessionLog,
    links: &Links,
    turns: &Turns,
    turn: usize,
    compaction: usize,
) -> Option<Quote> {
    let TurnKind::Call(lines) = &turns.turns[turn].kind else { return None };
    let texts: Vec<(usize, usize, &str)> = links.compactions[compaction]
        .summary
        .iter()
        .filter_map(|&line| Some((line, session.entries[line].user()?)))
        .flat_map(|(line, user)| {
            user.texts.iter().enumerate().map(move |(at, text)| (line, at, text.as_str()))
        })
        .collect();
    for &line in lines.iter().rev() {
        let Some(assistant) = session.entries[line].assistant() else { continue };
        for (at, said) in
            assistant.said.iter().enumerate().filter(|(_, said)| said.part == Part::Content)
        {
            for &(summary, index, text) in &texts {
                let pieces = pieces(&said.text, text);
                if !pieces.is_empty() {
                    return Some(Quote { from: (line, at), to: (summary, index), pieces });
                }
            }
        }
    }
    None
}

/// Where the text of a call stands in a summary.
///
/// The harness takes the text as it is, or what stands inside its tags `<analysis>` and
/// `<summary>`.
fn pieces(said: &str, summary: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let whole = trimmed(said, 0..said.len());
    let inner = ["analysis", "summary"].into_iter().filter_map(|tag| inside(said, tag));
    let mut from = 0;
    for range in std::iter::once(whole).chain(inner) {
        if range.is_empty() {
            continue;
        }
        let Some(at) = summary[from..].find(&said[range.clone()]) else { continue };
        let to = from + at..from + at + range.len();
        from = to.end;
        let all = found.is_empty() && range.len() == said.trim().len();
        found.push((range, to));
        if all {
            break;
        }
    }
    found
}

/// A text cut at the ends of its pieces, in order; true for what is a piece.
pub(super) fn cut<'t>(text: &'t str, pieces: &[Range<usize>]) -> Vec<(&'t str, bool)> {
    let mut cuts = Vec::new();
    let mut at = 0;
    for piece in pieces {
        if at < piece.start {
            cuts.push((&text[at..piece.start], false));
        }
        cuts.push((&text[piece.clone()], true));
        at = piece.end;
    }
    if at < text.len() || cuts.is_empty() {
        cuts.push((&text[at..], false));
    }
    cuts
}

fn inside(text: &str, tag: &str) -> Option<Range<usize>> {
    let open = format!("<{tag}>");
    let start = text.find(&open)? + open.len();
    let end = start + text[start..].find(&format!("</{tag}>"))?;
    Some(trimmed(text, start..end))
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted<'t>(said: &'t str, summary: &str) -> Vec<&'t str> {
        pieces(said, summary).into_iter().map(|(from, _)| &said[from]).collect()
    }

    #[test]
    fn a_body_that_stands_whole_in_the_summary_is_one_piece() {
        assert_eq!(quoted("\n body text\n", "preamble\nbody text\ntail"), ["body text"]);
    }

    #[test]
    fn tags_that_the_harness_rewrites_leave_what_stands_inside_them() {
        let said = "<analysis>\nfirst\n</analysis>\n\n<summary>\nsecond\n</summary>";
        assert_eq!(
            quoted(said, "P\nAnalysis:\nfirst\n\nSummary:\nsecond\n\ntail"),
            ["first", "second"]
        );
        assert_eq!(quoted(said, "P\nSummary:\nsecond\n\ntail"), ["second"]);
        assert!(quoted(said, "another summary").is_empty());
    }
}
