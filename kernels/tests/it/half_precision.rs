//! Contract: on a device of CubeCL that has float16 or bfloat16, attention takes and gives it and
//! sums in float32, so that its error is that of rounding the results; what a device does not have
//! is an error before launch.
use crate::oracle::{Naive, Part, Random, Target, cuda, differentiate, wgpu};
use burn::tensor::{DType, Tensor};
use pleach_kernels::{AttentionConfig, Execution, KernelError, TreeMask, tree_attention};

const HEAD_DIM: usize = 16;

/// The devices that are there, in a dtype.
fn devices(dtype: DType) -> Vec<Target> {
    let named = [("wgpu", wgpu()), ("cuda", cuda())];
    let target = |(name, device): (&str, Option<burn::tensor::Device>)| {
        Some(Target { name: format!("{name} {dtype:?}"), device: device?.autodiff(), dtype })
    };
    named.into_iter().filter_map(target).collect()
}

fn config() -> AttentionConfig {
    AttentionConfig { execution: Execution::Cube, ..AttentionConfig::for_head_dim(HEAD_DIM) }
}

fn refused(target: &Target) -> Option<KernelError> {
    let mask = TreeMask::new(&[[1]], &target.device).unwrap();
    let x = Tensor::<4>::zeros([1, 1, 1, HEAD_DIM], (&target.device, target.dtype));
    tree_attention(x.clone(), x.clone(), x, &mask, &config()).err()
}

/// Checks a problem of numbers that the dtype holds exactly, multiples of `unit`, so that only the
/// kernels round.
fn check(target: &Target, unit: f64, rounding: f64) {
    let mut random = Random(21);
    let ends = vec![random.tree(150), random.evictions(150)];
    let mut problem = Naive::random(&mut random, [4, 2, HEAD_DIM], ends);
    for values in [&mut problem.q, &mut problem.k, &mut problem.v, &mut problem.upstream] {
        values.iter_mut().for_each(|x| *x = (*x / unit).round() * unit);
    }
    let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
    let found = differentiate(&problem, target, |[q, k, v]| {
        tree_attention(q, k, v, &mask, &config()).unwrap()
    });
    let expected = problem.solve();
    for part in Part::ALL {
        let largest = expected.part(part).iter().fold(0.0f64, |max, x| max.max(x.abs()));
        for (found, expected) in found.part(part).iter().zip(expected.part(part)) {
            // One rounding of the result, and for gradients what the rounded output changes in
            // `delta`.
            let within = (found - expected).abs() <= 4.0 * rounding * largest;
            assert!(within, "{}: {part:?}: {found} instead of {expected}", target.name);
        }
    }
}

#[test]
fn half_precision_is_as_exact_as_rounding_allows_or_an_error_where_a_device_has_none() {
    for (dtype, unit, rounding) in
        [(DType::F16, 1.0 / 512.0, 1.0 / 2_048.0), (DType::BF16, 1.0 / 128.0, 1.0 / 256.0)]
    {
        for target in devices(dtype) {
            match refused(&target) {
                None => check(&target, unit, rounding),
                Some(error) => {
                    assert!(
                        matches!(error, KernelError::Dtype { dtype: found, .. } if found == dtype),
                        "{error}"
                    );
                    let device = target.device.clone().without_autodiff();
                    assert!(
                        !device.supports_dtype(dtype),
                        "{error}, but the device says that it has it"
                    );
                    eprintln!("skipped: {error}");
                }
            }
        }
    }
}
