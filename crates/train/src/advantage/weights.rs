use crate::error::{ObjectiveError, TrainError};
use pleach_layout::Sequence;

/// The share of each rollout in a token-level loss: one mean over all optimised tokens
/// (CompactionRL, arXiv 2607.05378).
///
/// `tokens` are the optimised tokens of each segment of each rollout. Where there are none at all,
/// every share is 0.
pub fn token_level_weights(tokens: &[Vec<usize>]) -> Vec<f64> {
    let of_rollout = |segments: &Vec<usize>| segments.iter().sum::<usize>();
    let total: usize = tokens.iter().map(of_rollout).sum();
    tokens.iter().map(|segments| of_rollout(segments) as f64 / total.max(1) as f64).collect()
}

/// The share of each rollout in a mean over segments of means over tokens, to be compared with: it
/// depends on how rollouts are cut.
///
/// A segment without optimised tokens has no mean and does not count.
pub fn segment_mean_weights(tokens: &[Vec<usize>]) -> Vec<f64> {
    let of_rollout = |segments: &Vec<usize>| segments.iter().filter(|&&tokens| tokens > 0).count();
    let total: usize = tokens.iter().map(of_rollout).sum();
    tokens.iter().map(|segments| of_rollout(segments) as f64 / total.max(1) as f64).collect()
}

/// Pads a list of sequences to a multiple of the mini-batch with sequences that weigh nothing, and
/// returns how many were added.
///
/// How many segments rollouts fall into differs from step to step, and mini-batches are of one
/// size. What is added is one token without a loss term, so sums of losses and of weights stay what
/// they are.
///
/// # Errors
/// A mini-batch of 0.
pub fn pad_sequences(
    sequences: &mut Vec<Sequence>,
    mini_batch: usize,
) -> Result<usize, TrainError> {
    if mini_batch == 0 {
        let expected = "at least 1";
        return Err(ObjectiveError::Setting {
            setting: "the mini-batch that sequences are padded to",
            value: 0.0,
            expected,
        }
        .into());
    }
    let padded = sequences.len().next_multiple_of(mini_batch);
    let added = padded - sequences.len();
    sequences.resize(
        padded,
        Sequence { tokens: vec![0], positions: vec![0], ends: vec![1], terms: Vec::new() },
    );
    Ok(added)
}
