use super::{Decoder, Layer, attention::SelfAttention};
use crate::error::TrainError;
use burn::tensor::{Int, Tensor, activation::softmax};
use pleach_kernels::Rotary;
use pleach_layout::Sequence;

/// Keys and values of one layer that have not been evicted.
#[derive(Default)]
struct LayerCache {
    entries: Vec<CachedToken>,
}

/// One token in a cache.
struct CachedToken {
    index: usize,
    k_1g1d: Tensor<4>,
    v_1g1d: Tensor<4>,
}

impl LayerCache {
    /// Drops what is dead when token `now` is processed.
    fn evict(&mut self, ends: &[i32], now: usize) {
        self.entries.retain(|entry| usize::try_from(ends[entry.index]).is_ok_and(|end| now < end));
    }
}

impl Decoder {
    /// Hidden states of one row, token by token through a key/value cache from which tokens are
    /// dropped at their interval's end.
    ///
    /// It is what a serving engine that evicts in place computes, and shares neither mask nor
    /// attention with the packed pass, so it is what `kv_evict` is checked against. Time and memory
    /// grow with the pairs, so it is for small or clipped rollouts.
    ///
    /// # Shapes
    /// Returns `[1, time, width]`.
    ///
    /// # Errors
    /// An empty row, token ids outside the vocabulary, and layers with a sliding window.
    pub fn hidden_replay(&self, sequence: &Sequence) -> Result<Tensor<3>, TrainError> {
        if sequence.is_empty() {
            return Err(TrainError::EmptyRow { row: 0 });
        }
        if self.config.windows.iter().any(Option::is_some) {
            let what = "the replay through a cache does not know sliding windows: compare with a model without them";
            return Err(TrainError::Unsupported { what: what.to_owned() });
        }
        self.check_token(sequence.tokens.iter().copied().max().unwrap_or_default())?;
        let embedding = &self.model.embed_tokens;
        let (dtype, device) = (embedding.dtype(), embedding.device());
        let inverse_frequencies = self.config.inverse_frequencies();
        let mut caches: Vec<LayerCache> =
            self.model.layers.iter().map(|_| LayerCache::default()).collect();
        let mut hidden = Vec::with_capacity(sequence.len());
        for (now, (&token, &position)) in
            sequence.tokens.iter().zip(&sequence.positions).enumerate()
        {
            let rotary = Rotary::new(&[[position]], &inverse_frequencies, dtype, &device)?
                .scaled(self.config.rotary_scale());
            let id = [i64::from(token)];
            let token_11 =
                Tensor::<1, Int>::from_data(id, &device.clone().without_autodiff()).unsqueeze();
            let mut x_11c = embedding.forward(token_11);
            for (layer, cache) in self.model.layers.iter().zip(&mut caches) {
                cache.evict(&sequence.ends, now);
                x_11c = layer.step(x_11c, &rotary, cache, now)?;
            }
            hidden.push(self.model.norm.forward(x_11c));
        }
        Ok(Tensor::cat(hidden, 1))
    }
}

impl Layer {
    fn step(
        &self,
        x_11c: Tensor<3>,
        rotary: &Rotary,
        cache: &mut LayerCache,
        now: usize,
    ) -> Result<Tensor<3>, TrainError> {
        let normed_11c = self.input_layernorm.forward(x_11c.clone());
        let x_11c = x_11c.add(self.self_attn.step(normed_11c, rotary, cache, now)?);
        let normed_11c = self.post_attention_layernorm.forward(x_11c.clone());
        Ok(x_11c.add(self.mlp.forward(normed_11c)))
    }
}

impl SelfAttention {
    /// # Shapes
    /// `x_11c`: `[1, 1, width]`; the result has the same shape.
    fn step(
        &self,
        x_11c: Tensor<3>,
        rotary: &Rotary,
        cache: &mut LayerCache,
        index: usize,
    ) -> Result<Tensor<3>, TrainError> {
        let (q_1h1d, k_1g1d, v_1g1d) = self.project(x_11c);
        let (q_1h1d, k_1g1d) = (rotary.rotate(q_1h1d)?, rotary.rotate(k_1g1d)?);
        cache.entries.push(CachedToken { index, k_1g1d, v_1g1d });
        let keys = cache.entries.iter().map(|entry| entry.k_1g1d.clone()).collect();
        let values = cache.entries.iter().map(|entry| entry.v_1g1d.clone()).collect();
        let (k_1gnd, v_1gnd): (Tensor<4>, Tensor<4>) =
            (Tensor::cat(keys, 2), Tensor::cat(values, 2));
        let ([_, heads, _, head_dim], [_, groups, _, _]) = (q_1h1d.dims(), k_1gnd.dims());
        let q_1grd = q_1h1d.reshape([1, groups, heads / groups, head_dim]);
        let scale = 1.0 / (head_dim as f64).sqrt();
        let scores_1grn = q_1grd.matmul(k_1gnd.swap_dims(2, 3)).mul_scalar(scale);
        let o_1grd = softmax(scores_1grn, 3).matmul(v_1gnd);
        Ok(self.merge(o_1grd.reshape([1, heads, 1, head_dim])))
    }
}
