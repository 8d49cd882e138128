use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use burn::tensor::{DType, Device};
use indicatif::{ProgressBar, ProgressStyle};
use pleach_layout::Layouts;
use pleach_train::decoder::{Decoder, DecoderConfig, Family, load_decoder, read_config};

use super::measure::{self, Measured, Skipped};
use super::memory::Demand;
use super::{Check, Objective, table};
use crate::device::DeviceName;
use crate::input::Loaded;

/// Layers of the seeded decoder: at one layer the union mask would look exact.
const SEEDED_LAYERS: usize = 2;

/// The model that a check runs, loaded once for all files.
pub(crate) struct Runner {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) dtype: DType,
    pub(crate) device_name: DeviceName,
    device: Device,
    config: Option<DecoderConfig>,
    decoder: OnceCell<Decoder>,
}

impl Runner {
    pub(crate) fn open(check: &Check) -> Result<Self> {
        let device = check.device.open()?.autodiff();
        check.device.check(check.dtype)?;
        Ok(Self {
            folder: check.model.clone(),
            seed: check.seed,
            dtype: check.dtype,
            device_name: check.device,
            device,
            config: check.model.as_deref().map(read_config).transpose()?,
            decoder: OnceCell::new(),
        })
    }

    /// Runs the model over all layouts of a file, if that fits into memory.
    pub(crate) fn measure(
        &self,
        check: &Check,
        loaded: &Loaded,
        layouts: &Layouts<'_>,
    ) -> Result<Result<Measured, Skipped>> {
        if check.objective == Some(Objective::Sdcc) {
            layouts.diverging().with_context(|| loaded.name.clone())?;
        }
        let config = self.config(vocabulary(loaded)?);
        let demand = Demand { config: &config, dtype: self.dtype, union: check.with_union };
        let (needed, available) = (demand.needed(layouts)?, crate::free_memory::available());
        if !crate::free_memory::fits(needed, available) {
            let clip = demand.fitting_clip(&loaded.tree, available)?;
            let skipped = Skipped::TooLarge { needed, available, clip };
            if check.gradients.is_some() {
                bail!(
                    "{}: no gradients are written: {}",
                    loaded.name,
                    table::too_large(&skipped).unwrap_or_default()
                );
            }
            if check.objective.is_some() {
                bail!(
                    "{}: no certificate is made: {}",
                    loaded.name,
                    table::too_large(&skipped).unwrap_or_default()
                );
            }
            return Ok(Err(skipped));
        }
        let seeded;
        let decoder = match (&self.folder, self.decoder.get()) {
            (None, _) => {
                seeded = Decoder::seeded(config, self.seed, self.dtype, &self.device)?;
                &seeded
            }
            (Some(_), Some(decoder)) => decoder,
            (Some(folder), None) => {
                let decoder = load_decoder(folder, self.dtype, &self.device)?;
                self.decoder.get_or_init(|| decoder)
            }
        };
        Ok(
            Ok(measure::measure(self, decoder, check, layouts)
                .with_context(|| loaded.name.clone())?),
        )
    }

    /// The name of the model for people.
    pub(crate) fn describe(&self) -> String {
        match &self.folder {
            Some(folder) => folder.display().to_string(),
            None => format!("seeded decoder of {SEEDED_LAYERS} layers (seed {})", self.seed),
        }
    }

    fn config(&self, vocabulary: usize) -> DecoderConfig {
        match &self.config {
            Some(config) => config.clone(),
            None => DecoderConfig::small(Family::Llama, vocabulary, SEEDED_LAYERS),
        }
    }
}

/// The vocabulary that a file's ids need, whose size a device holds in 32 bits with a sign.
fn vocabulary(loaded: &Loaded) -> Result<usize> {
    const LIMIT: u64 = i32::MAX as u64;
    let declared = loaded
        .tree
        .header()
        .tokenizer
        .as_ref()
        .and_then(|tokenizer| tokenizer.vocab_size)
        .unwrap_or(0);
    let largest = loaded.tree.records().iter().filter_map(|record| match record {
        pleach_tree::Record::Segment(segment) => segment.tokens.iter().flatten().copied().max(),
        _ => None,
    });
    let largest = largest.max().map(u64::from);
    if let Some(largest) = largest.filter(|&token| token >= LIMIT) {
        bail!(
            "{}: token id {largest} is above 2^31 - 2; check which tokenizer made the ids",
            loaded.name
        );
    }
    if u64::from(declared) > LIMIT {
        let key = "header.tokenizer.vocab_size";
        bail!(
            "{}: {key}: {declared} is above 2^31 - 1; write how many ids the tokenizer has",
            loaded.name
        );
    }
    Ok(largest.map_or(0, |token| token + 1).max(u64::from(declared)).max(2) as usize)
}

/// A bar on standard error, which shows nothing where that is no terminal.
pub(crate) fn progress(message: &'static str, total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64).with_message(message);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len} sequences, {elapsed}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
