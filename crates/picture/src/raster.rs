//! A scene as PNG.
use tiny_skia::{
    Color, FillRule, FilterQuality, Paint as Ink, PathBuilder, Pixmap, PixmapPaint,
    PremultipliedColorU8, Rect, Transform,
};

use crate::PictureError;
use crate::PictureOptions;
use crate::font::Font;
use crate::scene::{Anchor, Form, Paint, Pixels, Scene, Shape};

pub(crate) fn png(
    scene: &Scene,
    font: &Font,
    options: &PictureOptions,
) -> Result<Vec<u8>, PictureError> {
    let scale = options.scale as f32;
    let mut canvas = Canvas {
        pixmap: pixmap((scene.width * scale).ceil() as u32, (scene.height * scale).ceil() as u32)?,
        transform: Transform::from_scale(scale, scale),
        dark: options.dark(),
        font,
    };
    for shape in &scene.shapes {
        canvas.draw(shape)?;
    }
    written(&canvas.pixmap)
}

/// Pixels as a PNG file.
pub(crate) fn encode(pixels: &Pixels) -> Result<Vec<u8>, PictureError> {
    written(&filled(pixels)?)
}

fn written(pixmap: &Pixmap) -> Result<Vec<u8>, PictureError> {
    pixmap.encode_png().map_err(|error| PictureError::Png { reason: error.to_string() })
}

fn pixmap(width: u32, height: u32) -> Result<Pixmap, PictureError> {
    Pixmap::new(width, height)
        .ok_or_else(|| PictureError::Png { reason: format!("{width} by {height} pixels") })
}

fn filled(pixels: &Pixels) -> Result<Pixmap, PictureError> {
    let mut image = pixmap(pixels.width, pixels.height)?;
    for (pixel, [red, green, blue, alpha]) in image.pixels_mut().iter_mut().zip(&pixels.rgba) {
        let part = |colour: u8| ((u32::from(colour) * u32::from(*alpha) + 127) / 255) as u8;
        // Premultiplied parts never exceed alpha.
        if let Some(colour) =
            PremultipliedColorU8::from_rgba(part(*red), part(*green), part(*blue), *alpha)
        {
            *pixel = colour;
        }
    }
    Ok(image)
}

struct Canvas<'f> {
    pixmap: Pixmap,
    transform: Transform,
    dark: bool,
    font: &'f Font,
}

impl Canvas<'_> {
    fn draw(&mut self, shape: &Shape) -> Result<(), PictureError> {
        let [x, y] = shape.at;
        match &shape.form {
            Form::Rect { width, height, radius } if *radius > 0.0 => {
                self.fill(rounded([x, y], [*width, *height], *radius), shape, true);
            }
            Form::Rect { width, height, .. } => {
                if let Some(rect) = Rect::from_xywh(x, y, *width, *height) {
                    let ink = self.ink(shape, false);
                    self.pixmap.fill_rect(rect, &ink, self.transform, None);
                }
            }
            Form::Polygon(corners) => {
                let mut path = PathBuilder::new();
                for (index, corner) in corners.iter().enumerate() {
                    let (x, y) = (x + corner[0], y + corner[1]);
                    if index == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
                }
                path.close();
                self.fill(path, shape, true);
            }
            Form::Text { size, anchor, turned, content } => {
                let width = self.font.width(content, *size);
                let back = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => width / 2.0,
                    Anchor::End => width,
                };
                let at = if *turned { [x, y + back] } else { [x - back, y] };
                let mut path = PathBuilder::new();
                self.font.outline(content, *size, *turned, at, &mut path);
                self.fill(path, shape, true);
            }
            Form::Image { width, height, pixels } => {
                let image = filled(pixels)?;
                let transform = self
                    .transform
                    .pre_translate(x, y)
                    .pre_scale(width / pixels.width as f32, height / pixels.height as f32);
                let paint =
                    PixmapPaint { quality: FilterQuality::Nearest, ..PixmapPaint::default() };
                self.pixmap.draw_pixmap(0, 0, image.as_ref(), &paint, transform, None);
            }
        }
        Ok(())
    }

    fn fill(&mut self, path: PathBuilder, shape: &Shape, smooth: bool) {
        if let Some(path) = path.finish() {
            let ink = self.ink(shape, smooth);
            self.pixmap.fill_path(&path, &ink, FillRule::Winding, self.transform, None);
        }
    }

    fn ink(&self, shape: &Shape, smooth: bool) -> Ink<'static> {
        let [red, green, blue] = Paint::rgb(shape.paint, self.dark);
        let alpha = (shape.opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
        let mut ink = Ink::default();
        ink.set_color(Color::from_rgba8(red, green, blue, alpha));
        ink.anti_alias = smooth;
        ink
    }
}

fn rounded([x, y]: [f32; 2], [width, height]: [f32; 2], radius: f32) -> PathBuilder {
    /// Distance of a cubic's handles that bends it to a quarter of a circle.
    const BEND: f32 = 0.552_284_8;
    let radius = radius.min(width / 2.0).min(height / 2.0);
    let (right, bottom, bend) = (x + width, y + height, radius * (1.0 - BEND));
    let mut path = PathBuilder::new();
    path.move_to(x + radius, y);
    path.line_to(right - radius, y);
    path.cubic_to(right - bend, y, right, y + bend, right, y + radius);
    path.line_to(right, bottom - radius);
    path.cubic_to(right, bottom - bend, right - bend, bottom, right - radius, bottom);
    path.line_to(x + radius, bottom);
    path.cubic_to(x + bend, bottom, x, bottom - bend, x, bottom - radius);
    path.line_to(x, y + radius);
    path.cubic_to(x, y + bend, x + bend, y, x + radius, y);
    path.close();
    path
}
