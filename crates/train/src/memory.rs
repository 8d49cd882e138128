//! What a pass over a layout will take of memory, before it runs.
use crate::{decoder::DecoderConfig, objective::DEFAULT_CHUNK};
use burn::tensor::DType;
use pleach_layout::Sequence;
use std::num::Saturating;

/// Pairs of rows and keys that a batch of several short sequences may have; a longer sequence runs
/// alone.
const BATCH_PAIRS: usize = 1 << 18;

/// Bytes of the graph's nodes for one token in one layer of a replay.
const REPLAY_NODES: usize = 80_000;

/// The sequences that run as one batch each, by index, from the tokens of every sequence.
///
/// Neighbours run together while that is small; a sequence without tokens is in no batch, since
/// there is nothing to run.
pub(crate) fn micro_batches(tokens: &[usize]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut longest = 0;
    for (index, &count) in tokens.iter().enumerate().filter(|(_, count)| **count > 0) {
        longest = count.max(longest);
        match batches.last_mut() {
            Some(rows)
                if (rows.len() + 1).saturating_mul(longest).saturating_mul(longest)
                    <= BATCH_PAIRS =>
            {
                rows.push(index)
            }
            _ => {
                batches.push(vec![index]);
                longest = count;
            }
        }
    }
    batches
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
    /// The batches in which [`evaluate`](crate::evaluation::evaluate) and
    /// [`log_probabilities`](crate::evaluation::log_probabilities) run a layout.
    pub fn of(sequences: &[Sequence]) -> Vec<Self> {
        let sizes: Vec<_> =
            sequences.iter().map(|sequence| (sequence.len(), sequence.terms.len())).collect();
        Self::of_sizes(&sizes)
    }

    /// The same from the tokens and loss terms of each sequence, so that nothing need be laid out
    /// to know what it would take.
    pub fn of_sizes(sizes: &[(usize, usize)]) -> Vec<Self> {
        let tokens: Vec<usize> = sizes.iter().map(|(tokens, _)| *tokens).collect();
        let parts = micro_batches(&tokens);
        let batches = parts.len();
        let of = |part: Vec<usize>| Self {
            rows: part.len(),
            time: part.iter().map(|&index| tokens[index]).max().unwrap_or_default(),
            terms: part.iter().map(|&index| sizes[index].1).sum(),
            batches,
        };
        parts.into_iter().map(of).collect()
    }
}

/// Bytes that a model part needs at its peak, so that one can refuse before allocating;
/// [`u64::MAX`] is that many or more.
///
/// Counts what block-sparse attention and burn's graph keep, by factors that were measured on a CPU
/// device; a test holds the total to within a third of the real peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The parameters.
    pub parameters: u64,
    /// What layers keep per token.
    pub activations: u64,
    /// What attention keeps for its backward pass beyond its inputs, or the pairs of an attention
    /// that is dense.
    pub attention: u64,
    /// Logits of one chunk, and the gradient of the matrix that makes them.
    pub head: u64,
    /// Gradients on their way from the device to float64 on the host, after everything above but
    /// the parameters is gone.
    pub gradients: u64,
    /// Gradients that lie on the host throughout: the sum over the batches before, and those of
    /// evaluations before.
    pub held: u64,
}

impl MemoryEstimate {
    /// The estimate for a batch, forward only or with gradients.
    pub fn new(config: &DecoderConfig, dtype: DType, workload: Workload, gradients: bool) -> Self {
        let float = size(dtype.size());
        let tokens = size(workload.rows) * size(workload.time);
        let outputs = tokens * size(config.heads) * (size(config.head_dim) + size(1)) * float;
        let (vocabulary, outer, inner) =
            (size(config.vocab_size), size(config.hidden_size), size(config.intermediate_size));
        let logits = size(workload.terms.min(DEFAULT_CHUNK)) * vocabulary * float;
        let matrix = vocabulary * outer * float;
        let layers = size(config.layers);
        let qkv = (size(config.heads) + size(2) * size(config.kv_heads)) * size(config.head_dim);
        let parameters = (Saturating(config.parameters()) * float).0;
        match gradients {
            true => Self {
                parameters,
                activations: (layers
                    * tokens
                    * (size(6) * outer + size(3) * qkv + inner * size(11) / size(2))
                    * float)
                    .0,
                attention: (layers * outputs).0,
                head: (size(3) * logits + matrix).0,
                gradients: (host_gradients(config) + matrix).0,
                held: if workload.batches > 1 { host_gradients(config).0 } else { 0 },
            },
            false => Self {
                parameters,
                activations: (tokens * (size(2) * outer + qkv + size(2) * inner) * float).0,
                attention: outputs.0,
                head: (size(2) * logits).0,
                gradients: 0,
                held: 0,
            },
        }
    }

    /// The estimate for [`replay`](crate::evaluation::replay) of one sequence in which so many (row, key) pairs
    /// are visible.
    ///
    /// The graph keeps the whole cache of every token, in every layer, and has nodes of its own for
    /// each of them.
    pub fn replay(config: &DecoderConfig, dtype: DType, workload: Workload, pairs: u64) -> Self {
        let packed = Self::new(config, dtype, workload, true);
        let cache =
            size(2) * size(config.kv_heads) * size(config.head_dim) + size(3) * size(config.heads);
        let attention = size(config.layers) * Saturating(pairs) * cache * size(dtype.size());
        let nodes = size(config.layers) * size(workload.time) * size(REPLAY_NODES);
        Self {
            activations: packed.activations.saturating_add(nodes.0),
            attention: attention.0,
            ..packed
        }
    }

    /// The estimate for [`union_log_probabilities`](crate::diagnostics::union_log_probabilities) of one thread,
    /// its views included.
    ///
    /// A view is at most an index per token, and a row of the mask a byte per token; attention is
    /// dense, forward only.
    pub fn union(config: &DecoderConfig, dtype: DType, workload: Workload) -> Self {
        let pairs = size(workload.time) * size(workload.time);
        let scores = size(2) * size(config.heads) * pairs * size(dtype.size());
        let views = size(5) * pairs;
        Self { attention: (scores + views).0, ..Self::new(config, dtype, workload, false) }
    }

    /// The same while the gradients of some evaluations are kept: those of the packed layout while
    /// segments run, say.
    #[must_use]
    pub fn beside_gradients(self, config: &DecoderConfig, evaluations: usize) -> Self {
        let kept = host_gradients(config) * size(evaluations);
        Self { held: self.held.saturating_add(kept.0), ..self }
    }

    /// The peak: the parameters, what lies on the host, and the larger of the two phases that
    /// follow each other.
    pub fn total(&self) -> u64 {
        let forward = self.activations.saturating_add(self.attention).saturating_add(self.head);
        self.parameters.saturating_add(self.held).saturating_add(self.gradients.max(forward))
    }
}

fn size(count: usize) -> Saturating<u64> {
    Saturating(count as u64)
}

/// Bytes of one [`GradientMap`](crate::equivalence::GradientMap), which is float64.
fn host_gradients(config: &DecoderConfig) -> Saturating<u64> {
    size(8) * Saturating(config.parameters())
}
