use std::fmt;
use std::str::FromStr;

use crate::device::DeviceName;
use anyhow::{Result, bail};
use burn::tensor::{DType, Device};
use indicatif::{ProgressBar, ProgressStyle};
use pleach_kernels::problem::NamedProblem;
use serde::Serialize;

use crate::output;

/// Most heads that are measured: no device launches more.
pub(crate) const MOST_HEADS: usize = 1 << 16;

/// Most features of a head that are measured.
pub(crate) const MOST_FEATURES: usize = 1 << 16;

/// Longest side of the matrices whose product is the floor.
pub(crate) const LARGEST_SIDE: usize = 1 << 15;

/// What all measurements of a run share.
pub(crate) struct Setup {
    pub(crate) device_name: DeviceName,
    pub(crate) device: Device,
    pub(crate) dtype: Dtype,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) repeats: usize,
    pub(crate) product: usize,
}

impl Setup {
    /// Whether the device's memory is the process's own.
    pub(crate) fn on_host(&self) -> bool {
        matches!(self.device_name, DeviceName::Flex | DeviceName::Ndarray)
    }

    /// Refuses inputs, outputs and matrices of the floor that `available` bytes of the host cannot
    /// hold.
    ///
    /// On another device only what the host prepares for it counts, one array of float32 at a time.
    pub(crate) fn check_memory(&self, tokens: usize, available: u64) -> Result<()> {
        let tokens = (tokens as u64).saturating_mul(self.head_dim as u64);
        let [queries, keys] =
            [self.heads, self.kv_heads].map(|heads| tokens.saturating_mul(heads as u64));
        let matrix = (self.product as u64).saturating_mul(self.product as u64);
        let bytes = self.dtype.bytes() as u64;
        let (arrays, product) = match self.on_host() {
            // Queries and the output, keys and values, and a gradient of each.
            true => (
                queries.saturating_add(keys).saturating_mul(4 * bytes),
                matrix.saturating_mul(3 * bytes),
            ),
            false => (queries.saturating_mul(4), 0),
        };
        if arrays > available {
            bail!(
                "queries, keys, values, outputs and their gradients take {}, and {} are free; choose less of --tokens, \
                 --memory-tokens, --heads or --head-dim",
                output::bytes(arrays),
                output::bytes(available)
            );
        }
        if product > available {
            bail!(
                "the matrices of the floor take {}, and {} are free; choose a smaller --product",
                output::bytes(product),
                output::bytes(available)
            );
        }
        Ok(())
    }
}

/// Numbers that attention is timed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dtype {
    /// float16.
    F16,
    /// float32.
    F32,
    /// float64.
    F64,
}

impl Dtype {
    pub(crate) fn burn(self) -> DType {
        match self {
            Self::F16 => DType::F16,
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
        }
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// What the decoder of the training step computes in.
    pub(crate) fn of_decoder(self) -> Result<DType> {
        match self {
            Self::F32 => Ok(DType::F32),
            Self::F64 => Ok(DType::F64),
            Self::F16 => bail!(
                "the training step computes in f32 or f64; leave --step away, or choose another --dtype"
            ),
        }
    }

    /// Refuses what the device computes wrongly or not at all.
    pub(crate) fn check(self, name: DeviceName, device: &Device) -> Result<()> {
        match self {
            Self::F32 => Ok(()),
            Self::F64 => Ok(name.check(DType::F64)?),
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
pub(crate) enum Problems {
    All,
    One(NamedProblem),
}

impl Problems {
    /// What was named, each once, in the order of tables.
    pub(crate) fn list(named: &[Self]) -> Vec<NamedProblem> {
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

/// A length of at most 2^24 tokens, beyond which nothing here is measured.
pub(crate) fn tokens(text: &str) -> Result<usize, String> {
    match count(text)? {
        tokens if tokens <= 1 << 24 => Ok(tokens),
        tokens => {
            Err(format!("{tokens} tokens are more than this measures: give at most {}", 1 << 24))
        }
    }
}

/// A number of things, at least one.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a whole number from 1".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// A number of things, from one to `most`.
pub(crate) fn count_to(
    most: usize,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text: &str| match count(text)? {
        found if found <= most => Ok(found),
        found => Err(format!("{found} is more than this measures: give at most {most}")),
    }
}

/// A line on standard error about what is being measured, which nothing redraws while a clock runs.
pub(crate) fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::{Dtype, Setup, count_to};
    use crate::device::DeviceName;
    use burn::tensor::Device;

    #[test]
    fn inputs_are_refused_where_they_do_not_fit_and_not_before() {
        let setup = Setup {
            device_name: DeviceName::Flex,
            device: Device::flex(),
            dtype: Dtype::F64,
            heads: 8,
            kv_heads: 2,
            head_dim: 64,
            repeats: 1,
            product: 10,
        };
        // Queries, keys, values, outputs and their gradients of 1,000 tokens.
        let needed = 4 * (8 + 2) * 64 * 1_000 * 8;
        assert!(setup.check_memory(1_000, needed).is_ok());
        let refused = setup
            .check_memory(1_000, needed - 1)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(refused.contains("19.5 MiB") && refused.contains("--tokens"), "{refused}");
        let setup = Setup { product: 1_000, ..setup };
        let refused =
            setup.check_memory(1, 1 << 20).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("22.9 MiB") && refused.contains("--product"), "{refused}");
    }

    #[test]
    fn counts_go_up_to_the_most_that_is_given() {
        assert_eq!(count_to(7)("7"), Ok(7));
        assert_eq!(
            count_to(7)("8"),
            Err("8 is more than this measures: give at most 7".to_owned())
        );
        assert!(count_to(7)("0").is_err());
    }

    #[test]
    fn float64_is_for_cpu_devices() {
        let on = |name| Dtype::F64.check(name, &Device::flex()).is_ok();
        assert_eq!(
            [DeviceName::Flex, DeviceName::Wgpu, DeviceName::Cuda].map(on),
            [true, false, false]
        );
    }
}
