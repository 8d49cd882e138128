//! What is drawn, before anything draws it.
use crate::speaker::Speaker;
use crate::{PictureOptions, Theme};

/// A colour by what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Behind everything.
    Paper,
    /// A mask's invisible pairs.
    Ground,
    /// Text that is read first.
    Ink,
    /// Text that is read second.
    Muted,
    /// Lines.
    Faint,
    /// Evictions.
    Eviction,
    /// Text on a speaker's colour.
    Inverse,
    /// Who wrote it.
    Speaker(Speaker),
}

impl Paint {
    pub(crate) const ALL: [Self; 13] = [
        Self::Paper,
        Self::Ground,
        Self::Ink,
        Self::Muted,
        Self::Faint,
        Self::Eviction,
        Self::Inverse,
        Self::Speaker(Speaker::System),
        Self::Speaker(Speaker::User),
        Self::Speaker(Speaker::Policy),
        Self::Speaker(Speaker::Assistant),
        Self::Speaker(Speaker::Tool),
        Self::Speaker(Speaker::Harness),
    ];

    /// Name of its class in an SVG.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Ground => "ground",
            Self::Ink => "ink",
            Self::Muted => "muted",
            Self::Faint => "faint",
            Self::Eviction => "eviction",
            Self::Inverse => "inverse",
            Self::Speaker(Speaker::System) => "system",
            Self::Speaker(Speaker::User) => "user",
            Self::Speaker(Speaker::Policy) => "policy",
            Self::Speaker(Speaker::Assistant) => "assistant",
            Self::Speaker(Speaker::Tool) => "tool",
            Self::Speaker(Speaker::Harness) => "harness",
        }
    }

    /// Red, green and blue. Speakers look the same on white and on black, so that a shaded mask
    /// suits both.
    pub(crate) fn rgb(self, dark: bool) -> [u8; 3] {
        match (self, dark) {
            (Self::Paper, false) => [0xff, 0xff, 0xff],
            (Self::Paper, true) => [0x14, 0x18, 0x1f],
            (Self::Ground, false) => [0xf4, 0xf6, 0xf8],
            (Self::Ground, true) => [0x1c, 0x22, 0x2b],
            (Self::Ink, false) => [0x1f, 0x27, 0x33],
            (Self::Ink, true) => [0xe6, 0xea, 0xf0],
            (Self::Muted, false) => [0x66, 0x70, 0x7f],
            (Self::Muted, true) => [0x97, 0xa3, 0xb3],
            (Self::Faint, false) => [0xd5, 0xdb, 0xe2],
            (Self::Faint, true) => [0x33, 0x3d, 0x4a],
            (Self::Eviction, false) => [0xc8, 0x3e, 0x52],
            (Self::Eviction, true) => [0xef, 0x6b, 0x7c],
            (Self::Inverse, _) => [0xff, 0xff, 0xff],
            (Self::Speaker(Speaker::System), _) => [0x5f, 0x6f, 0x94],
            (Self::Speaker(Speaker::User), _) => [0x3f, 0x86, 0xc6],
            (Self::Speaker(Speaker::Policy), _) => [0x23, 0x96, 0x7f],
            (Self::Speaker(Speaker::Assistant), _) => [0x8d, 0x74, 0xc4],
            (Self::Speaker(Speaker::Tool), _) => [0xcf, 0x8f, 0x35],
            (Self::Speaker(Speaker::Harness), _) => [0x93, 0x85, 0x78],
        }
    }
}

/// Which end of a text its `x` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Colours of a grid of pixels, not premultiplied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rgba: Vec<[u8; 4]>,
}

/// What a shape is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// A rectangle with rounded corners, a line where it is thin.
    Rect { width: f32, height: f32, radius: f32 },
    /// A closed polygon; corners count from the shape's place.
    Polygon(Vec<[f32; 2]>),
    /// A line of text whose baseline begins, is centred or ends at the shape's place.
    Text { size: f32, anchor: Anchor, turned: bool, content: String },
    /// Pixels stretched over a rectangle.
    Image { width: f32, height: f32, pixels: Pixels },
}

/// Something that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) at: [f32; 2],
    pub(crate) form: Form,
    pub(crate) paint: Paint,
    pub(crate) opacity: f32,
    /// Text for a reader who points at it.
    pub(crate) hint: Option<String>,
}

impl Shape {
    pub(crate) fn rect(at: [f32; 2], size: [f32; 2], paint: Paint) -> Self {
        let form = Form::Rect { width: size[0], height: size[1], radius: 0.0 };
        Self { at, form, paint, opacity: 1.0, hint: None }
    }

    pub(crate) fn polygon(at: [f32; 2], corners: Vec<[f32; 2]>, paint: Paint) -> Self {
        Self { at, form: Form::Polygon(corners), paint, opacity: 1.0, hint: None }
    }

    pub(crate) fn dot(centre: [f32; 2], radius: f32, paint: Paint) -> Self {
        let form = Form::Rect { width: 2.0 * radius, height: 2.0 * radius, radius };
        Self { at: [centre[0] - radius, centre[1] - radius], form, paint, opacity: 1.0, hint: None }
    }

    pub(crate) fn text(
        at: [f32; 2],
        size: f32,
        anchor: Anchor,
        paint: Paint,
        content: impl Into<String>,
    ) -> Self {
        let form = Form::Text { size, anchor, turned: false, content: content.into() };
        Self { at, form, paint, opacity: 1.0, hint: None }
    }

    pub(crate) fn image(at: [f32; 2], size: [f32; 2], pixels: Pixels) -> Self {
        let form = Form::Image { width: size[0], height: size[1], pixels };
        Self { at, form, paint: Paint::Ink, opacity: 1.0, hint: None }
    }

    pub(crate) fn faded(self, opacity: f32) -> Self {
        Self { opacity, ..self }
    }

    pub(crate) fn hinted(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn rounded(mut self, corner: f32) -> Self {
        if let Form::Rect { radius, .. } = &mut self.form {
            *radius = corner;
        }
        self
    }

    /// The text read upwards.
    pub(crate) fn turned(mut self) -> Self {
        if let Form::Text { turned, .. } = &mut self.form {
            *turned = true;
        }
        self
    }
}

/// A picture's shapes, first at the bottom.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scene {
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// What the picture is, for a reader who does not see it.
    pub(crate) description: String,
    pub(crate) shapes: Vec<Shape>,
}

impl PictureOptions {
    /// Whether a PNG is dark.
    pub(crate) fn dark(&self) -> bool {
        self.theme == Theme::Dark
    }
}
