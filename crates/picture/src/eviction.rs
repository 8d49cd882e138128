use std::ops::Range;

use pleach_layout::{Eviction, Layout, Layouts};
use rustc_hash::FxHashMap;

use crate::subject::Chosen;

/// An eviction in the picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) eviction: Eviction,
    /// The rows that live after it, or that stand behind the hole it left.
    pub(crate) rows: Range<usize>,
    /// The keys that left, where they stand in the picture.
    pub(crate) keys: Vec<Range<usize>>,
}

/// The evictions that some generation lives under, by row.
pub(crate) fn marks(layouts: &Layouts<'_>, layout: &Layout, chosen: &Chosen) -> Vec<Mark> {
    let evictions: FxHashMap<u32, Eviction> =
        layouts.evictions().into_iter().map(|eviction| (eviction.context, eviction)).collect();
    let mark = |place: pleach_layout::EvictionPlace| {
        let start = chosen.start(place.sequence)?;
        let shifted = |range: Range<usize>| start + range.start..start + range.end;
        Some(Mark {
            eviction: evictions.get(&place.context.0)?.clone(),
            rows: shifted(place.rows),
            keys: place.keys.into_iter().map(shifted).collect(),
        })
    };
    let mut marks: Vec<Mark> =
        layouts.eviction_places(layout).into_iter().filter_map(mark).collect();
    marks.sort_by_key(|mark| (mark.rows.start, mark.eviction.context));
    marks
}
