//! A scene as SVG.
use std::fmt::Write;

use base64::Engine;

use crate::PictureError;
use crate::Theme;
use crate::raster;
use crate::scene::{Anchor, Form, Paint, Scene, Shape};

pub(crate) fn write(scene: &Scene, theme: Theme) -> Result<String, PictureError> {
    let mut svg = Svg { text: String::new() };
    let (width, height) = (number(scene.width), number(scene.height));
    svg.push(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\" shape-rendering=\"crispEdges\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<style>{}</style>\n",
        escaped(&scene.description),
        style(theme)
    ));
    for shape in &scene.shapes {
        svg.shape(shape)?;
    }
    svg.push(format_args!("</svg>\n"));
    Ok(svg.text)
}

fn style(theme: Theme) -> String {
    let colours = |dark: bool| {
        let rule = |paint: Paint| {
            let [red, green, blue] = paint.rgb(dark);
            format!(".pleach-{}{{fill:#{red:02x}{green:02x}{blue:02x}}}", paint.name())
        };
        Paint::ALL.map(rule).concat()
    };
    match theme {
        Theme::Light => colours(false),
        Theme::Dark => colours(true),
        Theme::Auto => {
            format!("{}@media(prefers-color-scheme:dark){{{}}}", colours(false), colours(true))
        }
    }
}

struct Svg {
    text: String,
}

impl Svg {
    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(text);
    }

    fn shape(&mut self, shape: &Shape) -> Result<(), PictureError> {
        let [x, y] = shape.at.map(number);
        let (class, opacity) = (shape.paint.name(), opacity(shape.opacity));
        let tag = match &shape.form {
            Form::Rect { width, height, radius } => {
                let (width, height) = (number(*width), number(*height));
                let round = match *radius > 0.0 {
                    true => format!(
                        " rx=\"{}\" shape-rendering=\"geometricPrecision\"",
                        number(*radius)
                    ),
                    false => String::new(),
                };
                self.push(format_args!(
                    "<rect class=\"pleach-{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{round}{opacity}"
                ));
                "rect"
            }
            Form::Polygon(corners) => {
                self.push(format_args!(
                    "<path class=\"pleach-{class}\" d=\"{}\"{opacity}",
                    polygon(shape.at, corners)
                ));
                "path"
            }
            Form::Text { size, anchor, turned, content } => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                let turn = if *turned {
                    format!(" transform=\"rotate(-90 {x} {y})\"")
                } else {
                    String::new()
                };
                let (size, content) = (number(*size), escaped(content));
                self.push(format_args!(
                    "<text class=\"pleach-{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{turn}{opacity}>{content}"
                ));
                self.hint(shape);
                self.push(format_args!("</text>\n"));
                return Ok(());
            }
            Form::Image { width, height, pixels } => {
                let data =
                    base64::engine::general_purpose::STANDARD.encode(raster::encode(pixels)?);
                let (width, height) = (number(*width), number(*height));
                self.push(format_args!(
                    "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
                     style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{data}\""
                ));
                "image"
            }
        };
        if shape.hint.is_some() {
            self.push(format_args!(">"));
            self.hint(shape);
            self.push(format_args!("</{tag}>\n"));
        } else {
            self.push(format_args!("/>\n"));
        }
        Ok(())
    }

    fn hint(&mut self, shape: &Shape) {
        if let Some(hint) = &shape.hint {
            self.push(format_args!("<title>{}</title>", escaped(hint)));
        }
    }
}

fn polygon(at: [f32; 2], corners: &[[f32; 2]]) -> String {
    let mut path = String::new();
    let mut last = [f32::NAN; 2];
    for (index, corner) in corners.iter().enumerate() {
        let [x, y] = [at[0] + corner[0], at[1] + corner[1]];
        let step = match index {
            0 => format!("M{} {}", number(x), number(y)),
            _ if x == last[0] => format!("V{}", number(y)),
            _ if y == last[1] => format!("H{}", number(x)),
            _ => format!("L{} {}", number(x), number(y)),
        };
        path.push_str(&step);
        last = [x, y];
    }
    path + "Z"
}

fn opacity(value: f32) -> String {
    if value < 1.0 { format!(" opacity=\"{}\"", number(value)) } else { String::new() }
}

/// At most two digits behind the point.
fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
