use pleach_layout::{Layout, Layouts};

use crate::font::Font;
use crate::scene::Scene;
use crate::subject::Subject;
use crate::{PictureError, PictureOptions, compose, raster, svg};

/// The mask of a layout, drawn: row = query downwards, key to the right.
///
/// Colour says who wrote a key, shade which part of a cell is visible; a cell is a token while
/// tokens are at least a pixel, and an exact average of the pairs under it above that. One
/// description is drawn twice, so the SVG and the PNG show the same.
#[derive(Debug, Clone)]
pub struct Picture {
    scene: Scene,
    font: Font,
    options: PictureOptions,
}

impl Picture {
    /// Draws one sequence of `layout`, or all of them one after the other, in time linear in tokens
    /// and pixels.
    ///
    /// # Errors
    /// A sequence that the layout does not have; a size outside what can be drawn; arrays that do not
    /// fit together, as [`Layout::check`] finds them.
    pub fn new(
        layouts: &Layouts<'_>,
        layout: &Layout,
        options: &PictureOptions,
    ) -> Result<Self, PictureError> {
        options.validate()?;
        layout.check()?;
        let font = Font::load()?;
        let subject = Subject::new(layouts, layout, options.sequence)?;
        let scene = compose::compose(&subject, &font, options);
        Ok(Self { scene, font, options: options.clone() })
    }

    /// Width and height in CSS pixels.
    pub fn size(&self) -> (f32, f32) {
        (self.scene.width, self.scene.height)
    }

    /// The picture as SVG; text stays text.
    ///
    /// # Errors
    /// [`PictureError::Png`] where the shaded mask inside it cannot be encoded.
    pub fn svg(&self) -> Result<String, PictureError> {
        svg::write(&self.scene, self.options.theme)
    }

    /// The picture as PNG of [`PictureOptions::scale`] pixels per CSS pixel, with letters of its
    /// own.
    ///
    /// # Errors
    /// [`PictureError::Png`] where it cannot be encoded.
    pub fn png(&self) -> Result<Vec<u8>, PictureError> {
        raster::png(&self.scene, &self.font, &self.options)
    }
}
