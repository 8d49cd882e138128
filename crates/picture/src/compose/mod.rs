//! Turns what a picture shows into shapes and texts at their places.
mod axes;
mod gutter;
mod legend;
mod mask;
mod notes;

use crate::PictureOptions;
use crate::font::Font;
use crate::scene::{Anchor, Paint, Scene, Shape};
use crate::subject::Subject;

/// Space around everything.
const MARGIN: f32 = 20.0;
/// Thickness of the strips that show segments.
const STRIP: f32 = 14.0;
/// Size of small text.
const SMALL: f32 = 9.0;
/// Smallest cell in which a token's id is written.
const LEGIBLE: f32 = 9.0;
/// Largest cell.
const LARGEST: f32 = 26.0;

/// Where tokens stand in the picture.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Top left corner of the mask.
    x: f32,
    y: f32,
    /// Side of the mask.
    side: f32,
    /// Side of a token; below a pixel where the mask is shaded.
    cell: f32,
    /// Cells of a shaded mask.
    shaded: Option<usize>,
}

impl Frame {
    fn new(tokens: usize, options: &PictureOptions) -> Self {
        let (pixels, scale) = (options.pixels(), options.scale as f32);
        let frame = |cell: f32, side: f32, shaded| Self { x: 0.0, y: 0.0, side, cell, shaded };
        if tokens > pixels {
            let side = options.side as f32;
            return frame(side / tokens as f32, side, Some(pixels));
        }
        // Whole pixels per token, so that equal cells look equal.
        let cell = ((pixels / tokens.max(1)) as f32 / scale).min(LARGEST);
        frame(cell, cell * tokens as f32, None)
    }

    fn across(&self, token: usize) -> f32 {
        self.x + token as f32 * self.cell
    }

    fn down(&self, token: usize) -> f32 {
        self.y + token as f32 * self.cell
    }
}

/// A picture in the making.
struct Composer<'s> {
    subject: &'s Subject<'s>,
    font: &'s Font,
    options: &'s PictureOptions,
    frame: Frame,
    shapes: Vec<Shape>,
}

pub(super) fn compose(subject: &Subject<'_>, font: &Font, options: &PictureOptions) -> Scene {
    let frame = Frame::new(subject.len(), options);
    let mut composer = Composer { subject, font, options, frame, shapes: Vec::new() };
    let gutter = gutter::Gutter::of(&composer);
    let heads = axes::Heads::of(&composer);
    composer.frame.x = MARGIN + gutter.width() + heads.left;
    composer.frame.y = MARGIN + 52.0 + heads.top;
    let counts = composer.title();
    composer.mask();
    composer.heads(&heads);
    composer.gutter(&gutter, &heads);
    let right = composer.notes();
    let left_of_title = MARGIN + font.width(&counts, 11.0);
    let width = right.max(left_of_title).max(560.0) + MARGIN;
    let height = composer.legend(width) + MARGIN;
    let paper = Shape::rect([0.0, 0.0], [width, height], Paint::Paper);
    let shapes = std::iter::once(paper).chain(composer.shapes).collect();
    let title = options.title.as_deref().map_or_else(String::new, |title| format!("{title}: "));
    Scene {
        width,
        height,
        description: format!("{title}mask of layout {}, {counts}", subject.kind.name()),
        shapes,
    }
}

impl Composer<'_> {
    fn push(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    fn width(&self, text: &str, size: f32) -> f32 {
        self.font.width(text, size)
    }

    /// Whether single tokens can be told apart and labelled.
    fn legible(&self) -> bool {
        self.options.labels && self.frame.shaded.is_none() && self.frame.cell >= LEGIBLE
    }

    fn title(&mut self) -> String {
        let subject = self.subject;
        let layout = match subject.is_tape() {
            true => "packed, evicted in place".to_string(),
            false => subject.kind.name().to_string(),
        };
        let title = match &self.options.title {
            Some(title) => format!("{title}  ·  {layout}"),
            None => layout,
        };
        let tokens = subject.len() as u64;
        let plural = |count: u64, one: &str| {
            format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
        };
        let evictions: std::collections::BTreeSet<u32> =
            subject.evictions.iter().map(|mark| mark.eviction.context).collect();
        let counts = [
            plural(tokens, "token"),
            format!("{} of {} pairs visible", grouped(subject.pairs), grouped(tokens * tokens)),
            plural(subject.terms as u64, "loss term"),
            plural(subject.tree.generation_count() as u64, "generation"),
            plural(evictions.len() as u64, "eviction"),
        ]
        .join("  ·  ");
        self.push(Shape::text([MARGIN, MARGIN + 15.0], 16.0, Anchor::Start, Paint::Ink, title));
        self.push(Shape::text(
            [MARGIN, MARGIN + 34.0],
            11.0,
            Anchor::Start,
            Paint::Muted,
            counts.clone(),
        ));
        counts
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
