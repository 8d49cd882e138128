use crate::error::KernelError;
use burn::tensor::{DType, Device, Tensor, TensorData};

/// Cosines and sines of rotary position embeddings at explicit positions.
///
/// Angles are formed on the host in float64 and rounded once to the dtype of the tensors, so that
/// float64 is float64 throughout and long positions lose nothing in float32. Halves are paired as
/// in Hugging Face checkpoints (feature `f` with `f + head_dim / 2`). Formula: RoFormer, arXiv
/// 2104.09864.
#[derive(Debug, Clone)]
pub struct Rotary {
    cos_b1tf: Tensor<4>,
    sin_b1tf: Tensor<4>,
}

impl Rotary {
    /// The table of `rows` of positions for the given inverse frequencies (radians per token).
    ///
    /// # Shapes
    /// `rows`: `[batch][time]`; `inverse_frequencies`: `[head_dim / 2]`.
    ///
    /// # Errors
    /// No rows, or rows of different lengths; a frequency that is no number, a dtype that is no
    /// float.
    pub fn new<R: AsRef<[i32]>>(
        rows: &[R],
        inverse_frequencies: &[f64],
        dtype: DType,
        device: &Device,
    ) -> Result<Self, KernelError> {
        let time = rows.first().map_or(0, |row| row.as_ref().len());
        if time == 0 {
            return Err(KernelError::NoPositions);
        }
        if let Some(at) = inverse_frequencies.iter().position(|value| !value.is_finite()) {
            return Err(KernelError::Frequency { at, value: inverse_frequencies[at] });
        }
        if !dtype.is_float() {
            return Err(KernelError::RotaryDtype { dtype });
        }
        let mut cos = Vec::with_capacity(rows.len() * time * inverse_frequencies.len());
        let mut sin = Vec::with_capacity(cos.capacity());
        for (row, positions) in rows.iter().enumerate() {
            let positions = positions.as_ref();
            if positions.len() != time {
                return Err(KernelError::RowLength {
                    array: "positions",
                    row,
                    expected: time,
                    found: positions.len(),
                });
            }
            for &position in positions {
                for frequency in inverse_frequencies {
                    let (s, c) = (f64::from(position) * frequency).sin_cos();
                    cos.push(c);
                    sin.push(s);
                }
            }
        }
        let shape = [rows.len(), 1, time, inverse_frequencies.len()];
        let device = device.clone().without_autodiff();
        let upload = |table: Vec<f64>| {
            Tensor::<4>::from_data(TensorData::new(table, shape), (&device, dtype))
        };
        Ok(Self { cos_b1tf: upload(cos), sin_b1tf: upload(sin) })
    }

    /// Rotates queries or keys to the positions of the table.
    ///
    /// # Shapes
    /// `x_bhtd`: `[batch, heads, time, head_dim]`, `head_dim` twice the number of frequencies; the
    /// result has the same shape.
    ///
    /// # Errors
    /// A tensor whose batch, time or head dimension, dtype or device is not the table's.
    pub fn rotate(&self, x_bhtd: Tensor<4>) -> Result<Tensor<4>, KernelError> {
        let [batch, _, time, half] = self.cos_b1tf.dims();
        let [b, heads, t, head_dim] = x_bhtd.dims();
        if head_dim != 2 * half {
            return Err(KernelError::RotaryWidth { head_dim, frequencies: half });
        }
        if [b, t] != [batch, time] {
            return Err(KernelError::Shape {
                tensor: "x",
                expected: vec![batch, heads, time, head_dim],
                found: x_bhtd.dims().to_vec(),
            });
        }
        let (expected, found) = (self.cos_b1tf.dtype(), x_bhtd.dtype());
        if expected != found {
            return Err(KernelError::MixedDtypes { tensor: "x", expected, found });
        }
        let (table, other) =
            (self.cos_b1tf.device().without_autodiff(), x_bhtd.device().without_autodiff());
        if table != other {
            let (mask, found) = (format!("{table:?}"), format!("{other:?}"));
            return Err(KernelError::Device { tensor: "x", mask, found });
        }
        let first = x_bhtd.clone().narrow(3, 0, half);
        let second = x_bhtd.narrow(3, half, half);
        let (cos, sin) = (self.cos_b1tf.clone(), self.sin_b1tf.clone());
        let rotated_first = first.clone().mul(cos.clone()).sub(second.clone().mul(sin.clone()));
        let rotated_second = second.mul(cos).add(first.mul(sin));
        Ok(Tensor::cat(vec![rotated_first, rotated_second], 3))
    }
}
