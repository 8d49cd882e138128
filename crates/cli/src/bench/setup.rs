use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use burn::tensor::DType;
use indicatif::{ProgressBar, ProgressStyle};
use pleach_layout::NamedProblem;
use pleach_train::{Device, DeviceName, Precision};
use serde::Serialize;

/// What all measurements of a run share.
pub(super) struct Setup {
    pub(super) device_name: DeviceName,
    pub(super) device: Device,
    pub(super) dtype: Dtype,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) repeats: usize,
    pub(super) product: usize,
}

impl Setup {
    /// Whether the device's memory is the process's own.
    pub(super) fn on_host(&self) -> bool {
        matches!(self.device_name, DeviceName::Flex | DeviceName::Ndarray)
    }
}

/// Numbers that attention is timed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dtype {
    /// float16.
    F16,
    /// float32.
    F32,
    /// float64.
    F64,
}

impl Dtype {
    pub(super) fn burn(self) -> DType {
        match self {
            Self::F16 => DType::F16,
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// What the decoder of the training step computes in.
    pub(super) fn precision(self) -> Result<Precision> {
        match self {
            Self::F32 => Ok(Precision::F32),
            Self::F64 => Ok(Precision::F64),
            Self::F16 => bail!("the training step computes in f32 or f64; leave --step away, or choose another --dtype"),
        }
    }

    /// Refuses what the device computes wrongly or not at all.
    pub(super) fn check(self, name: DeviceName, device: &Device) -> Result<()> {
        match self {
            Self::F32 => Ok(()),
            Self::F64 => Ok(name.check_precision(Precision::F64)?),
            Self::F16 if device.supports_dtype(DType::F16) => Ok(()),
            Self::F16 => bail!("device `{name}` does not compute in f16; choose --dtype f32"),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl FromStr for Dtype {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::F16, Self::F32, Self::F64]
            .into_iter()
            .find(|dtype| dtype.to_string() == name)
            .ok_or_else(|| format!("no dtype is called `{name}`: use f16, f32 or f64"))
    }
}

/// One problem by its name, or all of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Problems {
    All,
    One(NamedProblem),
}

impl Problems {
    /// What was named, each once, in the order of tables.
    pub(super) fn list(named: &[Self]) -> Vec<NamedProblem> {
        let asked = |problem: &NamedProblem| {
            named.iter().any(|choice| match choice {
                Self::All => true,
                Self::One(one) => one == problem,
            })
        };
        NamedProblem::ALL.into_iter().filter(asked).collect()
    }
}

impl FromStr for Problems {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "all" {
            return Ok(Self::All);
        }
        let found = NamedProblem::ALL.into_iter().find(|problem| problem.name() == name);
        found.map(Self::One).ok_or_else(|| {
            let names: Vec<_> = NamedProblem::ALL.iter().map(|problem| problem.name()).collect();
            format!("no problem is called `{name}`: use all, {}", names.join(", "))
        })
    }
}

/// A length that an index of a device can count.
pub(super) fn tokens(text: &str) -> Result<usize, String> {
    match count(text)? {
        tokens if tokens <= 1 << 24 => Ok(tokens),
        tokens => Err(format!("{tokens} tokens are more than this measures: give at most {}", 1 << 24)),
    }
}

/// A number of things, at least one.
pub(super) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a whole number from 1".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// A line on standard error about what is being measured, which nothing redraws while a clock runs.
pub(super) fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}
