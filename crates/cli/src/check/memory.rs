//! Whether the model part of a check fits into memory, and which `--clip` would.
use anyhow::Result;
use burn::tensor::DType;
use pleach_layout::{LayoutKind, Layouts, Sequence};
use pleach_train::{
    decoder::DecoderConfig,
    memory::{MemoryEstimate, Workload},
};
use pleach_tree::{BranchTree, CacheSemantics, Record};

use crate::free_memory::fits;
use crate::input::rebuild;

/// What a check runs.
#[derive(Clone, Copy)]
pub(super) struct Demand<'a> {
    pub(super) config: &'a DecoderConfig,
    pub(super) dtype: DType,
    pub(super) union: bool,
}

impl Demand<'_> {
    /// Bytes that the largest step of the check needs at its peak.
    pub(super) fn needed(self, layouts: &Layouts<'_>) -> Result<u64> {
        let (config, dtype) = (self.config, self.dtype);
        let of = |workload, gradients| MemoryEstimate::new(config, dtype, workload, gradients);
        let packed = layouts.packed()?.sequences;
        let full = layouts.full()?.sequences;
        let mut steps: Vec<MemoryEstimate> =
            Workload::of(&packed).into_iter().map(|workload| of(workload, true)).collect();
        match layouts.tree().header().cache {
            CacheSemantics::Reprefill => {
                let segments = Workload::of_sizes(&layouts.segment_sizes())
                    .into_iter()
                    .map(|workload| of(workload, true));
                steps.extend(segments.map(|estimate| estimate.beside_gradients(config, 1)));
            }
            CacheSemantics::KvEvict => {
                let pairs: u64 = packed.iter().map(Sequence::pairs).sum();
                let replay = Workload::of(&packed).into_iter();
                let replay =
                    replay.map(|workload| MemoryEstimate::replay(config, dtype, workload, pairs));
                steps.extend(replay.map(|estimate| estimate.beside_gradients(config, 1)));
            }
        }
        let compressed = layouts.layout(LayoutKind::Compressed)?.sequences;
        let flattened =
            [&compressed, &full].into_iter().flat_map(|sequences| Workload::of(sequences));
        steps.extend(flattened.map(|workload| of(workload, false)));
        if self.union {
            let threads =
                full.iter().flat_map(|sequence| Workload::of(std::slice::from_ref(sequence)));
            steps.extend(threads.map(|workload| MemoryEstimate::union(config, dtype, workload)));
        }
        Ok(steps.iter().map(MemoryEstimate::total).max().unwrap_or(0))
    }

    /// The largest `--clip` whose layouts fit, if any does.
    pub(super) fn fitting_clip(self, tree: &BranchTree, available: u64) -> Result<Option<u32>> {
        let longest = tree.records().iter().filter_map(|record| match record {
            Record::Segment(segment) => u32::try_from(segment.extent()).ok(),
            _ => None,
        });
        let clip_fits = |keep: u32| -> Result<bool> {
            let clipped = rebuild(pleach_tree::clip(tree.records(), keep), "clipped")?;
            Ok(fits(self.needed(&Layouts::new(&clipped)?)?, available))
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
