//! `pleach check`: what each way of training would condition on, and how far it is from the live
//! views.
mod facts;
mod gaps;
mod measure;
pub(crate) mod memory;
mod model;
mod page;
mod report;
mod sdcc;
pub(crate) mod table;
mod total;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use burn::tensor::DType;
use clap::{Args, ValueEnum};
use pleach_layout::Layouts;

use crate::beside::Beside;
use crate::device::{self, DeviceName};
use crate::input::{Input, Loaded, Tokens, Unlisted};
use crate::layout::Kind;
use crate::output;
use facts::Facts;
use measure::{Measured, Skipped};
use report::FileReport;

/// Check a rollout: layouts, conditioning, log-probability gaps, and the equivalence of packed and
/// segments
///
/// Prints, per rollout and in total, the evictions and what they removed; tokens, pairs, passes and
/// coverage of the four layouts; missing and leaked conditioning; the log-probability gap of
/// compressed and full against the live views; and the largest difference between packed and
/// segments in log-probabilities and gradients. With --objective sdcc also the certificate per
/// junction: how far compressed is from the live views, what that bounds, and how much is not
/// trained.
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    tokens: Tokens,
    /// A Hugging Face folder with config.json and safetensors [default: a small seeded decoder]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Seed of the small decoder
    #[arg(long, default_value_t = 0, conflicts_with = "model")]
    seed: u64,
    /// Numbers to compute in: f32 or f64
    #[arg(long, default_value = "f64", value_parser = device::dtype)]
    dtype: DType,
    /// Device: flex, ndarray, wgpu or cuda
    #[arg(long, default_value = "flex")]
    device: DeviceName,
    /// Compare with the published union mask too: every token once, row-wise positions
    #[arg(long)]
    with_union: bool,
    /// Skip the model: print what can be counted without one
    #[arg(long, conflicts_with_all = ["gradients", "with_union"])]
    no_model: bool,
    /// Write the gradients of the summed negative log-likelihood here
    #[arg(long, value_name = "OUT.safetensors")]
    gradients: Option<PathBuf>,
    /// The layout whose gradients are written
    #[arg(long, default_value = "packed", requires = "gradients")]
    layout: Kind,
    /// Say what an objective would train, too
    #[arg(long, value_name = "OBJECTIVE", conflicts_with = "no_model")]
    objective: Option<Objective>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Write a self-contained page here
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// An objective that a check can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Objective {
    /// The certificate per junction: KL of compressed from the live views, total variation, bounds,
    /// coverage
    Sdcc,
}

/// Everything that was found out about one file.
struct Checked {
    loaded: Loaded,
    facts: Facts,
    rollouts: Vec<(String, Facts)>,
    model: Result<Measured, Skipped>,
}

impl Check {
    pub(crate) fn run(mut self) -> Result<ExitCode> {
        let files = self.input.found()?;
        if files.len() > 1 && (self.html.is_some() || self.gradients.is_some()) {
            bail!(
                "{}: --html and --gradients take one file, not a folder of several",
                self.input.path.display()
            );
        }
        self.find_tokenizer();
        let runner = if self.no_model { None } else { Some(model::Runner::open(&self)?) };
        let load = |found: &Result<PathBuf, Unlisted>| match found {
            Ok(file) => (file.clone(), self.input.load(file, &self.tokens)),
            Err(unlisted) => (unlisted.path.clone(), Err(unlisted.as_error())),
        };
        let mut loaded: Vec<(PathBuf, Result<Loaded>)> = files.iter().map(load).collect();
        let mut beside = Beside::default();
        for (file, one) in &loaded {
            beside.add(file, one.as_ref().map_or(&[], |one| one.files.as_slice()));
        }
        loaded.retain(|(file, _)| !beside.has(file));
        let (mut checked, mut failures) = (Vec::new(), Vec::new());
        for (file, one) in loaded {
            match one.and_then(|one| self.file(one, runner.as_ref())) {
                Ok(one) => checked.push(one),
                Err(error) if files.len() > 1 => failures.push((file, error)),
                Err(error) => return Err(error),
            }
        }
        self.print(&checked, &failures)?;
        for (_, error) in &failures {
            output::error(error);
        }
        let left_out = self.tell_left_out(&checked);
        if !failures.is_empty() {
            return Ok(ExitCode::from(2));
        }
        let failed = checked
            .iter()
            .filter_map(|one| one.model.as_ref().ok())
            .any(|measured| !measured.holds());
        let nothing = files.len() == 1 && checked.iter().any(|one| one.loaded.is_without_calls());
        Ok(ExitCode::from(u8::from(failed || left_out || nothing)))
    }

