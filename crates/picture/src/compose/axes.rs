//! What stands at the head of every row and key: token ids, segments, and indices.
use super::{Composer, SMALL, STRIP, grouped};
use crate::coverage::Bins;
use crate::scene::{Anchor, Paint, Pixels, Shape};
use crate::speaker::Speaker;
use crate::subject::Run;

/// How much place the heads take.
pub(super) struct Heads {
    /// Left of the mask.
    pub(super) left: f32,
    /// Above the mask.
    pub(super) top: f32,
    /// Of that, for token ids.
    ids: [f32; 2],
    /// Whether token ids above the mask are read upwards.
    turned: bool,
    size: f32,
    step: usize,
}

impl Heads {
    pub(super) fn of(composer: &Composer<'_>) -> Self {
        let (cell, subject) = (composer.frame.cell, composer.subject);
        let size = (cell * 0.5).clamp(7.0, 10.0);
        let mut ids = [0.0; 2];
        let mut turned = false;
        if composer.legible() {
            let widest = subject
                .tokens
                .iter()
                .map(|token| composer.width(&token.to_string(), size))
                .fold(0.0, f32::max);
            turned = widest > cell - 2.0;
            ids = [widest + 8.0, if turned { widest + 8.0 } else { size + 7.0 }];
        }
        let step = step(subject.len(), 44.0 / cell);
        let last = grouped(subject.len().saturating_sub(1) as u64);
        let ticks = if composer.options.labels {
            [composer.width(&last, SMALL) + 8.0, SMALL + 7.0]
        } else {
            [0.0; 2]
        };
        let gap = 3.0;
        Self {
            left: ids[0] + STRIP + gap + ticks[0],
            top: ids[1] + STRIP + gap + ticks[1],
            ids,
            turned,
            size,
            step,
        }
    }

    /// Left edge of the strip of segments, and top edge of the one above the mask.
    fn strips(&self, composer: &Composer<'_>) -> [f32; 2] {
        let gap = if self.ids[0] > 0.0 { 0.0 } else { 3.0 };
        [composer.frame.x - self.ids[0] - gap - STRIP, composer.frame.y - self.ids[1] - gap - STRIP]
    }
}

/// The smallest round number of tokens that is at least `least`.
fn step(tokens: usize, least: f32) -> usize {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if (factor * power) as f32 >= least || factor * power >= tokens.max(1) {
                return factor * power;
            }
        }
        power *= 10;
    }
}

