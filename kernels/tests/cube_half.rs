//! Contract: on a device of CubeCL that has float16, attention takes and gives float16 and sums in float32, so that its error is that
//! of rounding the results; what a device does not have is an error before launch.
#![cfg(feature = "wgpu")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod oracle;

use burn::tensor::{DType, Tensor};
use oracle::{Naive, Part, Random, Target, differentiate, wgpu};
use pleach_kernels::{AttentionConfig, Execution, KernelError, TreeMask, tree_attention};

const HEAD_DIM: usize = 16;
const ROUNDING: f64 = 1.0 / 2048.0;

fn config() -> AttentionConfig {
    AttentionConfig { execution: Execution::Cube, ..AttentionConfig::for_head_dim(HEAD_DIM) }
}

fn refused(target: &Target) -> Option<KernelError> {
    let mask = TreeMask::new(&[[1]], &target.device).unwrap();
    let x = Tensor::<4>::zeros([1, 1, 1, HEAD_DIM], (&target.device, target.dtype));
    tree_attention(x.clone(), x.clone(), x, &mask, &config()).err()
}

#[test]
fn float16_is_as_exact_as_rounding_allows() {
    let Some(device) = wgpu() else { return };
    let target = Target { name: "wgpu F16".into(), device: device.autodiff(), dtype: DType::F16 };
    if let Some(error) = refused(&target) {
        assert!(matches!(error, KernelError::Dtype { dtype: DType::F16, .. }), "{error}");
        eprintln!("skipped: {error}");
        return;
    }
    let mut random = Random(21);
    let ends = vec![random.tree(150), random.evictions(150)];
    let mut problem = Naive::random(&mut random, [4, 2, HEAD_DIM], ends);
    // Numbers that float16 holds exactly, so that only the kernels round.
    for values in [&mut problem.q, &mut problem.k, &mut problem.v, &mut problem.upstream] {
        values.iter_mut().for_each(|x| *x = (*x * 512.0).round() / 512.0);
    }
    let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
    let found = differentiate(&problem, &target, |[q, k, v]| tree_attention(q, k, v, &mask, &config()).unwrap());
    let expected = problem.solve();
    for part in Part::ALL {
        let largest = expected.part(part).iter().fold(0.0f64, |max, x| max.max(x.abs()));
        for (found, expected) in found.part(part).iter().zip(expected.part(part)) {
            // One rounding of the result, and for gradients what the rounded output changes in `delta`.
            assert!((found - expected).abs() <= 4.0 * ROUNDING * largest, "{part:?}: {found} instead of {expected}");
        }
    }
}

#[test]
fn bfloat16_is_refused_where_the_device_has_none() {
    let Some(device) = wgpu() else { return };
    let target = Target { name: "wgpu BF16".into(), device, dtype: DType::BF16 };
    let supported = target.device.supports_dtype(DType::BF16);
    assert_eq!(refused(&target).is_none(), supported);
}
