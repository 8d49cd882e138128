use std::ops::Range;

use pleach_layout::LayoutKind;

use super::{Composer, LEGIBLE};
use crate::coverage::{Bins, Coverage, Tile, columns};
use crate::scene::{Paint, Pixels, Shape};
use crate::speaker::Speaker;
use crate::subject::Run;

/// Opacity of a visible pair.
const VISIBLE: f32 = 0.62;
/// Opacity of an evicted key in the rows that live without it.
const EVICTED: f32 = 0.13;
/// The same where those rows see it all the same.
const STALE: f32 = 0.42;
/// Nothing finer is drawn one by one.
const FINEST: f32 = 0.25;
/// Smallest tile whose kind can be seen.
pub(super) const SMALLEST_TILE: f32 = 9.0;

impl Composer<'_> {
    /// The mask: visible pairs, evicted keys, cells and tiles.
    pub(super) fn mask(&mut self) {
        let frame = self.frame;
        self.push(Shape::rect([frame.x, frame.y], [frame.side, frame.side], Paint::Ground));
        match frame.shaded {
            Some(cells) => self.shades(cells),
            None => self.intervals(),
        }
        self.evicted();
        if self.frame.shaded.is_none() && frame.cell >= 5.0 {
            self.cells();
        }
        self.tiles();
    }

    /// One polygon for keys of one segment that end together: a staircase over a rectangle.
    fn intervals(&mut self) {
        let ends = &self.subject.ends;
        let shapes: Vec<Shape> = self
            .subject
            .runs
            .iter()
            .flat_map(|run| {
                let keys: Vec<usize> = (run.start..run.end).collect();
                let polygons: Vec<Shape> = keys
                    .chunk_by(|&a, &b| ends[a] == ends[b])
                    .filter_map(|keys| self.staircase(keys, run))
                    .collect();
                polygons
            })
            .collect();
        self.shapes.extend(shapes);
    }

    fn staircase(&self, keys: &[usize], run: &Run) -> Option<Shape> {
        let (first, last) = (*keys.first()?, *keys.last()?);
        let end = usize::try_from(self.subject.ends[first]).ok().filter(|&end| end > last)?;
        let cell = self.frame.cell;
        let (width, height) = (keys.len() as f32 * cell, (end - first) as f32 * cell);
        let mut corners = vec![[0.0, 0.0], [0.0, height], [width, height]];
        for key in (1..keys.len()).rev() {
            let side = key as f32 * cell;
            corners.push([side + cell, side]);
            corners.push([side, side]);
        }
        corners.push([cell, 0.0]);
        if keys.len() > 1 {
            corners.dedup();
        }
        let at = [self.frame.across(first), self.frame.down(first)];
        Some(Shape::polygon(at, corners, Paint::Speaker(run.speaker)).faded(VISIBLE))
    }

    fn shades(&mut self, cells: usize) {
        let speakers = self.subject.speakers();
        let bins = Bins::even(self.subject.len(), cells);
        let cells = bins.len();
        let mut rgba = vec![[0; 4]; cells * cells];
        columns::<{ Speaker::ALL.len() }>(
            &self.subject.ends,
            bins,
            |token| speakers[token].index(),
            |key, column| {
                for (row, counts) in column.iter().enumerate() {
                    let area = bins.size(row) as u64 * bins.size(key) as u64;
                    rgba[row * cells + key] = shade(counts, area);
                }
            },
        );
        let frame = self.frame;
        let pixels = Pixels { width: cells as u32, height: cells as u32, rgba };
        self.push(Shape::image([frame.x, frame.y], [frame.side, frame.side], pixels));
    }

    fn evicted(&mut self) {
        let opacity = if self.subject.kind == LayoutKind::Full { STALE } else { EVICTED };
        let cell = self.frame.cell;
        for mark in &self.subject.evictions {
            let height = mark.rows.len() as f32 * cell;
            for keys in seen(&mark.keys, cell) {
                let at = [self.frame.across(keys.start), self.frame.down(mark.rows.start)];
                let size = [keys.len() as f32 * cell, height];
                if height >= FINEST {
                    self.shapes.push(Shape::rect(at, size, Paint::Eviction).faded(opacity));
                }
            }
        }
    }

    /// The tokens' own cells, and lines between cells.
    fn cells(&mut self) {
        let (frame, tokens) = (self.frame, self.subject.len());
        for run in &self.subject.runs {
            for token in run.start..run.end {
                let at = [frame.across(token), frame.down(token)];
                self.shapes.push(
                    Shape::rect(at, [frame.cell, frame.cell], Paint::Speaker(run.speaker))
                        .faded(0.75),
                );
            }
        }
        let thin = if frame.cell >= LEGIBLE { 1.0 } else { 0.5 };
        for token in 1..tokens {
            self.push(Shape::rect(
                [frame.x, frame.down(token) - thin / 2.0],
                [frame.side, thin],
                Paint::Paper,
            ));
            self.push(Shape::rect(
                [frame.across(token) - thin / 2.0, frame.y],
                [thin, frame.side],
                Paint::Paper,
            ));
        }
    }

    /// The tile grid: a frame around a partial tile, a dot in a full one.
    fn tiles(&mut self) {
        let Some(size) = self.tile_size() else { return };
        let bins = Bins::tiles(self.subject.len(), size);
        let coverage = Coverage::of(&self.subject.ends, bins);
        let frame = self.frame;
        for row in 0..bins.len() {
            for key in 0..bins.len() {
                let at = [frame.across(bins.edge(key)), frame.down(bins.edge(row))];
                let size = [bins.size(key) as f32 * frame.cell, bins.size(row) as f32 * frame.cell];
                match coverage.tile(row, key) {
                    Tile::Empty => {}
                    Tile::Full => {
                        let centre = [at[0] + size[0] / 2.0, at[1] + size[1] / 2.0];
                        self.push(Shape::dot(centre, (size[0] / 8.0).clamp(1.2, 3.0), Paint::Ink));
                    }
                    Tile::Partial => self.push(ring(at, size)),
                }
            }
        }
    }

    /// The tile size, where a tile is large enough to be seen.
    pub(super) fn tile_size(&self) -> Option<usize> {
        let size = self.options.tile?.get() as usize;
        (size as f32 * self.frame.cell >= SMALLEST_TILE).then_some(size)
    }
}

