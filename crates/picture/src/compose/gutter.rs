//! What stands left of the rows' heads: the branches of the tree, and what each generation sampled.
use super::axes::Heads;
use super::{Composer, SMALL};
use crate::scene::{Anchor, Paint, Shape};
use crate::speaker::Speaker;

/// Thickness of a generation's bar.
const BAR: f32 = 5.0;
/// Most that the branches may take.
const BRANCHES: f32 = 72.0;

/// How much place the gutter takes.
pub(super) struct Gutter {
    branches: f32,
    lane: f32,
    bars: f32,
}

impl Gutter {
    pub(super) fn of(composer: &Composer<'_>) -> Self {
        let subject = composer.subject;
        let height = subject.branches.iter().map(|branch| branch.height).max().unwrap_or(0);
        let lane = (BRANCHES / height.max(1) as f32).min(10.0);
        let branches = if height == 0 { 0.0 } else { height as f32 * lane + 12.0 };
        let labels = subject
            .bars
            .iter()
            .map(|bar| composer.width(&name(bar.generation, bar.sharers), SMALL));
        let widest = if composer.options.labels { labels.fold(0.0, f32::max) + 4.0 } else { 0.0 };
        Self {
            branches,
            lane,
            bars: if subject.bars.is_empty() { 0.0 } else { widest + BAR + 8.0 },
        }
    }

    pub(super) fn width(&self) -> f32 {
        self.branches + self.bars
    }
}

fn name(generation: u32, sharers: usize) -> String {
    match sharers {
        0 | 1 => format!("g{generation}"),
        _ => format!("g{generation} +{}", sharers - 1),
    }
}

impl Composer<'_> {
    pub(super) fn gutter(&mut self, gutter: &Gutter, heads: &Heads) {
        let right = self.frame.x - heads.left;
        self.bars(right - 8.0 - BAR);
        self.branches(right - gutter.bars, gutter.lane);
    }

    fn bars(&mut self, left: f32) {
        let paint = Paint::Speaker(Speaker::Policy);
        let mut free = f32::MIN;
        let mut drawn = f32::MIN;
        for bar in &self.subject.bars {
            let (top, bottom) = (self.frame.down(bar.start), self.frame.down(bar.end));
            if bottom < drawn + 0.25 {
                continue;
            }
            drawn = bottom;
            let long = bottom - top;
            let gap = if long >= 3.0 { 1.0 } else { 0.0 };
            let shared = if bar.sharers > 1 {
                format!(" and {} more", bar.sharers - 1)
            } else {
                String::new()
            };
            let tokens = bar.end - bar.start;
            let hint = format!("generation {}{shared}: {tokens} sampled here", bar.generation);
            let shape = Shape::rect([left, top], [BAR, (long - gap).max(0.5)], paint);
            self.shapes.push(shape.hinted(hint));
            let middle = top + long / 2.0;
            if self.options.labels && middle - SMALL / 2.0 >= free {
                let text = name(bar.generation, bar.sharers);
                let at = [left - 4.0, middle + SMALL * 0.36];
                self.shapes.push(Shape::text(at, SMALL, Anchor::End, Paint::Muted, text));
                free = middle + SMALL / 2.0 + 1.0;
            }
        }
    }

    /// Brackets from the row after which a branch goes on to its first row.
    fn branches(&mut self, right: f32, lane: f32) {
        let evictions: rustc_hash::FxHashSet<usize> =
            self.subject.evictions.iter().map(|mark| mark.rows.start).collect();
        let half = self.frame.cell / 2.0;
        let edge = right - 10.0;
        for branch in &self.subject.branches {
            let (top, bottom) =
                (self.frame.down(branch.from) + half, self.frame.down(branch.last()) + half);
            if bottom - top < 2.0 {
                continue;
            }
            let x = edge - branch.height as f32 * lane + lane / 2.0;
            self.shapes.push(Shape::rect([x, top - 0.5], [1.0, bottom - top + 1.0], Paint::Muted));
            self.shapes.push(Shape::rect([x, top - 0.5], [right - x - 2.0, 1.0], Paint::Muted));
            self.shapes.push(Shape::dot([right - 3.0, top], 2.0, Paint::Muted));
            for &to in &branch.to {
                let y = self.frame.down(to) + half;
                let paint = if evictions.contains(&to) { Paint::Eviction } else { Paint::Muted };
                self.shapes.push(Shape::rect([x, y - 0.5], [right - x - 5.0, 1.0], paint));
                self.shapes.push(Shape::polygon(
                    [right - 6.0, y - 3.0],
                    vec![[0.0, 0.0], [5.0, 3.0], [0.0, 6.0]],
                    paint,
                ));
            }
        }
    }
}
