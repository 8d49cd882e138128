use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use pleach_layout::Layouts;
use pleach_picture::{Picture, PictureOptions, Theme};

use crate::input::{Input, Tokens};
use crate::layout::Kind;
use crate::output;

/// Draw the mask of a layout as a picture
#[derive(Args)]
pub(crate) struct Mask {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// Which layout
    #[arg(long, default_value = "packed")]
    layout: Kind,
    /// One sequence of the layout, counted from 0 [default: all, one after the other]
    #[arg(long, value_name = "INDEX")]
    sequence: Option<usize>,
    /// Draw the grid of attention tiles of this many tokens
    #[arg(long, value_name = "TOKENS")]
    tile: Option<NonZeroU32>,
    /// Colours
    #[arg(long, default_value = "light")]
    theme: Colours,
    /// Where to write; the ending says what: .png or .svg
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Colours {
    Light,
    Dark,
    /// Follow the reader's preference (SVG)
    Auto,
}

impl Mask {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let ending = self
            .out
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default()
            .to_lowercase();
        if !["png", "svg"].contains(&ending.as_str()) {
            bail!("{}: a picture's name ends in .png or .svg", self.out.display());
        }
        let loaded = self.input.load(self.input.file()?, &self.tokens)?;
        loaded.list_found();
        let layouts = Layouts::new(&loaded.tree)?;
        let options = PictureOptions {
            sequence: self.sequence,
            tile: self.tile,
            theme: match self.theme {
                Colours::Light => Theme::Light,
                Colours::Dark => Theme::Dark,
                Colours::Auto => Theme::Auto,
            },
            title: Some(loaded.name.clone()),
            ..PictureOptions::default()
        };
        let picture = Picture::new(&layouts, &layouts.layout(self.layout.into())?, &options)?;
        let bytes = if ending == "svg" { picture.svg()?.into_bytes() } else { picture.png()? };
        std::fs::write(&self.out, bytes).with_context(|| {
            format!("{}: cannot be written; choose another path for --out", self.out.display())
        })?;
        let (width, height) = picture.size();
        output::line(format!("{}: {width:.0} x {height:.0}", self.out.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
