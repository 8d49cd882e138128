use std::collections::HashMap;

use pleach_layout::{Era, Eviction};
use serde::Serialize;

/// Most places along the axis; more terms share them.
const PLACES: usize = 1500;

/// Log-probabilities of loss terms: generation, offset, log p in nats.
type Terms<'a> = &'a [(u32, u32, f64)];

/// The gap of each flattened layout at every sampled token, in file order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gaps {
    /// Generation and offset of each sampled token.
    tokens: Vec<(u32, u32)>,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq)]
struct Series {
    name: String,
    /// log p under the training context minus log p under the live view; `None` where the layout
    /// does not train the token.
    gaps: Vec<Option<f64>>,
}

/// An eviction on the chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Mark {
    /// Index of the first token that was sampled after it.
    at: usize,
    label: String,
}

impl Gaps {
    /// The tokens of the exact layout, in its order.
    pub(crate) fn new(exact: Terms<'_>) -> Self {
        let tokens = exact.iter().map(|&(generation, offset, _)| (generation, offset)).collect();
        Self { tokens, series: Vec::new(), marks: Vec::new() }
    }

    /// With the gaps of a layout; both lists in any order.
    #[must_use]
    pub(crate) fn with(
        mut self,
        name: impl Into<String>,
        exact: Terms<'_>,
        layout: Terms<'_>,
    ) -> Self {
        let by_token = |terms: Terms<'_>| {
            terms.iter().map(|&(generation, offset, logp)| ((generation, offset), logp)).collect()
        };
        let (exact, layout): (HashMap<_, f64>, HashMap<_, f64>) =
            (by_token(exact), by_token(layout));
        let gap = |token: &(u32, u32)| Some(layout.get(token)? - exact.get(token)?);
        self.series.push(Series { name: name.into(), gaps: self.tokens.iter().map(gap).collect() });
        self
    }

    /// With evictions, each before the first token that was sampled after it, or behind the last
    /// one before it where another eviction followed at once.
    #[must_use]
    pub(crate) fn marked(mut self, eras: &[Era], evictions: &[Eviction]) -> Self {
        let places: HashMap<(u32, u32), usize> = self.tokens.iter().copied().zip(0..).collect();
        let (mut first, mut last): (HashMap<u32, usize>, HashMap<u32, usize>) = Default::default();
        for era in eras {
            let Some(&place) = places.get(&(era.generation, era.offset)) else { continue };
            if let Some(context) = era.eviction {
                first.entry(context).and_modify(|at| *at = place.min(*at)).or_insert(place);
            }
            if let Some(context) = era.next {
                last.entry(context)
                    .and_modify(|at| *at = (place + 1).max(*at))
                    .or_insert(place + 1);
            }
        }
        let mark = |eviction: &Eviction| {
            let row = super::EvictionRow::new(eviction);
            let by = if row.by.is_empty() { String::new() } else { format!(", by {}", row.by) };
            let count = |tokens: usize| super::grouped(i64::try_from(tokens).unwrap_or(i64::MAX));
            let (removed, added, before) =
                (count(row.removed), count(row.added), count(row.before));
            let label = format!(
                "context {}: {}; {removed} of {before} tokens out, {added} in{by}",
                row.context, row.kind
            );
            let at = first.get(&eviction.context).or(last.get(&eviction.context));
            Some(Mark { at: *at?, label })
        };
        self.marks.extend(evictions.iter().filter_map(mark));
        self.marks.sort_by_key(|mark| mark.at);
        self
    }

    /// What the page's script draws, as JSON that can stand in a `script` element.
    pub(super) fn data(&self) -> String {
        let step = self.tokens.len().div_ceil(PLACES).max(1);
        let plot = Plot {
            tokens: self.tokens.len(),
            step,
            first: self.tokens.iter().step_by(step).copied().collect(),
            series: self.series.iter().map(|series| Line::new(series, step)).collect(),
            marks: &self.marks,
        };
        // The data hold numbers and strings only, which always serialise.
        serde_json::to_string(&plot).unwrap_or_default().replace('<', "\\u003c")
    }
}

#[derive(Serialize)]
struct Plot<'a> {
    tokens: usize,
    /// Tokens at one place.
    step: usize,
    /// Generation and offset of the first token at each place.
    first: Vec<(u32, u32)>,
    series: Vec<Line<'a>>,
    marks: &'a [Mark],
}

/// A series by place; `null` where no token of a place is trained.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    mean: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    signed: Vec<Option<f64>>,
    trained: Vec<usize>,
}

impl<'a> Line<'a> {
    fn new(series: &'a Series, step: usize) -> Self {
        let mut line =
            Self { name: &series.name, mean: vec![], max: vec![], signed: vec![], trained: vec![] };
        for place in series.gaps.chunks(step) {
            let gaps: Vec<f64> = place.iter().flatten().copied().collect();
            let per = |sum: f64| (!gaps.is_empty()).then(|| rounded(sum / gaps.len() as f64));
            line.mean.push(per(gaps.iter().copied().map(f64::abs).sum()));
            line.max.push(gaps.iter().copied().map(f64::abs).reduce(f64::max).map(rounded));
            line.signed.push(per(gaps.iter().sum()));
            line.trained.push(gaps.len());
        }
        line
    }
}

/// Four digits, which is what a chart shows.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
