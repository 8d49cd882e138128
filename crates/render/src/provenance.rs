//! Which characters of a rendering come from which segment.
use rustc_hash::FxHashMap;
use serde::de::IgnoredAny;

use super::mark::{Mark, Marking};
use super::message::Messages;

/// Characters of a rendering that come from a segment; what no region covers is the template's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    /// First byte.
    pub(super) start: usize,
    /// First byte behind it.
    pub(super) end: usize,
    /// Number of the segment.
    pub(super) segment: u32,
    /// How often the segment stands before it, for templates that repeat a text.
    pub(super) occurrence: u32,
}

/// A rendering without its marks, and the marks.
pub(super) type Stripped = (String, Vec<Mark>);

/// The regions between marks; `text` is the rendering without them.
pub(super) fn between(
    text: &str,
    marks: &[Mark],
    messages: &Messages,
    marking: Marking,
) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let mut index = 0;
    while let Some(&mark) = marks.get(index) {
        let same = marks[index..].iter().take_while(|next| next.segment == mark.segment).count();
        let before = regions.last().map_or(0, |region| region.end);
        let next = |count: usize| marks.get(index + count).map_or(text.len(), |mark| mark.at);
        let whole = match marking {
            Marking::Edges => messages.text(mark.segment),
            _ => messages.text(mark.segment).trim(),
        };
        let (start, end, used) = if messages.is_call(mark.segment) {
            let (start, end) =
                call(text, (mark.at, marks[index + same - 1].at), (before, next(same)));
            (start, end, same)
        } else if mark.opens && same > 1 && !marks[index + 1].opens {
            (mark.at, marks[index + 1].at, 2)
        } else if mark.opens {
            (mark.at, mark.at + common_prefix(whole, &text[mark.at..next(1)]), 1)
        } else {
            (mark.at - common_suffix(whole, &text[before..mark.at]), mark.at, 1)
        };
        if start < end {
            regions.push(Region { start, end, segment: mark.segment, occurrence: 0 });
        }
        index += used;
    }
    count(&mut regions);
    regions
}

/// Puts what surrounds the texts of `regions` into them where the template did not trim it.
///
/// `edges` is the rendering whose marks stood outside of the white space, which keeps what the
/// template would have trimmed: where both renderings agree between two texts nothing was trimmed,
/// and where they differ the difference says how much.
pub(super) fn widen(text: &str, regions: &mut [Region], edges: &Stripped, messages: &Messages) {
    let untrimmed = between(&edges.0, &edges.1, messages, Marking::Edges);
    let (visible, mut cores): (Vec<Region>, Vec<Region>) = untrimmed
        .iter()
        .filter(|region| {
            messages.is_call(region.segment) || !messages.text(region.segment).trim().is_empty()
        })
        .map(|&region| {
            let (lead, trail) = surroundings(messages, region.segment);
            let fits = edges.0[region.start..region.end].len() >= lead.len() + trail.len();
            let (lead, trail) = if fits { (lead.len(), trail.len()) } else { (0, 0) };
            (region, Region { start: region.start + lead, end: region.end - trail, ..region })
        })
        .unzip();
    if !visible.iter().map(|region| region.segment).eq(regions.iter().map(|region| region.segment))
    {
        return;
    }
    let end = |text: &str| Region {
        start: text.len(),
        end: text.len(),
        segment: u32::MAX,
        occurrence: 0,
    };
    cores.push(end(&edges.0));
    for index in 0..=regions.len() {
        let (from, from_edges) = match index.checked_sub(1) {
            Some(before) => (regions[before].end, cores[before].end),
            None => (0, 0),
        };
        let to = regions.get(index).map_or(text.len(), |region| region.start);
        let trail = index
            .checked_sub(1)
            .map_or("", |before| surroundings(messages, regions[before].segment).1);
        let lead = regions.get(index).map_or("", |region| surroundings(messages, region.segment).0);
        let Some(untrimmed) = edges.0.get(from_edges..cores[index].start) else { continue };
        let (trail, lead) = kept(&text[from..to], untrimmed, trail, lead);
        if let Some(before) = index.checked_sub(1) {
            regions[before].end += trail;
        }
        if let Some(region) = regions.get_mut(index) {
            region.start -= lead;
        }
    }
}