/// Ranges of keys that can be seen; what lies closer than an eye can tell is one.
fn seen(ranges: &[Range<usize>], cell: f32) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut().filter(|last| ((range.start - last.end) as f32 * cell) < FINEST) {
            Some(last) => last.end = range.end,
            None => merged.push(range.clone()),
        }
    }
    merged.retain(|range| range.len() as f32 * cell >= FINEST);
    merged
}

/// A thin frame just inside a rectangle.
pub(super) fn ring(at: [f32; 2], [width, height]: [f32; 2]) -> Shape {
    const INSET: f32 = 1.0;
    const INNER: f32 = 2.0;
    let corners = vec![
        [INSET, INSET],
        [width - INSET, INSET],
        [width - INSET, height - INSET],
        [INSET, height - INSET],
        [INSET, INSET],
        [INNER, INNER],
        [INNER, height - INNER],
        [width - INNER, height - INNER],
        [width - INNER, INNER],
        [INNER, INNER],
    ];
    Shape::polygon(at, corners, Paint::Ink).faded(0.7)
}

/// The colour of a cell: its speakers' colours by their visible pairs, as opaque as pairs are
/// visible.
fn shade(counts: &[u64; Speaker::ALL.len()], area: u64) -> [u8; 4] {
    let visible: u64 = counts.iter().sum();
    if visible == 0 {
        return [0; 4];
    }
    let mut mixed = [0.0; 3];
    for (speaker, &count) in Speaker::ALL.into_iter().zip(counts) {
        let rgb = Paint::Speaker(speaker).rgb(false);
        for (mixed, part) in mixed.iter_mut().zip(rgb) {
            *mixed += f64::from(part) * count as f64 / visible as f64;
        }
    }
    let alpha = visible as f64 / area as f64 * f64::from(VISIBLE) * 255.0;
    let [red, green, blue] = mixed.map(|part| part.round() as u8);
    [red, green, blue, alpha.round().max(1.0) as u8]
}
