//! What stands right of the mask: what rows predict, evictions, and where threads begin.
use pleach_layout::Eviction;
use pleach_tree::{By, ByKind, ReplacementKind};

use super::{Composer, SMALL, grouped};
use crate::scene::{Anchor, Paint, Shape};
use crate::speaker::Speaker;

/// Height of a line of a note.
const LINE: f32 = 12.0;
/// How far a note may stand below its row.
const FURTHEST: f32 = 90.0;

struct Note {
    row: usize,
    lines: Vec<String>,
    paint: Paint,
}

impl Composer<'_> {
    /// Draws them and returns the right edge of what was drawn.
    pub(super) fn notes(&mut self) -> f32 {
        let start = self.predictions();
        self.cuts(start);
        if !self.options.labels {
            return start;
        }
        let notes = self.written();
        let left = start + 22.0;
        let mut right = start;
        let mut free = self.frame.y - LINE / 4.0;
        let bottom = self.frame.y + self.frame.side;
        let mut left_out = 0;
        for note in &notes {
            let row = self.frame.down(note.row);
            let top = (row - LINE / 2.0).max(free);
            let height = note.lines.len() as f32 * LINE;
            if top - row > FURTHEST || top + height > bottom + 2.0 * LINE {
                left_out += 1;
                continue;
            }
            self.leader(start, row, top + LINE / 2.0, note.paint);
            for (at, line) in note.lines.iter().enumerate() {
                let paint = if at == 0 { note.paint } else { Paint::Muted };
                let baseline = top + at as f32 * LINE + LINE * 0.76;
                self.push(Shape::text(
                    [left, baseline],
                    SMALL,
                    Anchor::Start,
                    paint,
                    line.as_str(),
                ));
                right = right.max(left + self.width(line, SMALL));
            }
            free = top + height + 4.0;
        }
        if left_out > 0 {
            let text = format!("{left_out} more not named here");
            right = right.max(left + self.width(&text, SMALL));
            let baseline = free.min(bottom + 2.0 * LINE) + LINE * 0.76;
            self.push(Shape::text([left, baseline], SMALL, Anchor::Start, Paint::Muted, text));
        }
        right
    }

    /// What each row predicts, or where rows predict; returns the right edge.
    fn predictions(&mut self) -> f32 {
        let left = self.frame.x + self.frame.side + 6.0;
        let paint = Paint::Speaker(Speaker::Policy);
        if !self.legible() {
            let mut rows: Vec<usize> =
                self.subject.predictions.iter().map(|prediction| prediction.0).collect();
            rows.dedup();
            let mut drawn = f32::MIN;
            for rows in rows.chunk_by(|a, b| a + 1 == *b) {
                let (top, bottom) =
                    (self.frame.down(rows[0]), self.frame.down(rows[0] + rows.len()));
                if bottom >= drawn + 0.25 {
                    drawn = bottom;
                    self.push(Shape::rect([left, top], [4.0, (bottom - top).max(0.5)], paint));
                }
            }
            return left + 4.0;
        }
        let (size, half) = ((self.frame.cell * 0.5).clamp(7.0, 9.0), self.frame.cell / 2.0);
        let mut right = left + 4.0;
        for same in self.subject.predictions.chunk_by(|a, b| a.0 == b.0) {
            let targets: Vec<String> =
                same.iter().take(4).map(|prediction| prediction.1.to_string()).collect();
            let more = if same.len() > targets.len() { " …" } else { "" };
            let text = format!("→ {}{more}", targets.join("  "));
            let at = [left, self.frame.down(same[0].0) + half + size * 0.36];
            right = right.max(left + self.width(&text, size));
            self.shapes.push(Shape::text(at, size, Anchor::Start, paint, text));
        }
        right
    }

    /// A line across the mask where an eviction's rows begin.
    fn cuts(&mut self, right: f32) {
        let frame = self.frame;
        let mut drawn = f32::MIN;
        for mark in &self.subject.evictions {
            let y = frame.down(mark.rows.start);
            if y < drawn + 1.0 {
                continue;
            }
            drawn = y;
            let hint = format!("{}; {}", outcome(&mark.eviction), author(&mark.eviction));
            let line =
                Shape::rect([frame.x, y - 0.5], [right + 4.0 - frame.x, 1.0], Paint::Eviction)
                    .faded(0.75);
            self.shapes.push(line.hinted(hint));
        }
        for &root in self.subject.roots.iter().filter(|&&root| root > 0) {
            let (x, y) = (frame.across(root), frame.down(root));
            self.shapes.push(Shape::rect([frame.x, y - 0.5], [frame.side, 1.0], Paint::Faint));
            self.shapes.push(Shape::rect([x - 0.5, frame.y], [1.0, frame.side], Paint::Faint));
        }
    }

    fn leader(&mut self, start: f32, row: f32, middle: f32, paint: Paint) {
        let (from, turn, to) = (start + 4.0, start + 12.0, start + 19.0);
        self.push(Shape::rect([from, row - 0.5], [turn - from, 1.0], paint).faded(0.75));
        self.push(
            Shape::rect(
                [turn - 1.0, row.min(middle) - 0.5],
                [1.0, (middle - row).abs() + 1.0],
                paint,
            )
            .faded(0.75),
        );
        self.push(Shape::rect([turn, middle - 0.5], [to - turn, 1.0], paint).faded(0.75));
    }

    fn written(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = self
            .subject
            .starts
            .iter()
            .map(|start| Note {
                row: start.row,
                lines: vec![start.label.clone()],
                paint: Paint::Ink,
            })
            .collect();
        // Chat templates rewrite turn after turn; their brackets and lines stay, their notes would
        // bury the harness's own.
        notes.extend(
            self.subject.evictions.iter().filter(|mark| !mark.eviction.chat_template).map(|mark| {
                Note {
                    row: mark.rows.start,
                    lines: vec![outcome(&mark.eviction), author(&mark.eviction)],
                    paint: Paint::Eviction,
                }
            }),
        );
        notes.sort_by_key(|note| note.row);
        notes
    }
}