/// How many bytes of `trail` and of `lead` are left in `gap`, which is `untrimmed` after trimming.
fn kept(gap: &str, untrimmed: &str, trail: &str, lead: &str) -> (usize, usize) {
    let glue = untrimmed.strip_prefix(trail).and_then(|rest| rest.strip_suffix(lead));
    let Some((glue, extra)) =
        glue.and_then(|glue| Some((glue, gap.len().checked_sub(glue.len())?)))
    else {
        return (0, 0);
    };
    for lead_kept in (0..=lead.len().min(extra)).rev() {
        let trail_kept = extra - lead_kept;
        let parts = (trail.get(..trail_kept), lead.get(lead.len() - lead_kept..));
        let (Some(before), Some(after)) = parts else { continue };
        if gap.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) == Some(glue) {
            return (trail_kept, lead_kept);
        }
    }
    (0, 0)
}

/// White space before and behind the text of a segment; a tool call's reaches no rendering.
fn surroundings<'t>(messages: &Messages<'t>, segment: u32) -> (&'t str, &'t str) {
    if messages.is_call(segment) {
        return ("", "");
    }
    let text = messages.text(segment);
    (&text[..text.len() - text.trim_start().len()], &text[text.trim_end().len()..])
}

/// Finds the texts of `members` that `regions` lacks, each between its located neighbours, as they
/// are or trimmed.
pub(super) fn search(text: &str, regions: &mut Vec<Region>, members: &[u32], messages: &Messages) {
    let mut found: Vec<Region> = Vec::new();
    let mut known = std::mem::take(regions).into_iter().peekable();
    for &segment in members {
        while known.peek().is_some_and(|region| region.segment == segment) {
            found.extend(known.next());
        }
        if found.last().is_some_and(|region| region.segment == segment) {
            continue;
        }
        let from = found.last().map_or(0, |region| region.end);
        let to = known.peek().map_or(text.len(), |region| region.start);
        let (Some(gap), whole) = (text.get(from..to), messages.text(segment)) else { continue };
        let hit = [whole, whole.trim()]
            .into_iter()
            .filter(|needle| !needle.is_empty())
            .find_map(|needle| Some((gap.find(needle)?, needle.len())));
        if let Some((at, len)) = hit {
            found.push(Region { start: from + at, end: from + at + len, segment, occurrence: 0 });
        }
    }
    found.extend(known);
    count(&mut found);
    *regions = found;
}

/// A tool call's characters: from its first mark to its last, and the JSON object that the template
/// built around them.
fn call(
    text: &str,
    (start, end): (usize, usize),
    (lower, upper): (usize, usize),
) -> (usize, usize) {
    let mut widest = (start, end);
    let Some(before) = text.get(lower..start) else { return widest };
    for (at, _) in before.rmatch_indices('{').take(8) {
        let from = lower + at;
        let mut values = serde_json::Deserializer::from_str(&text[from..upper.max(end)])
            .into_iter::<IgnoredAny>();
        if matches!(values.next(), Some(Ok(_))) && from + values.byte_offset() >= end {
            widest = (from, from + values.byte_offset());
        }
    }
    widest
}

fn count(regions: &mut [Region]) {
    let mut seen: FxHashMap<u32, u32> = FxHashMap::default();
    for region in regions {
        let count = seen.entry(region.segment).or_default();
        region.occurrence = *count;
        *count += 1;
    }
}

fn common_prefix(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

fn common_suffix(one: &str, other: &str) -> usize {
    one.chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_trimming_left_is_told_from_glue() {
        assert_eq!(kept("\n--\n ", "\n--\n\n ", "\n", "\n "), (1, 1));
        assert_eq!(kept("--", "\n--\n ", "\n", "\n "), (0, 0));
        assert_eq!(kept("--\n ", "\n--\n ", "\n", "\n "), (0, 2));
        assert_eq!(kept("\n--", "\n--\n ", "\n", "\n "), (1, 0));
    }

    #[test]
    fn a_call_takes_the_object_around_it_and_no_more() {
        let text =
            "x {\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"a\": \"b\"}}\n</tool_call>";
        let start = text.find("ls").unwrap();
        let end = text.find("\"}}").unwrap();
        let (from, to) = call(text, (start, end), (0, text.len()));
        assert_eq!(&text[from..to], "{\"name\": \"ls\", \"arguments\": {\"a\": \"b\"}}");
    }
}
