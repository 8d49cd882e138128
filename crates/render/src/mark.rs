//! Invisible marks around the text of a segment, by which rendered characters are traced back to
//! it.
//!
//! A mark is two characters of the supplementary private use areas: whether it opens or closes and
//! the high bits of the segment's number, then the low bits. A text that holds such characters
//! itself is found out because taking all marks away does not give the rendering without marks.
use std::borrow::Cow;
use std::ops::Range;

const HALF: u32 = 1 << 15;
const FIRST: u32 = 0xf_0000;
const SECOND: u32 = 0x10_0000;
const LEAD: u8 = 0xf3;

/// How the texts that a template gets are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Marking {
    /// Not at all.
    Plain,
    /// Around the whole text, surrounding white space included.
    Edges,
    /// Inside the surrounding white space, so that trimming works as without marks.
    Inside,
    /// As `Inside`, but for texts that hold what the template itself looks for.
    Careful,
}

/// A mark in a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Byte of the rendering without marks before which it stands.
    pub(super) at: usize,
    /// Number of the segment.
    pub(super) segment: u32,
    /// Whether the text begins here.
    pub(super) opens: bool,
}

/// The characters of a mark.
pub(super) fn write(segment: u32, opens: bool) -> String {
    let kind = if opens { 0 } else { HALF };
    let first = char::from_u32(FIRST + kind + (segment / HALF) % HALF);
    let second = char::from_u32(SECOND + segment % HALF);
    first.into_iter().chain(second).collect()
}

/// `text` between the marks of a segment, where `marking` marks it.
pub(super) fn wrap(text: &str, segment: u32, marking: Marking) -> Cow<'_, str> {
    let core = match marking {
        Marking::Plain => return Cow::Borrowed(text),
        Marking::Edges => text,
        Marking::Inside | Marking::Careful => text.trim(),
    };
    if core.is_empty() {
        return Cow::Borrowed(text);
    }
    let lead = if marking == Marking::Edges { 0 } else { text.len() - text.trim_start().len() };
    let (before, after) = (&text[..lead], &text[lead + core.len()..]);
    Cow::Owned(format!("{before}{}{core}{}{after}", write(segment, true), write(segment, false)))
}

/// The segment that a trainer's span in a template stands for: none has so great a number.
const TRAINED: u32 = HALF * HALF - 1;

/// `text` between the marks of a trainer's span.
pub(super) fn trained(text: &str) -> String {
    format!("{}{text}{}", write(TRAINED, true), write(TRAINED, false))
}

/// Takes the marks of trainers' spans out of a rendering, and says where they were; those of
/// segments stay.
pub(super) fn trained_spans(marked: &str) -> (String, Vec<Range<usize>>) {
    let (opens, closes) = (write(TRAINED, true), write(TRAINED, false));
    let (mut text, mut spans, mut rest) = (String::with_capacity(marked.len()), Vec::new(), marked);
    while let Some((before, after)) = rest.split_once(&opens) {
        text.push_str(before);
        let start = text.len();
        let (inside, after) = after.split_once(&closes).unwrap_or((after, ""));
        text.push_str(inside);
        spans.push(start..text.len());
        rest = after;
    }
    text.push_str(rest);
    (text, spans)
}

/// Takes the marks out of a rendering.
pub(super) fn strip(marked: &str) -> (String, Vec<Mark>) {
    let mut text = String::with_capacity(marked.len());
    let mut marks = Vec::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(LEAD, marked.as_bytes()) {
        let mut chars = marked[at..].chars().map(u32::from);
        let (Some(first), Some(second)) = (chars.next(), chars.next()) else { continue };
        let (Some(high), Some(low)) = (first.checked_sub(FIRST), second.checked_sub(SECOND)) else {
            continue;
        };
        if high >= 2 * HALF || low >= HALF {
            continue;
        }
        text.push_str(&marked[copied..at]);
        copied = at + 8;
        marks.push(Mark {
            at: text.len(),
            segment: (high % HALF) * HALF + low,
            opens: high < HALF,
        });
    }
    text.push_str(&marked[copied..]);
    (text, marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_out_where_they_went_in() {
        for segment in [0, 1, HALF - 1, HALF, 5 * HALF + 17] {
            let marked = format!("é {}\u{f3}", wrap(" xö\n", segment, Marking::Inside));
            let (text, marks) = strip(&marked);
            assert_eq!(text, "é  xö\n\u{f3}");
            assert_eq!(
                marks,
                [Mark { at: 4, segment, opens: true }, Mark { at: 7, segment, opens: false }]
            );
        }
        assert_eq!(wrap(" \n", 3, Marking::Inside), " \n");
        assert_eq!(strip(&wrap(" \n", 3, Marking::Edges)).1.len(), 2);
    }

    #[test]
    fn private_use_characters_of_other_kinds_stay() {
        let text = "\u{f0000}\u{e000}\u{10ffff}\u{f0001}";
        assert_eq!(strip(text), (text.to_owned(), Vec::new()));
    }
}