/// What an eviction did.
fn outcome(eviction: &Eviction) -> String {
    let count = |tokens: usize| {
        format!("{} token{}", grouped(tokens as u64), if tokens == 1 { "" } else { "s" })
    };
    let (removed, added) = (count(eviction.removed), count(eviction.added));
    match eviction.replacement {
        _ if eviction.operation == "replace" => format!("list replaced: {removed} out, {added} in"),
        Some(ReplacementKind::Summary) => format!("summary: {removed} out, {added} in"),
        Some(ReplacementKind::Placeholder) => format!("placeholder: {removed} out, {added} in"),
        Some(ReplacementKind::Truncation) => format!("truncation: {removed} out, {added} in"),
        Some(ReplacementKind::Index) => {
            format!("offloaded, can come back: {removed} out, {added} in")
        }
        Some(ReplacementKind::Latent) => format!("embeddings: {removed} out"),
        Some(ReplacementKind::None) | None => format!("evicted: {removed}, nothing instead"),
    }
}

/// Who did it and what it made.
fn author(eviction: &Eviction) -> String {
    let by = match &eviction.by {
        None => String::new(),
        Some(By { kind: ByKind::Policy, generation: Some(generation), .. }) => {
            format!(", by the policy in {generation}")
        }
        Some(By { kind: ByKind::Policy, .. }) => ", by the policy".into(),
        Some(By { kind: ByKind::Rule, name, .. }) => {
            format!(", by rule {}", name.as_deref().unwrap_or("of the harness"))
        }
        Some(By { kind: ByKind::ExternalModel, .. }) => ", by another model".into(),
        Some(By { kind: ByKind::Provider, .. }) => ", by the provider".into(),
        Some(By { kind: ByKind::Human, .. }) => ", by a person".into(),
        Some(By { kind: ByKind::Unknown, .. }) => String::new(),
    };
    format!("makes context {}{by}", eviction.context)
}
