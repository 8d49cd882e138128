use crate::device::DeviceName;
use anyhow::Result;
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Tensor, TensorData};
use pleach_kernels::{
    AttentionConfig, Execution, KernelError, TreeMask, dense_mask, tree_attention,
};
use serde::{Deserialize, Serialize};

use crate::free_memory;
use crate::output;
use crate::setup::Setup;

/// A way to compute attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// Tree attention by what runs on the device.
    Tree,
    /// The dense reference.
    Reference,
    /// burn's own attention under the dense mask.
    BurnAttention,
    /// Tree attention of one path with as many visible pairs.
    CausalEqualPairs,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tree, Self::Reference, Self::BurnAttention, Self::CausalEqualPairs];

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree attention",
            Self::Reference => "dense reference",
            Self::BurnAttention => "burn's attention",
            Self::CausalEqualPairs => "causal, equal pairs",
        }
    }

    /// Whether its time and memory grow with the square of the length.
    pub(crate) fn is_dense(self) -> bool {
        matches!(self, Self::Reference | Self::BurnAttention)
    }
}

/// Which passes are timed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pass {
    /// Forward, nothing kept for gradients.
    Forward,
    /// Forward and backward to queries, keys and values.
    ForwardBackward,
}

impl Pass {
    pub(crate) const ALL: [Self; 2] = [Self::Forward, Self::ForwardBackward];

    /// Flops of the products alone, for so many visible pairs a head.
    ///
    /// Two products forward and five backward, one of which computes the scores again.
    pub(crate) fn flops(self, heads: usize, head_dim: usize, pairs: u64) -> f64 {
        let products = match self {
            Self::Forward => 2.0,
            Self::ForwardBackward => 7.0,
        };
        products * 2.0 * (heads * head_dim) as f64 * pairs as f64
    }
}

/// Queries, keys, values and a mask.
pub(crate) struct Inputs {
    q_bhtd: Tensor<4>,
    k_bgtd: Tensor<4>,
    v_bgtd: Tensor<4>,
    mask: TreeMask,
    pass: Pass,
    on_flex: bool,
}

impl Inputs {
    /// Random tensors for a row of the mask; they track gradients if the pass needs them. Nothing
    /// is planned yet.
    pub(crate) fn new(setup: &Setup, ends: &[i32], pass: Pass) -> Result<Self> {
        let mask = TreeMask::new(&[ends], &setup.device)?;
        let device = match pass {
            Pass::Forward => setup.device.clone(),
            Pass::ForwardBackward => setup.device.clone().autodiff(),
        };
        let random = |seed: u64, heads: usize| {
            let shape = [1, heads, ends.len(), setup.head_dim];
            let data = TensorData::new(numbers(seed, shape.iter().product()), shape);
            let tensor = Tensor::<4>::from_data(data, (&device, setup.dtype.burn()));
            if pass == Pass::ForwardBackward { tensor.require_grad() } else { tensor }
        };
        Ok(Self {
            q_bhtd: random(1, setup.heads),
            k_bgtd: random(2, setup.kv_heads),
            v_bgtd: random(3, setup.kv_heads),
            mask,
            pass,
            on_flex: setup.device_name == DeviceName::Flex,
        })
    }

    /// The output, and behind it the gradients of queries, keys and values if the pass has them,
    /// for an output gradient of ones.
    pub(crate) fn run(&self, way: Way) -> Result<Vec<Tensor<4>>> {
        let o_bhtd = self.attend(way)?;
        if self.pass == Pass::Forward {
            return Ok(vec![o_bhtd]);
        }
        let gradients = o_bhtd.backward();
        let found = [&self.q_bhtd, &self.k_bgtd, &self.v_bgtd].map(|input| input.grad(&gradients));
        Ok([Some(o_bhtd)].into_iter().chain(found).flatten().collect())
    }

    fn attend(&self, way: Way) -> Result<Tensor<4>> {
        let [q_bhtd, k_bgtd, v_bgtd] =
            [&self.q_bhtd, &self.k_bgtd, &self.v_bgtd].map(Tensor::clone);
        let mut config = AttentionConfig::for_head_dim(q_bhtd.dims()[3]);
        if way == Way::Reference {
            config.execution = Execution::Reference;
        }
        if way != Way::BurnAttention {
            return Ok(tree_attention(q_bhtd, k_bgtd, v_bgtd, &self.mask, &config)?);
        }
        let [b, heads, t, _] = q_bhtd.dims();
        let mut masked = dense_mask(&self.mask);
        if !self.on_flex {
            // As its documentation asks; flex takes a mask of one head and would copy this one.
            masked = masked.expand([b, heads, t, t]);
        }
        let [k_bhtd, v_bhtd] = [k_bgtd, v_bgtd].map(|x_bgtd| repeated(x_bgtd, heads));
        Ok(attention(q_bhtd, k_bhtd, v_bhtd, Some(masked), None, AttentionModuleOptions::default()))
    }
}

