use crate::{config::DecoderConfig, objective::DEFAULT_CHUNK, precision::Precision};
use pleach_layout::Sequence;

/// Pairs of rows and keys that a batch of several short sequences may have; a longer sequence runs alone.
const BATCH_PAIRS: usize = 1 << 18;

/// Consecutive sequences that run as one batch.
pub(crate) struct MicroBatches<'a> {
    rest: &'a [Sequence],
}

impl<'a> MicroBatches<'a> {
    pub(crate) fn of(sequences: &'a [Sequence]) -> Self {
        Self { rest: sequences }
    }
}

impl<'a> Iterator for MicroBatches<'a> {
    type Item = &'a [Sequence];

    fn next(&mut self) -> Option<&'a [Sequence]> {
        let mut longest = 0;
        let mut rows = 0;
        for sequence in self.rest {
            longest = longest.max(sequence.tokens.len());
            if rows > 0 && (rows + 1) * longest * longest > BATCH_PAIRS {
                break;
            }
            rows += 1;
        }
        let (part, rest) = self.rest.split_at(rows);
        self.rest = rest;
        (rows > 0).then_some(part)
    }
}

/// The sizes of one batch that memory depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Rows.
    pub rows: usize,
    /// Tokens of the longest row.
    pub time: usize,
    /// Loss terms.
    pub terms: usize,
    /// Batches whose gradients are added up, this one among them.
    pub batches: usize,
}

impl Workload {
    /// The batches in which [`evaluate`](crate::evaluate) and [`log_probabilities`](crate::log_probabilities) run a layout.
    pub fn of(sequences: &[Sequence]) -> Vec<Self> {
        let batches = MicroBatches::of(sequences).count();
        MicroBatches::of(sequences)
            .map(|part| Self {
                rows: part.len(),
                time: part.iter().map(|sequence| sequence.tokens.len()).max().unwrap_or_default(),
                terms: part.iter().map(|sequence| sequence.terms.len()).sum(),
                batches,
            })
            .collect()
    }
}

/// Bytes that a model part needs at its peak, so that one can refuse before allocating.
///
/// Counts what the dense reference and burn's graph keep, by factors that were measured on a CPU device; a test holds the total to
/// within a third of the real peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The parameters.
    pub parameters: u64,
    /// What layers keep per token.
    pub activations: u64,
    /// What attention keeps per (row, key) pair: the part that grows with the square of the length.
    pub attention: u64,
    /// Logits of one chunk, and the gradient of the matrix that makes them.
    pub head: u64,
    /// Gradients on their way from the device to float64 on the host, after everything above but the parameters is gone.
    pub gradients: u64,
}

impl MemoryEstimate {
    /// The estimate for a batch, forward only or with gradients.
    pub fn new(config: &DecoderConfig, precision: Precision, workload: Workload, gradients: bool) -> Self {
        let size = |count: usize| count as u64;
        let float = size(precision.bytes());
        let tokens = size(workload.rows) * size(workload.time);
        let pairs = tokens * size(workload.time);
        let heads = size(config.heads) * pairs * float;
        let chunk = size(workload.terms.min(DEFAULT_CHUNK));
        let logits = chunk * size(config.vocab_size) * float;
        let matrix = size(config.vocab_size) * size(config.hidden_size) * float;
        let parameters = size(config.parameters());
        let layers = size(config.layers);
        let qkv = size((config.heads + 2 * config.kv_heads) * config.head_dim);
        let (outer, inner) = (size(config.hidden_size), size(config.intermediate_size));
        let host = if workload.batches > 1 { 16 } else { 8 };
        match gradients {
            true => Self {
                parameters: parameters * float,
                activations: layers * tokens * (6 * outer + 3 * qkv + inner * 11 / 2) * float,
                attention: (3 * layers + 2) * heads + pairs,
                head: 3 * logits + matrix,
                gradients: parameters * host + matrix,
            },
            false => Self {
                parameters: parameters * float,
                activations: tokens * (2 * outer + qkv + 2 * inner) * float,
                attention: 2 * heads + pairs,
                head: 2 * logits,
                gradients: 0,
            },
        }
    }

    /// The peak: the parameters, and the larger of the two phases that follow each other.
    pub fn total(&self) -> u64 {
        self.parameters + self.gradients.max(self.activations + self.attention + self.head)
    }
}
