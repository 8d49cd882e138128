use crate::{batch::Batch, error::TrainError, model::CausalModel};
use burn::{
    module::{ModuleVisitor, Param, ParamId},
    tensor::{Device, Gradients, Int, Tensor},
};
use std::{collections::HashMap, ops::Range};

/// The hidden states of a model over a batch, checked against the trait's promise.
///
/// # Shapes
/// Returns `[batch, time, width]`.
pub(crate) fn hidden_states<M: CausalModel>(
    model: &M,
    batch: &Batch,
) -> Result<Tensor<3>, TrainError> {
    batch.check_vocabulary(model.vocabulary())?;
    check_device(model, batch)?;
    let hidden_btc = model.hidden(batch)?;
    let [b, t, width] = hidden_btc.dims();
    let [rows, time] = batch.dims();
    match [b, t] == [rows, time] {
        true => Ok(hidden_btc),
        false => Err(TrainError::ModelShape {
            what: "hidden states",
            expected: vec![rows, time, width],
            found: vec![b, t, width],
        }),
    }
}

/// A batch on another device than the model would panic in the first operation on both.
fn check_device<M: CausalModel>(model: &M, batch: &Batch) -> Result<(), TrainError> {
    let found = batch.tokens_bt().device().without_autodiff();
    let devices: Vec<Device> = model.devices().into_iter().map(Device::without_autodiff).collect();
    match devices.first() {
        Some(first) if !devices.contains(&found) => Err(TrainError::BatchDevice {
            batch: format!("{found:?}"),
            model: format!("{first:?}"),
        }),
        _ => Ok(()),
    }
}

/// Rows by which terms index hidden states.
///
/// # Shapes
/// `hidden_btc`: `[batch, time, width]`; returns `[batch * time, width]`.
pub(super) fn flat(hidden_btc: Tensor<3>) -> Tensor<2> {
    let [b, t, width] = hidden_btc.dims();
    hidden_btc.reshape([b * t, width])
}

/// The loss of no terms: zero, with a gradient that is zero.
pub(super) fn nothing(hidden_nc: &Tensor<2>) -> Tensor<1> {
    hidden_nc.clone().narrow(0, 0, 1).sum().mul_scalar(0.0)
}

/// The sum of a loss over chunks of source positions, with logits for one chunk at a time, forward
/// and backward.
///
/// Each chunk is differentiated on its own, on hidden states cut off from the model. The gradients
/// found there, of the hidden states and of the parameters that the logits use, are attached to the
/// result as its linear part: its value is the loss, its gradient that of the loss, and the graph
/// holds no logits.
///
/// # Shapes
/// - `hidden_nc`: `[n, width]`; `sources`: indices into `n`, at least one
/// - `loss_of` takes a range of `sources` and its logits, `[range, vocabulary]`, and returns `[1]`
pub(super) fn sum_in_chunks<M: CausalModel>(
    model: &M,
    hidden_nc: &Tensor<2>,
    sources: &[i64],
    chunk: usize,
    mut loss_of: impl FnMut(Range<usize>, Tensor<2>) -> Result<Tensor<1>, TrainError>,
) -> Result<Tensor<1>, TrainError> {
    let device = hidden_nc.device();
    let sources_s = Tensor::<1, Int>::from_data(sources, &device.clone().without_autodiff());
    let selected_sc = hidden_nc.clone().select(0, sources_s);
    let constant_sc = selected_sc.clone().detach();
    let mut values = Vec::new();
    let mut hidden_gradients = Vec::new();
    let mut head = HeadGradients::default();
    for start in (0..sources.len()).step_by(chunk) {
        let range = start..sources.len().min(start + chunk);
        let mut leaf_kc = constant_sc.clone().narrow(0, start, range.len());
        if device.is_autodiff() {
            leaf_kc = leaf_kc.detach().require_grad();
        }
        let loss = loss_of(range, model.logits(leaf_kc.clone()))?;
        if loss.is_tracked() {
            let mut gradients = loss.backward();
            let gradient = leaf_kc.grad_remove(&mut gradients);
            hidden_gradients
                .push(gradient.unwrap_or_else(|| leaf_kc.zeros_like().without_autodiff()));
            model.visit(&mut Absorb { head: &mut head, gradients });
        }
        values.push(loss.without_autodiff());
    }
    let value = Tensor::cat(values, 0).sum();
    if hidden_gradients.is_empty() {
        return Ok(value);
    }
    let dtype = value.dtype();
    let linear_sc = selected_sc.mul(Tensor::cat(hidden_gradients, 0));
    let mut attach = Attach { head, linear: linear_sc.cast(dtype).sum() };
    model.visit(&mut attach);
    let linear = attach.linear;
    Ok(linear.clone().sub(linear.detach()).add(value))
}

/// Flat gradients of the parameters that logits depend on, summed over chunks.
#[derive(Default)]
struct HeadGradients {
    of_parameter: HashMap<ParamId, Tensor<1>>,
}

/// Takes the gradients of one chunk.
struct Absorb<'a> {
    head: &'a mut HeadGradients,
    gradients: Gradients,
}

impl ModuleVisitor for Absorb<'_> {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let Some(gradient) = parameter.base().grad_remove(&mut self.gradients) else {
            return;
        };
        let mut sum = gradient.flatten::<1>(0, D - 1);
        if let Some(before) = self.head.of_parameter.remove(&parameter.id) {
            sum = before.add(sum);
        }
        self.head.of_parameter.insert(parameter.id, sum);
    }
}

/// Adds parameter times gradient for every parameter of the head.
struct Attach {
    head: HeadGradients,
    linear: Tensor<1>,
}

impl ModuleVisitor for Attach {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let Some(gradient) = self.head.of_parameter.remove(&parameter.id) else {
            return;
        };
        let product = parameter.base().flatten::<1>(0, D - 1).mul(gradient);
        self.linear = self.linear.clone().add(product.cast(self.linear.dtype()).sum());
    }
}
