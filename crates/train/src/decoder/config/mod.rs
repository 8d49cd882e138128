mod hugging_face;
mod keys;
mod rope;

pub use rope::RopeScaling;

use crate::error::TrainError;
use std::{num::Saturating, path::Path};

/// Largest size of anything: what is beyond is damage, and nothing may be allocated by it.
const LARGEST_SIZE: usize = 1 << 31;

/// Largest number of layers: each has an entry in lists of its own.
const MOST_LAYERS: usize = 1 << 16;

/// The families of decoders whose checkpoints are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Llama 2 and 3 and what follows their architecture.
    Llama,
    /// Qwen2 and 2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: RMSNorm on each head of q and k.
    Qwen3,
}

impl Family {
    /// The `model_type` of a Hugging Face `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// The architecture of a decoder: everything that changes its function, and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Which family it belongs to.
    pub family: Family,
    /// Token ids.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the feed-forward block.
    pub intermediate_size: usize,
    /// Number of layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads, a divisor of `heads`.
    pub kv_heads: usize,
    /// Features of a head, an even number.
    pub head_dim: usize,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// How rotary frequencies are stretched.
    pub rope_scaling: RopeScaling,
    /// Whether logits use the embedding matrix.
    pub tie_word_embeddings: bool,
    /// Biases on q, k and v.
    pub qkv_bias: bool,
    /// A bias on the attention's output.
    pub output_bias: bool,
    /// Biases in the feed-forward block.
    pub mlp_bias: bool,
    /// RMSNorm on each head of q and k, before they are rotated.
    pub qk_norm: bool,
    /// Sliding window of each layer in tokens, `None` for full attention.
    pub windows: Vec<Option<u32>>,
}

impl DecoderConfig {
    /// A decoder small enough for tests and for looking at a session without a checkpoint.
    ///
    /// Width 32, four query and two key/value heads, the biases, norms and ties of its family.
    pub fn small(family: Family, vocab_size: usize, layers: usize) -> Self {
        Self {
            family,
            vocab_size,
            hidden_size: 32,
            intermediate_size: 48,
            layers,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            rope_scaling: RopeScaling::None,
            tie_word_embeddings: family == Family::Qwen3,
            qkv_bias: family == Family::Qwen2,
            output_bias: false,
            mlp_bias: false,
            qk_norm: family == Family::Qwen3,
            windows: vec![None; layers],
        }
    }

    /// Reads the `config.json` of a Hugging Face folder.
    ///
    /// Every key is used, or known not to change the function, or an error.
    ///
    /// # Errors
    /// A file that cannot be read, JSON that is not an object, a key that is unknown, missing or
    /// not supported.
    pub fn from_file(path: &Path) -> Result<Self, TrainError> {
        let text = std::fs::read_to_string(path).map_err(|error| TrainError::File {
            path: path.to_owned(),
            message: format!("{error}: a checkpoint folder needs a config.json"),
        })?;
        Self::from_json(&text, path)
    }

    /// Reads the text of a `config.json`; `path` is what errors name.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_json(text: &str, path: &Path) -> Result<Self, TrainError> {
        let config = hugging_face::parse(text, path)?;
        config.validate().map_err(|error| match error {
            TrainError::Config { problem } => {
                TrainError::File { path: path.to_owned(), message: problem }
            }
            other => other,
        })?;
        Ok(config)
    }

    /// Checks that sizes fit each other; a decoder is built from valid configurations only.
    pub(crate) fn validate(&self) -> Result<(), TrainError> {
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("layers", self.layers),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
        ];
        let problem = if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            format!("{name} is 0: give at least 1")
        } else if let Some((name, size)) = sizes.iter().find(|(_, size)| *size > LARGEST_SIZE) {
            format!("{name} is {size}: give at most {LARGEST_SIZE}")
        } else if self.layers > MOST_LAYERS {
            format!("layers is {}: give at most {MOST_LAYERS}", self.layers)
        } else if !self.heads.is_multiple_of(self.kv_heads) {
            format!(
                "{} query heads do not divide among {} key/value heads",
                self.heads, self.kv_heads
            )
        } else if !self.head_dim.is_multiple_of(2) {
            format!("head_dim {} is odd: rotary embeddings pair features", self.head_dim)
        } else if self.windows.len() != self.layers {
            format!("{} windows for {} layers: give one per layer", self.windows.len(), self.layers)
        } else if self.windows.contains(&Some(0)) {
            "a sliding window of 0 tokens: use at least 1, or none".to_owned()
        } else if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps > 0.0) {
            format!("rms_norm_eps {} is not a positive number", self.rms_norm_eps)
        } else if !(self.rope_theta.is_finite() && self.rope_theta > 0.0) {
            format!("rope_theta {} is not a positive number", self.rope_theta)
        } else {
            return self.rope_scaling.validate();
        };
        Err(TrainError::Config { problem })
    }

    /// Rotary frequencies in radians per token, scaling applied, in float64.
    ///
    /// # Shapes
    /// Returns `[head_dim / 2]`.
    pub fn inverse_frequencies(&self) -> Vec<f64> {
        (0..self.head_dim / 2)
            .map(|pair| self.rope_scaling.apply(pair, self.head_dim, self.rope_theta))
            .collect()
    }

    /// What rotated queries and keys are multiplied by, 1 for most.
    pub fn rotary_scale(&self) -> f64 {
        self.rope_scaling.attention_factor()
    }

    /// Number of parameters, [`u64::MAX`] where there are more.
    pub fn parameters(&self) -> u64 {
        let size = |count: usize| Saturating(count as u64);
        let bias = |on: bool, count| if on { count } else { size(0) };
        let (outer, inner, head_dim) =
            (size(self.hidden_size), size(self.intermediate_size), size(self.head_dim));
        let (q, kv) = (size(self.heads) * head_dim, size(self.kv_heads) * head_dim);
        let attention = size(2) * outer * (q + kv)
            + bias(self.qkv_bias, q + size(2) * kv)
            + bias(self.output_bias, outer)
            + bias(self.qk_norm, size(2) * head_dim);
        let mlp = size(3) * outer * inner + bias(self.mlp_bias, size(2) * inner + outer);
        let matrices = size(if self.tie_word_embeddings { 1 } else { 2 });
        let layers = size(self.layers) * (attention + mlp + size(2) * outer);
        (layers + outer + matrices * size(self.vocab_size) * outer).0
    }
}
