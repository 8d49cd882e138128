use burn::tensor::{DType, Device};

/// A device and a dtype that it computes in.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) dtype: DType,
}

impl Target {
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
            targets.push(Target { name: format!("{name} {dtype:?}"), device: device.clone().autodiff(), dtype });
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
    targets
}

/// The wgpu device, or `None` with a note on stderr.
#[cfg(feature = "wgpu")]
pub(crate) fn wgpu() -> Option<Device> {
    static FOUND: std::sync::OnceLock<Option<Device>> = std::sync::OnceLock::new();
    let first = || Device::enumerate(burn::tensor::DeviceType::Wgpu).into_vec().into_iter().next();
    let device = FOUND.get_or_init(first).clone();
    if device.is_none() {
        let required = std::env::var_os("PLEACH_REQUIRE_WGPU").is_some_and(|value| value == "1");
        assert!(!required, "PLEACH_REQUIRE_WGPU=1 but no wgpu adapter was found");
        eprintln!("skipped on wgpu: no adapter on this machine");
    }
    device
}

#[cfg(not(feature = "wgpu"))]
pub(crate) fn wgpu() -> Option<Device> {
    eprintln!("skipped on wgpu: feature `wgpu` is not enabled");
    None
}
