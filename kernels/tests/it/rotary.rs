//! Contract: a rotary table rotates either pairing to explicit positions, as burn's own encoding
//! does where the two can be compared, and refuses what would rotate wrongly.
use crate::oracle::{targets, values};
use burn::{
    nn::RotaryEncodingConfig,
    tensor::{DType, Tensor, TensorData},
};
use pleach_kernels::{KernelError, Rotary, RotaryPairs};

const THETA: f64 = 100.0;

/// `theta^(-2 i / head_dim)`.
fn frequencies(head_dim: usize) -> Vec<f64> {
    (0..head_dim / 2).map(|i| THETA.powf(-2.0 * i as f64 / head_dim as f64)).collect()
}

#[test]
fn neighbours_are_rotated_as_burn_does() {
    let (heads, time, head_dim) = (2, 5, 6);
    for target in targets().iter().filter(|target| target.dtype == DType::F32) {
        let entries = (0..heads * time * head_dim).map(|at| (at as f32 * 0.37).sin());
        let shape = [1, heads, time, head_dim];
        let x_bhtd = Tensor::<4>::from_data(
            TensorData::new(entries.collect::<Vec<_>>(), shape),
            &target.device,
        );
        let encoding =
            RotaryEncodingConfig::new(time, head_dim).with_theta(THETA as f32).init(&target.device);
        let positions: Vec<i32> = (0..time as i32).collect();
        let table = Rotary::new(&[positions], &frequencies(head_dim), target.dtype, &target.device)
            .unwrap()
            .with_pairs(RotaryPairs::Neighbours);
        let found = values(table.rotate(x_bhtd.clone()).unwrap());
        let expected = values(encoding.forward(x_bhtd));
        // Angles of up to 4 radians, formed in float32 there: a few units of 4 * epsilon.
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 16.0 * f64::from(f32::EPSILON), "{}: {worst}", target.name);
    }
}

#[test]
fn the_two_pairings_differ_by_the_order_of_features_alone() {
    for target in targets() {
        let on = (&target.device, target.dtype);
        let x = |entries: [f64; 4]| {
            Tensor::<4>::from_data(TensorData::new(entries.to_vec(), [1, 1, 1, 4]), on)
        };
        let table = Rotary::new(&[[3]], &frequencies(4), target.dtype, &target.device).unwrap();
        let halves = values(table.rotate(x([1.0, 2.0, 3.0, 4.0])).unwrap());
        let neighbours = table.with_pairs(RotaryPairs::Neighbours);
        let found = values(neighbours.rotate(x([1.0, 3.0, 2.0, 4.0])).unwrap());
        assert_eq!([0, 2, 1, 3].map(|at| found[at]).to_vec(), halves, "{}", target.name);
        // (1, 3) turned by 3 radians.
        let expected = 3f64.cos() - 3.0 * 3f64.sin();
        assert!((halves[0] - expected).abs() < 8.0 * target.tolerance(), "{}", target.name);
    }
}

#[test]
fn a_scaled_table_multiplies_what_it_rotates() {
    for target in targets() {
        let table = Rotary::new(&[[3]], &frequencies(4), target.dtype, &target.device).unwrap();
        let x_bhtd = Tensor::<4>::ones([1, 1, 1, 4], (&target.device, target.dtype));
        let plain = values(table.rotate(x_bhtd.clone()).unwrap());
        let scaled = values(table.scaled(1.5).rotate(x_bhtd).unwrap());
        let near =
            |(plain, scaled): (&f64, &f64)| (plain * 1.5 - scaled).abs() < target.tolerance();
        assert!(plain.iter().zip(&scaled).all(near), "{}: {plain:?} {scaled:?}", target.name);
    }
}

#[test]
fn shorter_rows_are_padded_with_position_0() {
    let Some(target) = targets().into_iter().next() else { return };
    let table =
        Rotary::new(&[vec![1, 2], vec![7]], &frequencies(2), target.dtype, &target.device).unwrap();
    let x_bhtd = Tensor::<4>::ones([2, 1, 2, 2], (&target.device, target.dtype));
    assert_eq!(values(table.rotate(x_bhtd).unwrap())[6..], [1.0, 1.0]);
}

#[test]
fn what_would_rotate_wrongly_is_refused() {
    let all = targets();
    let Some(target) = all.first() else { return };
    let new =
        |frequencies: &[f64], dtype| Rotary::new(&[[0, 1, 2]], frequencies, dtype, &target.device);
    let table = new(&frequencies(8), target.dtype).unwrap();
    let zeros = |shape: [usize; 4]| Tensor::<4>::zeros(shape, (&target.device, target.dtype));
    assert_eq!(
        table.rotate(zeros([1, 2, 3, 6])).unwrap_err(),
        KernelError::RotaryWidth { head_dim: 6, frequencies: 4 }
    );
    assert!(matches!(table.rotate(zeros([1, 2, 4, 8])), Err(KernelError::Shape { .. })));
    assert_eq!(new(&[], target.dtype).unwrap_err(), KernelError::NoFrequencies);
    assert!(matches!(
        new(&[1.0, f64::NAN], target.dtype),
        Err(KernelError::Frequency { at: 1, .. })
    ));
    assert_eq!(
        new(&[1.0], DType::I64).unwrap_err(),
        KernelError::RotaryDtype { dtype: DType::I64 }
    );
    let double = new(&frequencies(8), DType::F64).unwrap();
    let single = Tensor::<4>::zeros([1, 1, 3, 8], (&target.device, DType::F32));
    assert_eq!(
        double.rotate(single.clone()).unwrap_err().to_string(),
        "`x` is F32 but the rotary table is F64: cast them to one dtype"
    );
    let Some(other) = all.iter().find(|other| other.device != target.device) else { return };
    let elsewhere = Rotary::new(&[[0, 1, 2]], &frequencies(8), DType::F32, &other.device).unwrap();
    let error = elsewhere.rotate(single).unwrap_err().to_string();
    assert!(
        error.starts_with("the rotary table lies on") && error.contains("but `x` on"),
        "{error}"
    );
}
