use pleach_layout::LayoutKind;

use super::mask::ring;
use super::{Composer, MARGIN, SMALL, grouped};
use crate::coverage::{Bins, Coverage, Tile};
use crate::scene::{Anchor, Paint, Shape};
use crate::speaker::Speaker;

/// Side of a swatch.
const SWATCH: f32 = 10.0;
/// Height of a line of the legend.
const LINE: f32 = 18.0;

enum Sign {
    Speaker(Speaker),
    Evicted,
    Hole,
    Blank,
    Bar,
    Bracket,
    Prediction,
    Full,
    Partial,
    None,
}

impl Composer<'_> {
    /// Draws the legend within a width and returns its lower edge.
    pub(super) fn legend(&mut self, width: f32) -> f32 {
        let mut at = [MARGIN, self.frame.y + self.frame.side + 44.0];
        for (sign, text) in self.entries() {
            let swatch = if matches!(sign, Sign::None) { 0.0 } else { SWATCH + 6.0 };
            let long = swatch + self.width(&text, SMALL + 1.0) + 20.0;
            if at[0] > MARGIN && at[0] + long > width {
                at = [MARGIN, at[1] + LINE];
            }
            self.sign(&sign, [at[0], at[1] - SWATCH + 1.5]);
            self.push(Shape::text(
                [at[0] + swatch, at[1]],
                SMALL + 1.0,
                Anchor::Start,
                Paint::Muted,
                text,
            ));
            at[0] += long;
        }
        at[1] + 6.0
    }

    fn entries(&self) -> Vec<(Sign, String)> {
        let subject = self.subject;
        let present = |speaker: &Speaker| subject.runs.iter().any(|run| run.speaker == *speaker);
        let speakers = Speaker::ALL.into_iter().filter(present);
        let mut entries: Vec<(Sign, String)> = speakers
            .map(|speaker| (Sign::Speaker(speaker), format!("key from {}", speaker.label())))
            .collect();
        if subject.evictions.iter().any(|mark| !mark.keys.is_empty()) {
            let text = match subject.kind {
                LayoutKind::Full => "evicted, visible all the same: stale context",
                _ => "evicted: not in these rows' live view",
            };
            entries.push((Sign::Evicted, text.into()));
        } else if !subject.evictions.is_empty() {
            entries.push((Sign::Hole, "hole: an eviction took what stood here".into()));
        }
        if !subject.branches.is_empty() {
            entries.push((Sign::Blank, "blank below the diagonal: another branch".into()));
        } else if subject.roots.len() > 1 {
            entries.push((Sign::Blank, "blank below the diagonal: another sequence".into()));
        }
        if !subject.bars.is_empty() {
            entries.push((Sign::Bar, "g = tokens that a generation sampled".into()));
        }
        if !subject.branches.is_empty() {
            entries
                .push((Sign::Bracket, "branch: goes on after the dot, starts at the arrow".into()));
        }
        if !subject.predictions.is_empty() {
            entries.push(match self.legible() {
                true => (Sign::None, "→ token id that a row predicts".into()),
                false => (Sign::Prediction, "rows that predict".into()),
            });
        }
        if self.options.labels {
            let text = if self.legible() {
                "on the strips: segment ids; beside the mask: token ids"
            } else {
                "on the strips: segment ids"
            };
            entries.push((Sign::None, text.into()));
        }
        entries.extend(self.tile_entries());
        entries
    }

    fn tile_entries(&self) -> Vec<(Sign, String)> {
        let Some(size) = self.options.tile else { return Vec::new() };
        let Some(shown) = self.tile_size() else {
            return vec![(Sign::None, format!("tiles of {size} are too small to be drawn here"))];
        };
        let bins = Bins::tiles(self.subject.len(), shown);
        let coverage = Coverage::of(&self.subject.ends, bins);
        let (mut full, mut partial, mut computed) = (0, 0, 0);
        for row in 0..bins.len() {
            for key in 0..bins.len() {
                match coverage.tile(row, key) {
                    Tile::Empty => continue,
                    Tile::Partial => partial += 1,
                    Tile::Full => full += 1,
                }
                computed += coverage.area(row, key);
            }
        }
        let empty = (bins.len() * bins.len()) as u64 - full - partial;
        let overhead = computed as f64 / self.subject.pairs.max(1) as f64;
        vec![
            (Sign::Full, format!("{} full tiles of {size}", grouped(full))),
            (Sign::Partial, format!("{} partial", grouped(partial))),
            (
                Sign::None,
                format!("{} empty; {overhead:.2} pairs computed per pair needed", grouped(empty)),
            ),
        ]
    }

    fn sign(&mut self, sign: &Sign, [x, y]: [f32; 2]) {
        let policy = Paint::Speaker(Speaker::Policy);
        let square = [SWATCH, SWATCH];
        match sign {
            Sign::Speaker(speaker) => {
                self.push(Shape::rect([x, y], square, Paint::Speaker(*speaker)).rounded(2.0))
            }
            Sign::Evicted => {
                let opacity = if self.subject.kind == LayoutKind::Full { 0.5 } else { 0.2 };
                self.push(Shape::rect([x, y], square, Paint::Eviction).faded(opacity));
                self.push(Shape::rect([x, y], [SWATCH, 1.0], Paint::Eviction));
            }
            Sign::Hole => self.push(Shape::rect([x, y + 4.5], [SWATCH, 1.0], Paint::Eviction)),
            Sign::Blank => {
                self.push(Shape::rect([x, y], square, Paint::Faint).rounded(2.0));
                self.push(Shape::rect(
                    [x + 1.0, y + 1.0],
                    [SWATCH - 2.0, SWATCH - 2.0],
                    Paint::Ground,
                ));
            }
            Sign::Bar => self.push(Shape::rect([x + 3.0, y], [5.0, SWATCH], policy)),
            Sign::Bracket => {
                self.push(Shape::rect([x, y + 1.0], [8.0, 1.0], Paint::Muted));
                self.push(Shape::rect([x, y + 1.0], [1.0, 8.0], Paint::Muted));
                self.push(Shape::rect([x, y + 8.0], [6.0, 1.0], Paint::Muted));
                self.push(Shape::dot([x + 9.0, y + 1.5], 2.0, Paint::Muted));
                self.push(Shape::polygon(
                    [x + 5.0, y + 5.5],
                    vec![[0.0, 0.0], [5.0, 3.0], [0.0, 6.0]],
                    Paint::Muted,
                ));
            }
            Sign::Prediction => self.push(Shape::rect([x + 3.0, y], [4.0, SWATCH], policy)),
            Sign::Full => {
                self.push(Shape::dot([x + SWATCH / 2.0, y + SWATCH / 2.0], 2.0, Paint::Ink))
            }
            Sign::Partial => self.push(ring([x - 1.0, y - 1.0], [SWATCH + 2.0, SWATCH + 2.0])),
            Sign::None => {}
        }
    }
}
