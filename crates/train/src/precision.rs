use crate::error::TrainError;
use burn::tensor::DType;
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
