//! Contract: every error says what is wrong, with its numbers, and what to do.
use crate::oracle::{targets, wgpu};
use burn::tensor::{DType, Tensor};
use pleach_kernels::{
    AttentionConfig, Execution, KernelError, Rotary, TreeMask, ViewMask, tree_attention,
};

fn call(shapes: [[usize; 4]; 3], dtypes: [DType; 3], scale: f64) -> String {
    let target = targets().into_iter().next().unwrap();
    let mask = TreeMask::new(&[[4, 4, 4, 4]], &target.device).unwrap();
    let [q, k, v] = [0, 1, 2].map(|i| Tensor::<4>::zeros(shapes[i], (&target.device, dtypes[i])));
    let config = AttentionConfig { scale, execution: Execution::Auto };
    tree_attention(q, k, v, &mask, &config).unwrap_err().to_string()
}

const Q: [usize; 4] = [1, 4, 4, 8];
const K: [usize; 4] = [1, 2, 4, 8];
const SINGLE: [DType; 3] = [DType::F32; 3];

#[test]
fn of_masks() {
    let target = targets().into_iter().next().unwrap();
    let mask = |ends: &[Vec<i32>]| TreeMask::new(ends, &target.device);
    let error = |ends: &[Vec<i32>]| mask(ends).unwrap_err().to_string();
    assert_eq!(error(&[]), "the mask is empty: give at least one row with at least one token");
    assert_eq!(error(&[vec![2, 2], vec![]]), "row 1 has no tokens: leave it out");
    assert_eq!(
        error(&[vec![2, 0]]),
        "row 0: ends[1] = 0 lies before the token: use 1 for padding, or an index after it up to the row's length"
    );
    assert_eq!(
        error(&[vec![3, 2]]),
        "row 0: ends[0] = 3 lies beyond the row's 2 tokens: use 2 for a token that is visible to the end"
    );
    let good = mask(&[vec![2, 2]]).unwrap();
    assert_eq!(
        good.with_window(&[[0, 1], [0, 1]], 1).unwrap_err().to_string(),
        "`positions` has 2 rows, the mask has 1: give one row of `positions` per row of the mask"
    );
    assert_eq!(
        good.with_window(&[[0]], 1).unwrap_err().to_string(),
        "row 0 of `positions` has 1 entries, the row's `ends` have 2: give one for each token"
    );
    assert_eq!(
        good.with_window(&[[0, 1]], 0).unwrap_err().to_string(),
        "a sliding window of 0 tokens hides every token from itself: use at least 1, or no window"
    );
    assert_eq!(
        good.with_window(&[[-1, 0]], 1).unwrap_err().to_string(),
        "row 0: positions[0] = -1 is negative: count positions from 0 at the start of the conversation"
    );
    assert_eq!(
        KernelError::TooLong { time: 3_000_000_000 }.to_string(),
        "a row of 3000000000 tokens does not fit int32 indices: split the batch into rows below 2147483647 tokens"
    );
    assert_eq!(
        ViewMask::new(&[vec![0], vec![1, 0]], &target.device).unwrap_err().to_string(),
        "the view of row 1 is invalid at entry 0 (key 1): list each visible key once, and the row itself last"
    );
    assert_eq!(
        Rotary::new::<[i32; 1]>(&[], &[1.0], target.dtype, &target.device).unwrap_err().to_string(),
        "there are no positions to rotate to: give at least one row with at least one position"
    );
    let rotary = Rotary::new(&[[0, 1]], &[1.0], target.dtype, &target.device).unwrap();
    let found =
        rotary.rotate(Tensor::zeros([1, 1, 2, 6], (&target.device, target.dtype))).unwrap_err();
    assert_eq!(
        found.to_string(),
        "head dimension 6 does not fit 1 rotary frequencies: it must be twice their number"
    );
}

