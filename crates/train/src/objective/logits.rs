//! Log-probabilities from a chunk of logits, in float32 or better.
use crate::error::TrainError;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Logits in float32 or better, over a temperature.
pub(super) fn tempered(logits_kv: Tensor<2>, temperature: f64) -> Tensor<2> {
    let logits_kv = match logits_kv.dtype() {
        DType::F64 | DType::F32 => logits_kv,
        _ => logits_kv.cast(DType::F32),
    };
    if temperature == 1.0 { logits_kv } else { logits_kv.mul_scalar(1.0 / temperature) }
}

/// Log-probabilities of the whole vocabulary.
///
/// # Shapes
/// `logits_kv` and the result: `[k, vocabulary]`.
pub(super) fn log_softmax(logits_kv: Tensor<2>) -> Tensor<2> {
    let (shifted_kv, log_sum_k1) = shifted(logits_kv);
    shifted_kv.sub(log_sum_k1)
}

/// log p of one target per row of logits.
///
/// # Shapes
/// `logits_kv`: `[k, vocabulary]`; `targets`: `[k]`; returns `[k, 1]`.
pub(super) fn target_logp(
    logits_kv: Tensor<2>,
    targets: &[u32],
    device: &Device,
) -> Result<Tensor<2>, TrainError> {
    let targets_k1 = target_ids(&logits_kv, targets, device)?;
    let (shifted_kv, log_sum_k1) = shifted(tempered(logits_kv, 1.0));
    Ok(shifted_kv.gather(1, targets_k1).sub(log_sum_k1))
}

/// The targets of some rows of logits, checked against their shape.
///
/// # Shapes
/// `logits_kv`: `[k, vocabulary]`; `targets`: `[k]`; returns `[k, 1]`.
pub(super) fn target_ids(
    logits_kv: &Tensor<2>,
    targets: &[u32],
    device: &Device,
) -> Result<Tensor<2, Int>, TrainError> {
    let [rows, vocabulary] = logits_kv.dims();
    if rows != targets.len() {
        return Err(TrainError::ModelShape {
            what: "logits",
            expected: vec![targets.len(), vocabulary],
            found: vec![rows, vocabulary],
        });
    }
    let largest = targets.iter().copied().max().unwrap_or_default();
    if largest as usize >= vocabulary {
        return Err(TrainError::Vocabulary { token: largest, vocabulary });
    }
    let targets: Vec<i64> = targets.iter().copied().map(i64::from).collect();
    Ok(Tensor::from_data(TensorData::new(targets, [rows, 1]), device))
}

/// Logits less their maximum, and the logarithm of the sum of their exponentials.
fn shifted(logits_kv: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let max_k1 = logits_kv.clone().detach().max_dim(1);
    let shifted_kv = logits_kv.sub(max_k1);
    let log_sum_k1 = shifted_kv.clone().exp().sum_dim(1).log();
    (shifted_kv, log_sum_k1)
}

/// Numbers of the host as a column beside a tensor.
///
/// # Shapes
/// `values`: `[k]`; returns `[k, 1]`.
pub(super) fn column(values: Vec<f64>, like: &Tensor<2>, device: &Device) -> Tensor<2> {
    let shape = [values.len(), 1];
    Tensor::from_data(TensorData::new(values, shape), (device, like.dtype()))
}
