//! Contract: tensors that do not fit each other, the mask or the device are an error before any
//! launch, whatever the execution, and never a fallback.
use crate::oracle::{Target, targets, wgpu};
use burn::tensor::{DType, Tensor};
use pleach_kernels::{AttentionConfig, Execution, KernelError, TreeMask, tree_attention};

fn attempt(
    target: &Target,
    shapes: [[usize; 4]; 3],
    dtypes: [DType; 3],
    scale: f64,
) -> KernelError {
    let mask = TreeMask::new(&[[4, 4, 4, 4]], &target.device).unwrap();
    let [q, k, v] = [0, 1, 2].map(|i| Tensor::<4>::zeros(shapes[i], (&target.device, dtypes[i])));
    let run = |execution| {
        let config = AttentionConfig { scale, execution };
        tree_attention(q.clone(), k.clone(), v.clone(), &mask, &config).unwrap_err()
    };
    let found = run(Execution::Auto);
    let dense = run(Execution::Reference);
    assert_eq!(
        format!("{found:?}"),
        format!("{dense:?}"),
        "an error of the call, not of what would compute it"
    );
    found
}

const Q: [usize; 4] = [1, 4, 4, 8];
const K: [usize; 4] = [1, 2, 4, 8];

#[test]
fn shapes_that_disagree_are_refused() {
    for target in targets() {
        let dtypes = [target.dtype; 3];
        let shape = |tensor, expected: [usize; 4], found: [usize; 4]| KernelError::Shape {
            tensor,
            expected: expected.to_vec(),
            found: found.to_vec(),
        };
        assert_eq!(
            attempt(&target, [[1, 4, 5, 8], K, K], dtypes, 1.0),
            shape("q", Q, [1, 4, 5, 8])
        );
        assert_eq!(
            attempt(&target, [[2, 4, 4, 8], K, K], dtypes, 1.0),
            shape("q", Q, [2, 4, 4, 8])
        );
        assert_eq!(
            attempt(&target, [Q, [1, 2, 4, 6], K], dtypes, 1.0),
            shape("k", K, [1, 2, 4, 6])
        );
        assert_eq!(
            attempt(&target, [Q, K, [1, 4, 4, 8]], dtypes, 1.0),
            shape("v", K, [1, 4, 4, 8])
        );
    }
}

#[test]
fn query_heads_that_do_not_divide_are_refused() {
    for target in targets() {
        let dtypes = [target.dtype; 3];
        let three = [1, 3, 4, 8];
        let found = attempt(&target, [Q, three, three], dtypes, 1.0);
        assert_eq!(found, KernelError::Heads { heads_q: 4, heads_kv: 3 });
        let found = attempt(&target, [[1, 1, 4, 8], K, K], dtypes, 1.0);
        assert_eq!(found, KernelError::Heads { heads_q: 1, heads_kv: 2 });
    }
}

#[test]
fn heads_without_features_are_refused() {
    for target in targets().into_iter().filter(|target| !target.compiles()) {
        let found =
            attempt(&target, [[1, 4, 4, 0], [1, 2, 4, 0], [1, 2, 4, 0]], [target.dtype; 3], 1.0);
        assert_eq!(found, KernelError::NoFeatures);
    }
}

#[test]
fn mixed_dtypes_and_scales_that_are_no_finite_number_are_refused() {
    for target in targets().into_iter().filter(|target| target.dtype == DType::F64) {
        let mixed = [DType::F64, DType::F32, DType::F64];
        let found = attempt(&target, [Q, K, K], mixed, 1.0);
        assert!(matches!(found, KernelError::MixedDtypes { tensor: "k", .. }), "{found}");
        for scale in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let found = attempt(&target, [Q, K, K], [DType::F64; 3], scale);
            assert!(matches!(found, KernelError::Scale { .. }), "{found}");
        }
    }
}

#[test]
fn half_precision_is_refused_on_cpu_devices() {
    // A tensor of half precision cannot even be made on ndarray.
    for target in targets().into_iter().filter(|target| target.name.starts_with("flex")) {
        for dtype in [DType::F16, DType::BF16] {
            let found = attempt(&target, [Q, K, K], [dtype; 3], 1.0);
            assert!(
                matches!(found, KernelError::Dtype { dtype: refused, .. } if refused == dtype),
                "{found}"
            );
        }
    }
}

#[test]
fn float64_on_wgpu_is_refused() {
    let Some(device) = wgpu() else { return };
    let target = Target { name: "wgpu".to_owned(), device, dtype: DType::F64 };
    let found = attempt(&target, [Q, K, K], [DType::F64; 3], 1.0);
    assert!(matches!(found, KernelError::Dtype { dtype: DType::F64, .. }), "{found}");
    assert!(found.to_string().contains("use float32"), "{found}");
}

#[test]
fn tensors_on_another_device_than_the_mask_are_refused() {
    let targets = targets();
    if targets.iter().all(|target| target.device == targets[0].device) {
        eprintln!("skipped: fewer than two devices are built in and present");
    }
    for (i, target) in targets.iter().enumerate() {
        for other in targets[i..].iter().filter(|other| other.device != target.device) {
            let mask = TreeMask::new(&[[4, 4, 4, 4]], &target.device).unwrap();
            let (dtype, config) = (DType::F32, AttentionConfig::for_head_dim(8));
            for (moved, strays) in [("q", [0, 1, 2].as_slice()), ("k", &[1]), ("v", &[2])] {
                let device =
                    |i: usize| if strays.contains(&i) { &other.device } else { &target.device };
                let [q, k, v] =
                    [0, 1, 2].map(|i| Tensor::<4>::zeros([Q, K, K][i], (device(i), dtype)));
                let found = tree_attention(q, k, v, &mask, &config);
                assert!(
                    matches!(found, Err(KernelError::Device { tensor, .. }) if tensor == moved),
                    "{moved}"
                );
            }
        }
    }
}
