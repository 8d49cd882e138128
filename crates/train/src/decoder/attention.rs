use super::{
    Builder,
    layers::{Projection, RmsNorm},
};
use crate::{decoder::DecoderConfig, error::TrainError};
use burn::{module::Module, tensor::Tensor};
use pleach_kernels::{AttentionConfig, Rotary, TreeMask, ViewMask, tree_attention, view_attention};

/// What a row of attention is conditioned on, and at which positions.
#[derive(Clone, Copy)]
pub(super) enum Conditioning<'a> {
    /// The packed tree: intervals, and one position per token.
    Tree { mask: &'a TreeMask, rotary: &'a Rotary },
    /// One view and one set of positions per row.
    Views { mask: &'a ViewMask, inverse_frequencies: &'a [f64], rotary_scale: f64 },
}

/// Grouped-query self-attention with rotary positions.
#[derive(Module, Debug)]
pub(super) struct SelfAttention {
    q_proj: Projection,
    k_proj: Projection,
    v_proj: Projection,
    o_proj: Projection,
    q_norm: Option<RmsNorm>,
    k_norm: Option<RmsNorm>,
    head_dim: usize,
}

impl SelfAttention {
    pub(super) fn build(
        name: &str,
        config: &DecoderConfig,
        builder: &mut Builder<'_>,
    ) -> Result<Self, TrainError> {
        let width = config.hidden_size;
        let (q, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let mut project = |part: &str, size, bias| {
            Projection::build(&format!("{name}.{part}"), size, bias, builder)
        };
        let q_proj = project("q_proj", [q, width], config.qkv_bias)?;
        let k_proj = project("k_proj", [kv, width], config.qkv_bias)?;
        let v_proj = project("v_proj", [kv, width], config.qkv_bias)?;
        let o_proj = project("o_proj", [width, q], config.output_bias)?;
        let mut norm = |part: &str| match config.qk_norm {
            true => {
                let name = format!("{name}.{part}");
                RmsNorm::build(&name, config.head_dim, config.rms_norm_eps, builder).map(Some)
            }
            false => Ok(None),
        };
        Ok(Self {
            q_norm: norm("q_norm")?,
            k_norm: norm("k_norm")?,
            q_proj,
            k_proj,
            v_proj,
            o_proj,
            head_dim: config.head_dim,
        })
    }

    /// # Shapes
    /// `x_btc`: `[batch, time, width]`; the result has the same shape.
    pub(super) fn forward(
        &self,
        x_btc: Tensor<3>,
        conditioning: Conditioning<'_>,
    ) -> Result<Tensor<3>, TrainError> {
        let (q_bhtd, k_bgtd, v_bgtd) = self.project(x_btc);
        let config = AttentionConfig::for_head_dim(self.head_dim);
        let o_bhtd = match conditioning {
            Conditioning::Tree { mask, rotary } => {
                let (q_bhtd, k_bgtd) = (rotary.rotate(q_bhtd)?, rotary.rotate(k_bgtd)?);
                tree_attention(q_bhtd, k_bgtd, v_bgtd, mask, &config)?
            }
            Conditioning::Views { mask, inverse_frequencies, rotary_scale } => {
                // Queries and keys are both scaled.
                let scale = config.scale * rotary_scale * rotary_scale;
                view_attention(q_bhtd, k_bgtd, v_bgtd, mask, inverse_frequencies, scale)?
            }
        };
        Ok(self.merge(o_bhtd))
    }

    /// Queries, keys and values before rotation.
    ///
    /// # Shapes
    /// `x_btc`: `[batch, time, width]`; returns `[batch, heads, time, head_dim]` and twice
    /// `[batch, kv_heads, time, head_dim]`.
    pub(super) fn project(&self, x_btc: Tensor<3>) -> (Tensor<4>, Tensor<4>, Tensor<4>) {
        let [b, t, c] = x_btc.dims();
        let x_nc = x_btc.reshape([b * t, c]);
        let q_bthd = self.split(self.q_proj.forward(x_nc.clone()), [b, t]);
        let k_btgd = self.split(self.k_proj.forward(x_nc.clone()), [b, t]);
        let v_bgtd = self.split(self.v_proj.forward(x_nc), [b, t]).swap_dims(1, 2);
        let q_bhtd = normalise(&self.q_norm, q_bthd).swap_dims(1, 2);
        let k_bgtd = normalise(&self.k_norm, k_btgd).swap_dims(1, 2);
        (q_bhtd, k_bgtd, v_bgtd)
    }

    /// The output projection of what the heads found.
    ///
    /// # Shapes
    /// `o_bhtd`: `[batch, heads, time, head_dim]`; returns `[batch, time, width]`.
    pub(super) fn merge(&self, o_bhtd: Tensor<4>) -> Tensor<3> {
        let [b, heads, t, head_dim] = o_bhtd.dims();
        let o_nc = o_bhtd.swap_dims(1, 2).reshape([b * t, heads * head_dim]);
        let y_nc = self.o_proj.forward(o_nc);
        let width = y_nc.dims()[1];
        y_nc.reshape([b, t, width])
    }

    fn split(&self, x_nc: Tensor<2>, [b, t]: [usize; 2]) -> Tensor<4> {
        let heads = x_nc.dims()[1] / self.head_dim;
        x_nc.reshape([b, t, heads, self.head_dim])
    }
}

fn normalise(norm: &Option<RmsNorm>, x_bthd: Tensor<4>) -> Tensor<4> {
    match norm {
        Some(norm) => norm.forward(x_bthd),
        None => x_bthd,
    }
}
