use ttf_parser::{Face, GlyphId, OutlineBuilder};

use crate::PictureError;

/// The letters of a PNG, and what decides in both formats whether a label fits.
///
/// DejaVu Sans is wider than what browsers take in its place, so what fits here fits there.
#[derive(Debug, Clone)]
pub(crate) struct Font {
    face: Face<'static>,
}

impl Font {
    pub(crate) fn load() -> Result<Self, PictureError> {
        let face = Face::parse(dejavu::sans::regular(), 0)
            .map_err(|error| PictureError::Png { reason: error.to_string() })?;
        Ok(Self { face })
    }

    /// Width of a line of text.
    pub(crate) fn width(&self, text: &str, size: f32) -> f32 {
        let units: u32 = text.chars().map(|letter| self.advance(self.glyph(letter))).sum();
        units as f32 * self.scale(size)
    }

    /// Draws a line of text, its baseline from `at` to the right or, `turned`, upwards.
    pub(crate) fn outline(
        &self,
        text: &str,
        size: f32,
        turned: bool,
        at: [f32; 2],
        path: &mut tiny_skia::PathBuilder,
    ) {
        let scale = self.scale(size);
        let mut along = 0;
        for letter in text.chars() {
            let glyph = self.glyph(letter);
            let mut pen = Pen { path, scale, turned, at, along: along as f32 };
            self.face.outline_glyph(glyph, &mut pen);
            along += self.advance(glyph);
        }
    }

    fn glyph(&self, letter: char) -> GlyphId {
        self.face.glyph_index(letter).unwrap_or(GlyphId(0))
    }

    fn advance(&self, glyph: GlyphId) -> u32 {
        u32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0))
    }

    fn scale(&self, size: f32) -> f32 {
        size / f32::from(self.face.units_per_em())
    }
}

struct Pen<'p> {
    path: &'p mut tiny_skia::PathBuilder,
    scale: f32,
    turned: bool,
    at: [f32; 2],
    along: f32,
}

impl Pen<'_> {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let (along, up) = ((self.along + x) * self.scale, y * self.scale);
        let [x, y] = self.at;
        if self.turned { (x - up, y - along) } else { (x + along, y - up) }
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) =
            (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
