use crate::{batch::Batch, error::TrainError};
use burn::{module::Module, tensor::Tensor};

/// A causal language model that takes packed batches.
///
/// [`Decoder`](crate::decoder::Decoder) implements it. A burn model of your own implements it by calling
/// [`pleach_kernels::tree_attention`] with [`Batch::mask`] (or by taking
/// [`pleach_kernels::dense_mask`]) and by reading positions from [`Batch::positions_bt`] instead of
/// counting from 0. Logits are asked for at loss terms' sources only, so the head is apart.
///
/// A row of the hidden states must depend on the tokens that the mask shows to it and on nothing
/// else: no dropout, no statistics over the batch.
///
/// To compare layouts in float64 ([`compare`](crate::equivalence::compare)) every operation has to compute in
/// float64. burn's own `RmsNorm` computes in float32 whatever it is given, so a correct model that
/// uses it is off by some 1e-8; [`RmsNorm`](crate::decoder::RmsNorm) here computes in the dtype of its input.
/// [`to_dtype`](crate::to_dtype) casts the parameters of a model.
pub trait CausalModel: Module {
    /// Hidden states after the last normalisation.
    ///
    /// # Shapes
    /// Returns `[batch, time, width]` in the dtype of the model; padding rows may hold anything
    /// finite.
    ///
    /// # Errors
    /// Whatever the model finds wrong with the batch, token ids outside its vocabulary above all.
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError>;

    /// Number of token ids that the model knows; a batch with another one is refused before it runs.
    fn vocabulary(&self) -> usize;

    /// Unnormalised log-probabilities of the next token. Each row depends on its own row only.
    ///
    /// # Shapes
    /// `hidden_nd`: `[n, width]`, rows of [`hidden`](Self::hidden); returns `[n, vocabulary]`.
    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2>;
}
