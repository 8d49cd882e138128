use std::num::NonZeroU32;

use crate::PictureError;

/// Which colours a picture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// On white.
    #[default]
    Light,
    /// On black.
    Dark,
    /// An SVG follows the reader's preference; a PNG is light.
    Auto,
}

/// How a mask is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureOptions {
    /// Largest side of the mask in CSS pixels; labels come on top.
    pub side: u32,
    /// Pixels of the PNG, and of a shaded mask, per CSS pixel.
    pub scale: u32,
    /// Side of a tile in tokens, where a tile grid is to be seen.
    pub tile: Option<NonZeroU32>,
    /// Whether ids, ticks and notes are written; the legend always is.
    pub labels: bool,
    /// The colours.
    pub theme: Theme,
    /// The sequence to draw; all of them one after the other where `None`.
    pub sequence: Option<usize>,
    /// What stands above it, such as the name of a file.
    pub title: Option<String>,
}

impl Default for PictureOptions {
    fn default() -> Self {
        Self {
            side: 720,
            scale: 2,
            tile: None,
            labels: true,
            theme: Theme::Light,
            sequence: None,
            title: None,
        }
    }
}

impl PictureOptions {
    /// Device pixels that the mask may take.
    pub(crate) fn pixels(&self) -> usize {
        self.side as usize * self.scale as usize
    }

    pub(crate) fn validate(&self) -> Result<(), PictureError> {
        let (side, scale) = (self.side, self.scale);
        if (64..=8192).contains(&side) && (1..=4).contains(&scale) && side * scale <= 16384 {
            Ok(())
        } else {
            Err(PictureError::PictureSize { side, scale })
        }
    }
}
