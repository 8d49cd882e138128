use super::{Builder, layers::Projection};
use crate::{decoder::DecoderConfig, error::TrainError};
use burn::{module::Module, tensor::Tensor};

/// The gated feed-forward block, `down(silu(gate(x)) * up(x))`. Formula: arXiv 2002.05202.
#[derive(Module, Debug)]
pub(super) struct SwiGlu {
    gate_proj: Projection,
    up_proj: Projection,
    down_proj: Projection,
}

impl SwiGlu {
    pub(super) fn build(
        name: &str,
        config: &DecoderConfig,
        builder: &mut Builder<'_>,
    ) -> Result<Self, TrainError> {
        let (outer, inner) = (config.hidden_size, config.intermediate_size);
        let mut build = |part: &str, size| {
            Projection::build(&format!("{name}.{part}"), size, config.mlp_bias, builder)
        };
        Ok(Self {
            gate_proj: build("gate_proj", [inner, outer])?,
            up_proj: build("up_proj", [inner, outer])?,
            down_proj: build("down_proj", [outer, inner])?,
        })
    }

    /// # Shapes
    /// `x_btc`: `[batch, time, width]`; the result has the same shape.
    pub(super) fn forward(&self, x_btc: Tensor<3>) -> Tensor<3> {
        let shape = x_btc.dims();
        let x_nc = x_btc.reshape([shape[0] * shape[1], shape[2]]);
        let gate_nf = silu(self.gate_proj.forward(x_nc.clone()));
        let inner_nf = gate_nf.mul(self.up_proj.forward(x_nc));
        self.down_proj.forward(inner_nf).reshape(shape)
    }
}

/// `x sigmoid(x)` in the dtype of `x`; burn's own sigmoid passes through float32 on some backends.
///
/// Below -80 the sigmoid stays at 1e-35, so that neither dtype overflows in the value or in the
/// gradient.
fn silu(x: Tensor<2>) -> Tensor<2> {
    let denominator = x.clone().clamp_min(-80.0).neg().exp().add_scalar(1.0);
    x.div(denominator)
}
