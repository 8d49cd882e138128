#[cfg(any(feature = "wgpu", feature = "cuda"))]
use burn::tensor::DeviceType;
use burn::tensor::{DType, Device};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use std::sync::OnceLock;

/// A device and a dtype that it computes in.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) dtype: DType,
}

impl Target {
    /// Whether the device is one of CubeCL, where a first call costs seconds of compilation.
    pub(crate) fn compiles(&self) -> bool {
        ["wgpu", "cuda"].iter().any(|name| self.name.starts_with(name))
    }

    /// Largest error that is allowed, relative to the largest value: a few hundred roundings.
    pub(crate) fn tolerance(&self) -> f64 {
        let epsilon = match self.dtype {
            DType::F64 => f64::EPSILON,
            _ => f64::from(f32::EPSILON),
        };
        256.0 * epsilon
    }
}

/// Every device that is built in, in every dtype that it computes in.
pub(crate) fn targets() -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name: &str, device: Device, dtypes: &[DType]| {
        for &dtype in dtypes {
            targets.push(Target {
                name: format!("{name} {dtype:?}"),
                device: device.clone().autodiff(),
                dtype,
            });
        }
    };
    #[cfg(feature = "flex")]
    add("flex", Device::flex(), &[DType::F64, DType::F32]);
    #[cfg(feature = "ndarray")]
    #[allow(deprecated, reason = "kept as the second CPU backend to check against")]
    add("ndarray", Device::ndarray(), &[DType::F64, DType::F32]);
    if let Some(device) = wgpu() {
        add("wgpu", device, &[DType::F32]);
    }
    if let Some(device) = cuda() {
        add("cuda", device, &[DType::F32]);
    }
    targets
}

/// The wgpu device, or `None` with a note on stderr.
#[cfg(feature = "wgpu")]
pub(crate) fn wgpu() -> Option<Device> {
    static FOUND: OnceLock<Option<Device>> = OnceLock::new();
    first(&FOUND, DeviceType::Wgpu, "wgpu", "PLEACH_REQUIRE_WGPU")
}

#[cfg(not(feature = "wgpu"))]
pub(crate) fn wgpu() -> Option<Device> {
    let required = std::env::var_os("PLEACH_REQUIRE_WGPU").is_some_and(|value| value == "1");
    assert!(!required, "PLEACH_REQUIRE_WGPU=1 but feature `wgpu` is not enabled");
    eprintln!("skipped on wgpu: feature `wgpu` is not enabled");
    None
}

/// The first CUDA device, or `None`.
#[cfg(feature = "cuda")]
pub(crate) fn cuda() -> Option<Device> {
    static FOUND: OnceLock<Option<Device>> = OnceLock::new();
    first(&FOUND, DeviceType::Cuda, "cuda", "PLEACH_REQUIRE_CUDA")
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda() -> Option<Device> {
    None
}

/// The first device of a kind, looked for once; a missing one is a failure where the variable asks
/// for it.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn first(
    found: &OnceLock<Option<Device>>,
    kind: DeviceType,
    name: &str,
    variable: &str,
) -> Option<Device> {
    let device =
        found.get_or_init(|| Device::enumerate(kind).into_vec().into_iter().next()).clone();
    if device.is_none() {
        let required = std::env::var_os(variable).is_some_and(|value| value == "1");
        assert!(!required, "{variable}=1 but no {name} device was found");
        eprintln!("skipped on {name}: this machine has no such device");
    }
    device
}