impl Composer<'_> {
    pub(super) fn heads(&mut self, heads: &Heads) {
        self.strips(heads);
        if heads.ids[0] > 0.0 {
            self.ids(heads);
        }
        if !self.options.labels {
            return;
        }
        self.ticks(heads);
        let ([left, top], frame) = (heads.strips(self), self.frame);
        let middle = top + STRIP / 2.0 + SMALL * 0.36;
        self.push(Shape::text(
            [frame.x + frame.side + 8.0, middle],
            SMALL,
            Anchor::Start,
            Paint::Muted,
            "keys →",
        ));
        let at = [left + STRIP, frame.y + frame.side + SMALL + 5.0];
        self.push(Shape::text(at, SMALL, Anchor::End, Paint::Muted, "queries ↓"));
    }

    fn ids(&mut self, heads: &Heads) {
        let (frame, half) = (self.frame, self.frame.cell / 2.0);
        for (at, token) in self.subject.tokens.iter().enumerate() {
            let (text, drop) = (token.to_string(), heads.size * 0.36);
            let row = [frame.x - 5.0, frame.down(at) + half + drop];
            self.shapes.push(Shape::text(row, heads.size, Anchor::End, Paint::Ink, text.clone()));
            let key = match heads.turned {
                true => [frame.across(at) + half + drop, frame.y - 5.0],
                false => [frame.across(at) + half, frame.y - 5.0],
            };
            let anchor = if heads.turned { Anchor::Start } else { Anchor::Middle };
            let label = Shape::text(key, heads.size, anchor, Paint::Ink, text);
            self.shapes.push(if heads.turned { label.turned() } else { label });
        }
    }

    fn strips(&mut self, heads: &Heads) {
        let ([left, top], frame) = (heads.strips(self), self.frame);
        if let Some(cells) = frame.shaded {
            let rgba = self.mixed(cells);
            let (long, count) = (frame.side, rgba.len() as u32);
            let row = Pixels { width: count, height: 1, rgba: rgba.clone() };
            self.push(Shape::image([frame.x, top], [long, STRIP], row));
            self.push(Shape::image(
                [left, frame.y],
                [STRIP, long],
                Pixels { width: 1, height: count, rgba },
            ));
        }
        for run in &self.subject.runs {
            let long = (run.end - run.start) as f32 * frame.cell;
            if frame.shaded.is_some() && long < 3.0 {
                continue;
            }
            let gap = if long >= 4.0 { 1.0 } else { 0.0 };
            let (paint, hint) = (Paint::Speaker(run.speaker), self.hint(run));
            let row = Shape::rect([left, frame.down(run.start)], [STRIP, long - gap], paint);
            let key = Shape::rect([frame.across(run.start), top], [long - gap, STRIP], paint);
            self.shapes.push(row.hinted(hint.clone()));
            self.shapes.push(key.hinted(hint));
            self.segment_ids(run, long, [left, top]);
        }
    }

    /// A segment's id on its strip, where it fits.
    fn segment_ids(&mut self, run: &Run, long: f32, [left, top]: [f32; 2]) {
        let id = run.segment.to_string();
        let size = 8.0;
        let (wide, drop) = (self.width(&id, size), size * 0.36);
        if !self.options.labels || wide > STRIP - 1.0 && long < wide + 3.0 {
            return;
        }
        let middle =
            [self.frame.across(run.start) + long / 2.0, self.frame.down(run.start) + long / 2.0];
        let text = |at: [f32; 2]| Shape::text(at, size, Anchor::Middle, Paint::Inverse, id.clone());
        if wide <= STRIP - 1.0 && long >= size + 1.0 {
            self.shapes.push(text([left + STRIP / 2.0, middle[1] + drop]));
        } else if long >= wide + 3.0 {
            self.shapes.push(text([left + STRIP / 2.0 + drop, middle[1]]).turned());
        }
        if long >= wide + 3.0 {
            self.shapes.push(text([middle[0], top + STRIP / 2.0 + drop]));
        }
    }

    fn hint(&self, run: &Run) -> String {
        let (tokens, last) = (run.end - run.start, run.end - 1);
        let range = match tokens {
            1 => format!("token {}", grouped(run.start as u64)),
            _ => format!("tokens {} to {}", grouped(run.start as u64), grouped(last as u64)),
        };
        format!(
            "segment {}, {}: {range}, from its token {}",
            run.segment,
            run.speaker.label(),
            grouped(u64::from(run.offset))
        )
    }

    /// The mean colour of the speakers in each cell of the shaded mask.
    fn mixed(&self, cells: usize) -> Vec<[u8; 4]> {
        let bins = Bins::even(self.subject.len(), cells);
        let mut counts = vec![[0_usize; Speaker::ALL.len()]; bins.len()];
        for (token, speaker) in self.subject.speakers().into_iter().enumerate() {
            counts[bins.of(token)][speaker.index()] += 1;
        }
        let mix = |(cell, counts): (usize, &[usize; Speaker::ALL.len()])| {
            let part = |at: usize| {
                let of = |(speaker, &count): (Speaker, &usize)| {
                    f64::from(Paint::Speaker(speaker).rgb(false)[at]) * count as f64
                };
                let sum: f64 = Speaker::ALL.into_iter().zip(counts).map(of).sum();
                (sum / bins.size(cell) as f64).round() as u8
            };
            [part(0), part(1), part(2), 255]
        };
        counts.iter().enumerate().map(mix).collect()
    }

    fn ticks(&mut self, heads: &Heads) {
        let (frame, [left, top]) = (self.frame, heads.strips(self));
        let half = if frame.cell >= 5.0 { frame.cell / 2.0 } else { 0.0 };
        for token in (0..self.subject.len()).step_by(heads.step) {
            let text = grouped(token as u64);
            let (across, down) = (frame.across(token) + half, frame.down(token) + half);
            self.push(Shape::rect([across - 0.5, top - 4.0], [1.0, 3.0], Paint::Faint));
            self.push(Shape::rect([left - 4.0, down - 0.5], [3.0, 1.0], Paint::Faint));
            self.push(Shape::text(
                [across, top - 6.0],
                SMALL,
                Anchor::Middle,
                Paint::Muted,
                text.clone(),
            ));
            self.push(Shape::text(
                [left - 6.0, down + SMALL * 0.36],
                SMALL,
                Anchor::End,
                Paint::Muted,
                text,
            ));
        }
    }
}