/// Keys or values once for each query head: burn's attention knows no groups.
fn repeated(x_bgtd: Tensor<4>, heads: usize) -> Tensor<4> {
    let [b, groups, t, d] = x_bgtd.dims();
    if groups == heads {
        return x_bgtd;
    }
    let each = x_bgtd.reshape([b, groups, 1, t, d]).expand([b, groups, heads / groups, t, d]);
    each.reshape([b, heads, t, d])
}

/// Seeded numbers of unit variance, the same on every machine.
fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * 3f32.sqrt()
    };
    (0..len).map(|_| next()).collect()
}

/// Why a dense way does not run on the device at all, if that is what the error says; any other
/// error is a failure.
pub(crate) fn unavailable(error: &anyhow::Error) -> Option<String> {
    match error.downcast_ref() {
        Some(named @ (KernelError::Dtype { .. } | KernelError::DeviceLimit { .. })) => {
            Some(named.to_string())
        }
        _ => None,
    }
}

/// Why a way is not run at a length: its arrays of tokens x tokens would not fit.
pub(crate) fn too_large(setup: &Setup, way: Way, pass: Pass, tokens: usize) -> Option<String> {
    /// What is risked on a device whose free memory is not known.
    const RISKED: u64 = 4 << 30;
    if !way.is_dense() {
        return None;
    }
    let needed = dense_bytes(setup, way, pass, tokens);
    let (fits, room) = match (setup.on_host(), free_memory::available()) {
        (true, available) => {
            (free_memory::fits(needed, available), format!("{} are free", output::bytes(available)))
        }
        (false, _) => (
            needed <= RISKED,
            format!("{} are risked on a device that does not tell", output::bytes(RISKED)),
        ),
    };
    (!fits)
        .then(|| format!("about {} of tokens x tokens arrays, and {room}", output::bytes(needed)))
}

/// Bytes of a way's arrays of tokens x tokens at their peak, by factors that its own measurement of
/// memory finds.
fn dense_bytes(setup: &Setup, way: Way, pass: Pass, tokens: usize) -> u64 {
    let pairs = (tokens as u64).saturating_mul(tokens as u64);
    let array = pairs.saturating_mul((setup.heads * setup.dtype.bytes()) as u64);
    let on_flex = setup.device_name == DeviceName::Flex;
    let arrays = match (way, pass) {
        // burn's forward pass on flex goes by tiles; under autodiff it is plain operations.
        (Way::BurnAttention, Pass::Forward) if on_flex => 0,
        (_, Pass::Forward) => 2 - u64::from(on_flex),
        (_, Pass::ForwardBackward) => 5 - u64::from(on_flex),
    };
    array.saturating_mul(arrays).saturating_add(pairs)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::{KernelError, Pass, Way, too_large, unavailable};
    use crate::device::DeviceName;
    use crate::setup::{Dtype, Setup};
    use burn::tensor::Device;

    #[test]
    fn dense_ways_are_left_out_where_their_arrays_would_not_fit_and_tree_attention_never_is() {
        let setup = Setup {
            device_name: DeviceName::Flex,
            device: Device::flex(),
            dtype: Dtype::F32,
            heads: 8,
            kv_heads: 8,
            head_dim: 64,
            repeats: 1,
            product: 64,
        };
        for pass in Pass::ALL {
            let reason = too_large(&setup, Way::Reference, pass, 1 << 22).unwrap_or_default();
            assert!(reason.contains("GiB of tokens x tokens arrays, and"), "{reason}");
            assert_eq!(too_large(&setup, Way::Reference, pass, 64), None);
            assert_eq!(too_large(&setup, Way::Tree, pass, 1 << 22), None);
        }
    }

    #[test]
    fn only_what_a_device_does_not_do_is_left_out_and_every_other_error_is_one() {
        let (dtype, device) = (burn::tensor::DType::F16, "a CPU".to_owned());
        let dtype = KernelError::Dtype { dtype, device, advice: "float32" };
        let limit = KernelError::DeviceLimit { what: "units", needed: 2, limit: 1, advice: "wait" };
        for named in [dtype, limit] {
            assert_eq!(unavailable(&anyhow::Error::from(named.clone())), Some(named.to_string()));
        }
        for failure in
            [anyhow::Error::from(KernelError::EmptyMask), anyhow::anyhow!("the device failed")]
        {
            assert_eq!(unavailable(&failure), None, "{failure}");
        }
    }
}
