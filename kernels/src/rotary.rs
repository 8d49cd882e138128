use crate::error::KernelError;
use burn::tensor::{DType, Device, Tensor, TensorData};

/// Which features of a head are rotated together.
///
/// The two differ by an order of features, so weights of one are wrong under the other and nothing
/// but worse figures tells: take what the checkpoint was trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RotaryPairs {
    /// Feature `f` with `f + head_dim / 2`: checkpoints of Hugging Face's Llama, SmolLM, Qwen and
    /// Mistral, and of GPT-NeoX.
    #[default]
    Halves,
    /// Feature `2 f` with `2 f + 1`: RoFormer itself, GPT-J, Meta's own Llama files, and models on
    /// burn's `RotaryEncoding`.
    Neighbours,
}

/// Cosines and sines of rotary position embeddings at explicit positions.
///
/// Angles are formed on the host in float64 and rounded once to the dtype of the tensors, so that
/// float64 is float64 throughout and long positions lose nothing in float32. Features are paired by
/// [`RotaryPairs::Halves`] unless [`with_pairs`](Self::with_pairs) says otherwise. Formula:
/// RoFormer, arXiv 2104.09864.
#[derive(Debug, Clone)]
pub struct Rotary {
    cos_b1tf: Tensor<4>,
    sin_b1tf: Tensor<4>,
    pairs: RotaryPairs,
}

impl Rotary {
    /// The table of `rows` of positions for the given inverse frequencies (radians per token).
    ///
    /// Shorter rows are padded with position 0.
    ///
    /// # Shapes
    /// `rows`: `[batch][time of the row]`; `inverse_frequencies`: `[head_dim / 2]`.
    ///
    /// # Errors
    /// No positions or no frequencies, a frequency that is no number, a dtype that is no float.
    pub fn new<R: AsRef<[i32]>>(
        rows: &[R],
        inverse_frequencies: &[f64],
        dtype: DType,
        device: &Device,
    ) -> Result<Self, KernelError> {
        let time = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or_default();
        if time == 0 {
            return Err(KernelError::NoPositions);
        }
        if inverse_frequencies.is_empty() {
            return Err(KernelError::NoFrequencies);
        }
        if let Some(at) = inverse_frequencies.iter().position(|value| !value.is_finite()) {
            return Err(KernelError::Frequency { at, value: inverse_frequencies[at] });
        }
        if !dtype.is_float() {
            return Err(KernelError::RotaryDtype { dtype });
        }
        let mut cos = Vec::with_capacity(rows.len() * time * inverse_frequencies.len());
        let mut sin = Vec::with_capacity(cos.capacity());
        for positions in rows.iter().map(AsRef::as_ref) {
            let padding = std::iter::repeat_n(&0, time - positions.len());
            for &position in positions.iter().chain(padding) {
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
        Ok(Self { cos_b1tf: upload(cos), sin_b1tf: upload(sin), pairs: RotaryPairs::default() })
    }

    /// The same table for heads whose features are paired in this way.
    pub fn with_pairs(self, pairs: RotaryPairs) -> Self {
        Self { pairs, ..self }
    }

    /// The same table, whose rotations multiply by `factor` too, as YaRN (arXiv 2309.00071) does.
    pub fn scaled(self, factor: f64) -> Self {
        if factor == 1.0 {
            return self;
        }
        let [cos_b1tf, sin_b1tf] = [self.cos_b1tf, self.sin_b1tf].map(|x| x.mul_scalar(factor));
        Self { cos_b1tf, sin_b1tf, ..self }
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
        let dims @ [b, heads, t, head_dim] = x_bhtd.dims();
        self.check(&x_bhtd)?;
        let half = head_dim / 2;
        let [first, second] = match self.pairs {
            RotaryPairs::Halves => {
                [x_bhtd.clone().narrow(3, 0, half), x_bhtd.narrow(3, half, half)]
            }
            RotaryPairs::Neighbours => {
                let x_bhtf2 = x_bhtd.reshape([b, heads, t, half, 2]);
                [0, 1].map(|at| x_bhtf2.clone().narrow(4, at, 1).squeeze_dim::<4>(4))
            }
        };
        let (cos, sin) = (self.cos_b1tf.clone(), self.sin_b1tf.clone());
        let rotated_first = first.clone().mul(cos.clone()).sub(second.clone().mul(sin.clone()));
        let rotated_second = second.mul(cos).add(first.mul(sin));
        Ok(match self.pairs {
            RotaryPairs::Halves => Tensor::cat(vec![rotated_first, rotated_second], 3),
            RotaryPairs::Neighbours => {
                Tensor::stack::<5>(vec![rotated_first, rotated_second], 4).reshape(dims)
            }
        })
    }

    fn check(&self, x_bhtd: &Tensor<4>) -> Result<(), KernelError> {
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
            return Err(KernelError::MixedDtypes {
                tensor: "x",
                of: "the rotary table",
                expected,
                found,
            });
        }
        let [table, other] = [&self.cos_b1tf, x_bhtd].map(|x| x.device().without_autodiff());
        if table != other {
            let (expected, found) = (format!("{table:?}"), format!("{other:?}"));
            return Err(KernelError::Device {
                tensor: "x",
                of: "the rotary table",
                expected,
                found,
            });
        }
        Ok(())
    }
}
