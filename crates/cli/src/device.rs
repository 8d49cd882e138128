//! Names of devices and of the numbers that they compute in, as on the command line.
use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, anyhow, bail};
use burn::tensor::{DType, Device};

/// A device by the name of the feature that builds it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceName {
    Flex,
    Ndarray,
    Wgpu,
    Cuda,
}

impl DeviceName {
    const ALL: [Self; 4] = [Self::Flex, Self::Ndarray, Self::Wgpu, Self::Cuda];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }

    /// The device, without autodiff.
    pub(crate) fn open(self) -> Result<Device> {
        match self {
            #[cfg(feature = "flex")]
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated, reason = "kept as the second CPU backend to check against")]
            Self::Ndarray => Ok(Device::ndarray()),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => first_of(
                self,
                burn::tensor::DeviceType::Wgpu,
                "install a Vulkan, Metal or DX12 driver (mesa-vulkan-drivers runs on any CPU)",
            ),
            #[cfg(feature = "cuda")]
            Self::Cuda => first_of(
                self,
                burn::tensor::DeviceType::Cuda,
                "check that the NVIDIA driver is installed and `nvidia-smi` lists a GPU",
            ),
            #[allow(unreachable_patterns, reason = "which arms exist depends on the features")]
            _ => bail!("device `{self}` is not built in: build with `--features {self}`"),
        }
    }

    /// Refuses float64 on wgpu, where drivers advertise it and compute it wrongly, and on CUDA,
    /// whose attention kernels sum in float32.
    pub(crate) fn check(self, dtype: DType) -> Result<()> {
        match (self, dtype) {
            (Self::Wgpu | Self::Cuda, DType::F64) => {
                bail!("f64 is not available on device `{self}`: use f32, or a CPU device")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn first_of(name: DeviceName, kind: burn::tensor::DeviceType, advice: &str) -> Result<Device> {
    let absent = || anyhow!("device `{name}` is built in but this machine has none: {advice}");
    Device::enumerate(kind).into_vec().into_iter().next().ok_or_else(absent)
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|device| device.name() == name)
            .ok_or_else(|| anyhow!("no device is called `{name}`: use flex, ndarray, wgpu or cuda"))
    }
}

/// The numbers that a decoder computes in, by their short name.
pub(crate) fn dtype(name: &str) -> Result<DType> {
    match name {
        "f32" => Ok(DType::F32),
        "f64" => Ok(DType::F64),
        _ => bail!("no dtype is called `{name}`: use f32 or f64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: fmt::Debug>(result: Result<T>) -> String {
        result.map(|found| format!("{found:?} is no error")).unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn devices_and_dtypes_have_names() {
        for device in DeviceName::ALL {
            assert_eq!(device.name().parse::<DeviceName>().ok(), Some(device));
        }
        assert!(message("tpu".parse::<DeviceName>()).contains("use flex, ndarray, wgpu or cuda"));
        assert_eq!(dtype("f64").ok(), Some(DType::F64));
        assert!(message(dtype("f16")).contains("use f32 or f64"));
    }

    #[test]
    fn float64_is_for_cpu_devices() {
        let on = |name: DeviceName| name.check(DType::F64).is_ok();
        assert_eq!(DeviceName::ALL.map(on), [true, true, false, false]);
        assert!(DeviceName::ALL.into_iter().all(|name| name.check(DType::F32).is_ok()));
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_device_that_is_not_built_in_says_what_to_build_with() {
        let found = message(DeviceName::Cuda.open());
        assert_eq!(found, "device `cuda` is not built in: build with `--features cuda`");
    }
}
