use crate::{error::TrainError, precision::Precision};
use burn::tensor::Device;
use std::{fmt, str::FromStr};

/// A device by the name of the feature that builds it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// burn's CPU backend.
    Flex,
    /// burn's older CPU backend.
    Ndarray,
    /// A GPU through WebGPU, Vulkan or Metal; float32 only.
    Wgpu,
    /// The first CUDA GPU; float32 only.
    Cuda,
}

impl DeviceName {
    /// All names, in the order of preference on a machine without a GPU.
    pub const ALL: [Self; 4] = [Self::Flex, Self::Ndarray, Self::Wgpu, Self::Cuda];

    /// The name as on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }

    /// The device, without autodiff; call `.autodiff()` on it to train.
    ///
    /// # Errors
    /// A device that is not built in, or that the machine does not have.
    pub fn open(self) -> Result<Device, TrainError> {
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
            _ => Err(TrainError::DeviceNotBuilt { name: self.name() }),
        }
    }

    /// Checks that the device computes correctly in a dtype.
    ///
    /// # Errors
    /// float64 on wgpu, which is advertised by drivers and wrong, and on CUDA, whose attention
    /// kernels sum in float32.
    pub fn check_precision(self, precision: Precision) -> Result<(), TrainError> {
        match (self, precision) {
            (Self::Wgpu | Self::Cuda, Precision::F64) => Err(TrainError::PrecisionUnavailable {
                precision: precision.name(),
                device: self.name().to_owned(),
                advice: "f32, or a CPU device",
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn first_of(
    name: DeviceName,
    kind: burn::tensor::DeviceType,
    advice: &'static str,
) -> Result<Device, TrainError> {
    let absent = TrainError::DeviceAbsent { name: name.name(), advice };
    Device::enumerate(kind).into_vec().into_iter().next().ok_or(absent)
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceName {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self, TrainError> {
        Self::ALL
            .into_iter()
            .find(|device| device.name() == name)
            .ok_or_else(|| TrainError::UnknownDevice { name: name.to_owned() })
    }
}
