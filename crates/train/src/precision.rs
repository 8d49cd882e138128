use crate::error::TrainError;
use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{DType, Tensor},
};
use std::{fmt, str::FromStr};

/// The dtype that a model computes in, RoPE and RMSNorm included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// float32.
    F32,
    /// float64, for exactness checks.
    F64,
}

impl Precision {
    /// The burn dtype.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
        }
    }

    /// The short name, as on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self, TrainError> {
        match name {
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(TrainError::UnknownPrecision { name: name.to_owned() }),
        }
    }
}

/// A model with its float parameters cast, for checks in float64 or training in less.
///
/// What of it is computed in a dtype of its own stays so: see [`CausalModel`](crate::CausalModel).
pub fn to_dtype<M: Module>(model: M, dtype: DType) -> M {
    model.map(&mut Cast(dtype))
}

struct Cast(DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = self.0;
        parameter.map(|value| {
            let trained = value.is_require_grad();
            value.detach().cast(dtype).set_require_grad(trained)
        })
    }
}
