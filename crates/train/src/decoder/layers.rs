use super::Builder;
use crate::error::TrainError;
use burn::{
    module::{Module, Param},
    tensor::{DType, Device, Int, Tensor},
};

/// A linear map stored as checkpoints store it, `[out, in]`.
#[derive(Module, Debug)]
pub(super) struct Projection {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
}

impl Projection {
    pub(super) fn build(
        name: &str,
        [out, inputs]: [usize; 2],
        bias: bool,
        builder: &mut Builder<'_>,
    ) -> Result<Self, TrainError> {
        Ok(Self {
            weight: builder.parameter(&format!("{name}.weight"), [out, inputs])?,
            bias: match bias {
                true => Some(builder.parameter(&format!("{name}.bias"), [out])?),
                false => None,
            },
        })
    }

    /// A single row stands to the right of the weight: a transposed weight has a gradient of its
    /// own for every call, all of which are held to the end of the backward pass, and a replay
    /// calls once per token.
    ///
    /// # Shapes
    /// `x_ni`: `[n, in]`; returns `[n, out]`.
    pub(super) fn forward(&self, x_ni: Tensor<2>) -> Tensor<2> {
        let y_no = match x_ni.dims()[0] {
            1 => self.weight.val().matmul(x_ni.transpose()).transpose(),
            _ => x_ni.matmul(self.weight.val().transpose()),
        };
        match &self.bias {
            Some(bias) => y_no.add(bias.val().unsqueeze()),
            None => y_no,
        }
    }
}

/// A token embedding, `[vocabulary, width]`, that may serve as the output matrix too.
#[derive(Module, Debug)]
pub(super) struct Embedding {
    weight: Param<Tensor<2>>,
}

impl Embedding {
    pub(super) fn build(
        name: &str,
        size: [usize; 2],
        builder: &mut Builder<'_>,
    ) -> Result<Self, TrainError> {
        Ok(Self { weight: builder.parameter(&format!("{name}.weight"), size)? })
    }

    /// # Shapes
    /// `tokens_bt`: `[batch, time]`; returns `[batch, time, width]`.
    pub(super) fn forward(&self, tokens_bt: Tensor<2, Int>) -> Tensor<3> {
        let [b, t] = tokens_bt.dims();
        let weight = self.weight.val();
        let width = weight.dims()[1];
        weight.select(0, tokens_bt.reshape([b * t])).reshape([b, t, width])
    }

    /// # Shapes
    /// `hidden_nd`: `[n, width]`; returns `[n, vocabulary]`.
    pub(super) fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        hidden_nd.matmul(self.weight.val().transpose())
    }

    pub(super) fn dtype(&self) -> DType {
        self.weight.val().dtype()
    }

    pub(super) fn device(&self) -> Device {
        self.weight.val().device()
    }
}

/// RMSNorm over the last dimension, in the dtype of its input. Formula: arXiv 1910.07467.
#[derive(Module, Debug)]
pub struct RmsNorm {
    weight: Param<Tensor<1>>,
    epsilon: f64,
}

impl RmsNorm {
    /// A norm of rows of `width` numbers whose weights are 1.
    pub fn new(width: usize, epsilon: f64, dtype: DType, device: &Device) -> Self {
        Self { weight: Param::from_tensor(Tensor::ones([width], (device, dtype))), epsilon }
    }

    pub(super) fn build(
        name: &str,
        width: usize,
        epsilon: f64,
        builder: &mut Builder<'_>,
    ) -> Result<Self, TrainError> {
        Ok(Self { weight: builder.parameter(&format!("{name}.weight"), [width])?, epsilon })
    }

    /// Divides rows by the root of their mean square, and scales by the weights.
    ///
    /// # Shapes
    /// `x`: `[..., width]`; the result has the same shape.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let mean_square = x.clone().square().mean_dim(D - 1);
        let norm = mean_square.add_scalar(self.epsilon).sqrt();
        x.div(norm).mul(self.weight.val().unsqueeze())
    }
}