#[test]
fn of_shapes_and_heads() {
    let shape = |tensor: &str, found: [usize; 4], expected: [usize; 4]| {
        let advice = "give it the rows, heads, tokens and features of the others";
        format!("`{tensor}` has shape {found:?}, expected {expected:?}: {advice}")
    };
    assert_eq!(call([[1, 4, 5, 8], K, K], SINGLE, 1.0), shape("q", [1, 4, 5, 8], Q));
    assert_eq!(call([Q, [1, 2, 4, 6], K], SINGLE, 1.0), shape("k", [1, 2, 4, 6], K));
    assert_eq!(call([Q, K, Q], SINGLE, 1.0), shape("v", Q, K));
    let three = [1, 3, 4, 8];
    assert_eq!(
        call([Q, three, three], SINGLE, 1.0),
        "4 query heads do not divide among 3 key/value heads: heads_q must be a multiple of heads_kv"
    );
    assert_eq!(
        call([[1, 1, 4, 0]; 3], SINGLE, 1.0),
        "heads have 0 features: give q, k and v at least one"
    );
}

#[test]
fn of_dtypes_and_scales() {
    assert_eq!(
        call([Q, K, K], [DType::F64, DType::F32, DType::F64], 1.0),
        "`k` is F32 but q is F64: cast them to one dtype"
    );
    assert_eq!(
        call([Q, K, K], SINGLE, f64::NAN),
        "the attention scale is NaN: use a finite number, 1/sqrt(head_dim) as a rule"
    );
    let Some(device) = wgpu() else { return };
    let mask = TreeMask::new(&[[2, 2]], &device).unwrap();
    let x = Tensor::<4>::zeros([1, 1, 2, 8], (&device, DType::F64));
    let found = tree_attention(x.clone(), x.clone(), x, &mask, &AttentionConfig::for_head_dim(8))
        .unwrap_err();
    let advice = "use float32 (float64 is advertised there and wrong), or a CPU device";
    assert_eq!(
        found.to_string(),
        format!("attention in F64 is not available on {device:?}: {advice}")
    );
}

#[test]
fn of_limits() {
    assert_eq!(
        KernelError::HeadDim { head_dim: 300, largest: 256 }.to_string(),
        "heads have 300 features, the kernels of this device take up to 256: use Execution::Reference"
    );
    let (what, advice) = ("units in a cube", "use Execution::Reference, or another device");
    assert_eq!(
        KernelError::DeviceLimit { what, needed: 256, limit: 128, advice }.to_string(),
        "attention needs 256 units in a cube, the device has 128: use Execution::Reference, or another device"
    );
    assert_eq!(
        KernelError::TooManyTiles { rows: 64, keys: 64 }.to_string(),
        "tiles of 64 x 64 tokens give more than 2^32 - 1 live tiles: use greater tiles or fewer rows at once"
    );
}

#[test]
fn of_heads_that_no_kernel_of_the_device_takes() {
    let Some(device) = wgpu() else { return };
    let mask = TreeMask::new(&[[2, 2]], &device).unwrap();
    let x = Tensor::<4>::zeros([1, 1, 2, 300], (&device, DType::F32));
    let found = tree_attention(x.clone(), x.clone(), x, &mask, &AttentionConfig::for_head_dim(300))
        .unwrap_err();
    assert_eq!(found, KernelError::HeadDim { head_dim: 300, largest: 256 });
}

#[test]
fn of_devices() {
    let targets = targets();
    let Some(other) = targets.iter().find(|target| target.device != targets[0].device) else {
        eprintln!("skipped: fewer than two devices are built in and present");
        return;
    };
    let mask = TreeMask::new(&[[2, 2]], &other.device).unwrap();
    let x = Tensor::<4>::zeros([1, 1, 2, 8], (&targets[0].device, DType::F32));
    let found = tree_attention(x.clone(), x.clone(), x, &mask, &AttentionConfig::for_head_dim(8))
        .unwrap_err();
    let KernelError::Device { tensor: "q", of: "the mask", expected: mask, found: device } = &found
    else {
        panic!("{found}")
    };
    let expected =
        format!("the mask lies on {mask} but `q` on {device}: put both on the device of the model");
    assert_eq!(found.to_string(), expected);
    assert_ne!(mask, device);
}