    /// Whether a comparison that was asked for was not made, for want of memory; says what to do.
    fn tell_left_out(&self, checked: &[Checked]) -> bool {
        let too_large = |one: &Checked| table::too_large(one.model.as_ref().err()?);
        let sentences: Vec<String> = checked
            .iter()
            .filter_map(|one| Some(format!("{}: {}", one.loaded.name, too_large(one)?)))
            .collect();
        let narrower = if self.dtype == DType::F64 { "; --dtype f32 needs half of it" } else { "" };
        for sentence in &sentences {
            output::error(&anyhow!(
                "{sentence}{narrower}; --no-model compares nothing and is no failure"
            ));
        }
        !sentences.is_empty()
    }

    /// A checkpoint's own tokenizer is the one that fits it.
    fn find_tokenizer(&mut self) {
        let beside = self.model.as_ref().filter(|folder| folder.join("tokenizer.json").is_file());
        if let (None, Some(folder)) = (&self.tokens.tokenizer, beside) {
            self.tokens.tokenizer = Some(folder.clone());
        }
    }

    fn file(&self, mut loaded: Loaded, runner: Option<&model::Runner>) -> Result<Checked> {
        if let (Some(folder), None, false) =
            (&self.model, &self.tokens.tokenizer, loaded.notes.is_empty())
        {
            let rendered = loaded
                .tree
                .header()
                .tokenizer
                .as_ref()
                .is_some_and(|tokenizer| tokenizer.id == "bytes");
            if rendered {
                bail!(
                    "{}: holds text, and {} has no tokenizer.json; name the checkpoint's tokenizer with --tokenizer",
                    loaded.name,
                    folder.display()
                );
            }
        }
        let named = || loaded.name.clone();
        let layouts = Layouts::new(&loaded.tree).with_context(named)?;
        let facts = Facts::of(&layouts).with_context(named)?;
        let rollouts = facts::by_rollout(&loaded).with_context(named)?;
        let model = match runner {
            Some(runner) => runner.measure(self, &loaded, &layouts)?,
            None => Err(Skipped::NotAsked),
        };
        drop(layouts);
        if rollouts.is_empty() && loaded.tree.rollouts().len() > 1 {
            loaded.notes.push("rollouts that share one key/value tape are not taken apart".into());
        }
        if facts.account.stats.sampled_tokens == 0 {
            loaded.notes.push("nothing was sampled: there is nothing to check".into());
            eprintln!("warning: {}: nothing was sampled: there is nothing to check", loaded.name);
        }
        let checked = Checked { loaded, facts, rollouts, model };
        if let Some(path) = &self.html {
            let page = page::render(&checked)?;
            std::fs::write(path, page).with_context(|| {
                format!("{}: cannot be written; choose another path for --html", path.display())
            })?;
        }
        Ok(checked)
    }

    fn print(&self, checked: &[Checked], failures: &[(PathBuf, anyhow::Error)]) -> Result<()> {
        if self.json {
            let reports: Vec<FileReport<'_>> = checked.iter().map(FileReport::new).collect();
            return match (&reports[..], self.input.is_folder()) {
                ([report], false) => output::json(report),
                _ => output::json(&total::Total::new(checked, reports, failures)),
            };
        }
        for one in checked {
            one.loaded.list_found();
            table::file(one)?;
        }
        if checked.len() > 1 { total::print(checked) } else { Ok(()) }
    }
}
