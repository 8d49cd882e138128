use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use pleach_layout::{LayoutKind, Layouts, Sequence};
use pleach_train::{
    Decoder, DecoderConfig, Device, DeviceName, Family, MemoryEstimate, Precision, Workload, load_decoder, read_config,
};
use pleach_tree::{BranchTree, CacheSemantics};

use super::measure::{self, Measured, Skipped};
use super::{Check, table};
use crate::input::{Loaded, rebuild};

/// Layers of the seeded decoder: at one layer the union mask would look exact.
const SEEDED_LAYERS: usize = 2;

/// The model that a check runs, loaded once for all files.
pub(crate) struct Runner {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) precision: Precision,
    pub(crate) device_name: DeviceName,
    device: Device,
    config: Option<DecoderConfig>,
    decoder: OnceCell<Decoder>,
}

impl Runner {
    pub(crate) fn open(check: &Check) -> Result<Self> {
        check.device.check_precision(check.dtype)?;
        let device = check.device.open()?.autodiff();
        Ok(Self {
            folder: check.model.clone(),
            seed: check.seed,
            precision: check.dtype,
            device_name: check.device,
            device,
            config: check.model.as_deref().map(read_config).transpose()?,
            decoder: OnceCell::new(),
        })
    }

    /// Runs the model over all layouts of a file, if that fits into memory.
    pub(crate) fn measure(&self, check: &Check, loaded: &Loaded, layouts: &Layouts<'_>) -> Result<Result<Measured, Skipped>> {
        let config = self.config(&loaded.tree);
        let needed = needed(layouts, &config, self.precision)?;
        let available = available();
        if !fits(needed, available) {
            let clip = self.fitting_clip(&loaded.tree, &config, available)?;
            let skipped = Skipped::TooLarge { needed, available, clip };
            if check.gradients.is_some() {
                bail!("{}: no gradients are written: {}", loaded.name, table::too_large(&skipped).unwrap_or_default());
            }
            return Ok(Err(skipped));
        }
        let seeded;
        let decoder = match (&self.folder, self.decoder.get()) {
            (None, _) => {
                seeded = Decoder::seeded(config, self.seed, self.precision, &self.device)?;
                &seeded
            }
            (Some(_), Some(decoder)) => decoder,
            (Some(folder), None) => {
                let decoder = load_decoder(folder, self.precision, &self.device)?;
                self.decoder.get_or_init(|| decoder)
            }
        };
        Ok(Ok(measure::measure(self, decoder, check, layouts)?))
    }

    /// The name of the model for people.
    pub(crate) fn describe(&self) -> String {
        match &self.folder {
            Some(folder) => folder.display().to_string(),
            None => format!("seeded decoder of {SEEDED_LAYERS} layers (seed {})", self.seed),
        }
    }

    fn config(&self, tree: &BranchTree) -> DecoderConfig {
        match &self.config {
            Some(config) => config.clone(),
            None => DecoderConfig::small(Family::Llama, vocabulary(tree), SEEDED_LAYERS),
        }
    }

    /// The largest `--clip` whose layouts fit, if any does.
    fn fitting_clip(&self, tree: &BranchTree, config: &DecoderConfig, available: u64) -> Result<Option<u32>> {
        let longest = tree.records().iter().filter_map(|record| match record {
            pleach_tree::Record::Segment(segment) => u32::try_from(segment.extent()).ok(),
            _ => None,
        });
        let clip_fits = |keep: u32| -> Result<bool> {
            let clipped = rebuild(pleach_tree::clip(tree.records(), keep), "clipped")?;
            Ok(fits(needed(&Layouts::new(&clipped)?, config, self.precision)?, available))
        };
        let (mut low, mut high) = (0, longest.max().unwrap_or(0) / 2 + 1);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if clip_fits(2 * middle)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((low > 0).then_some(2 * low))
    }
}

/// Whether an estimate, which is right to within a third, fits into what is free.
fn fits(needed: u64, available: u64) -> bool {
    needed.saturating_add(needed / 3) <= available
}

/// The vocabulary that a tree's ids need.
fn vocabulary(tree: &BranchTree) -> usize {
    let declared = tree.header().tokenizer.as_ref().and_then(|tokenizer| tokenizer.vocab_size).unwrap_or(0);
    let largest = tree.records().iter().filter_map(|record| match record {
        pleach_tree::Record::Segment(segment) => segment.tokens.iter().flatten().copied().max(),
        _ => None,
    });
    let used = largest.max().map_or(0, |token| token.saturating_add(1));
    declared.max(used).max(2) as usize
}

/// Bytes that the largest step of a check needs at its peak.
fn needed(layouts: &Layouts<'_>, config: &DecoderConfig, precision: Precision) -> Result<u64> {
    let mut needed = 0;
    for kind in LayoutKind::ALL {
        if kind == LayoutKind::Segments && layouts.tree().header().cache == CacheSemantics::KvEvict {
            continue;
        }
        let gradients = matches!(kind, LayoutKind::Packed | LayoutKind::Segments);
        let sequences: Vec<Sequence> = layouts.layout(kind)?.sequences;
        for workload in Workload::of(&sequences) {
            needed = needed.max(MemoryEstimate::new(config, precision, workload, gradients).total());
        }
    }
    Ok(needed)
}

/// Bytes of memory that the machine has free.
fn available() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory).min(system.available_memory())
}

/// A bar on standard error, which shows nothing where that is no terminal.
pub(crate) fn progress(message: &'static str, total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64).with_message(message);
    if let Ok(style) = ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len} sequences, {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
