//! Contract: a batch pads rows so that padding sees nothing and nobody sees it, and refuses
//! sequences that cannot be.

use crate::fixtures::device::cpu;
use crate::fixtures::{
    causal,
    table::{self, Table, VOCABULARY},
};
use burn::tensor::DType;
use burn::tensor::Device;
use pleach_kernels::KernelError;
use pleach_layout::Sequence;
use pleach_train::{
    Batch, CausalModel, TrainError,
    decoder::{Decoder, DecoderConfig, Family},
    objective::NllConfig,
};

fn device() -> Device {
    cpu()
}

fn refuse(change: impl Fn(&mut Sequence)) -> TrainError {
    let mut sequence = causal(&[1, 2, 3]);
    change(&mut sequence);
    Batch::new(&[&causal(&[1, 2, 3, 4, 5]), &sequence], &device()).unwrap_err()
}

#[test]
fn rows_are_padded_to_the_longest() {
    let batch = Batch::new(&[&causal(&[9, 8]), &causal(&[1, 2, 3, 4])], &device()).unwrap();
    assert_eq!(batch.dims(), [2, 4]);
    assert_eq!(batch.mask().rows().row(0).unwrap().ends, [2, 2, 2, 3]);
    assert_eq!(batch.position_rows(), [vec![0, 1], vec![0, 1, 2, 3]]);
    assert_eq!(
        batch.tokens_bt().into_data().iter::<i64>().collect::<Vec<_>>(),
        [9, 8, 0, 0, 1, 2, 3, 4]
    );
    assert_eq!(batch.terms().sources, [0, 4, 5, 6]);
    assert_eq!(batch.terms().targets, [8, 2, 3, 4]);
    assert_eq!(batch.largest_token(), 9);
}

#[test]
fn sequences_that_cannot_be_are_refused() {
    assert_eq!(
        Batch::new(&[] as &[Sequence], &device()).unwrap_err(),
        TrainError::EmptyRow { row: 0 }
    );
    assert_eq!(refuse(|s| *s = Sequence::default()), TrainError::EmptyRow { row: 1 });
    assert_eq!(
        refuse(|s| s.positions.clear()),
        TrainError::ArrayLength { row: 1, array: "positions", tokens: 3, found: 0 }
    );
    assert_eq!(
        refuse(|s| s.ends.truncate(2)),
        TrainError::ArrayLength { row: 1, array: "ends", tokens: 3, found: 2 }
    );
    assert!(matches!(
        refuse(|s| s.terms[0].source = 3),
        TrainError::TermSource { row: 1, source_index: 3, tokens: 3, .. }
    ));
    let before = KernelError::EndBeforeToken { row: 1, token: 2, end: 1 };
    assert_eq!(refuse(|s| s.ends[2] = 1), TrainError::Kernel(before));
}

#[test]
fn an_end_inside_the_padding_is_refused() {
    let beyond = KernelError::EndBeyondRow { row: 1, token: 0, end: 4, time: 3 };
    assert_eq!(refuse(|s| s.ends[0] = 4), TrainError::Kernel(beyond));
}

#[test]
fn a_windowed_mask_is_planned_once_per_batch() {
    let batch = Batch::new(&[&causal(&[1, 2, 3, 4]), &causal(&[5, 6])], &device()).unwrap();
    let plan = |batch: &Batch, window| {
        batch
            .windowed_mask(window)
            .unwrap()
            .rows()
            .row(0)
            .unwrap()
            .window
            .unwrap()
            .positions
            .as_ptr()
    };
    assert_eq!(batch.windowed_mask(2).unwrap().window(), Some(2));
    assert_eq!(
        batch.windowed_mask(2).unwrap().rows().row(1).unwrap().window.unwrap().positions,
        [0, 1, 0, 0]
    );
    assert_eq!(plan(&batch, 2), plan(&batch, 2));
    assert_eq!(plan(&batch, 2), plan(&batch.clone(), 2));
    assert_ne!(plan(&batch, 2), plan(&batch, 3));
    assert_eq!(batch.windowed_mask(3).unwrap().window(), Some(3));
    assert_eq!(batch.windowed_mask(0).unwrap_err(), TrainError::Kernel(KernelError::EmptyWindow));
}

#[test]
fn a_token_outside_the_vocabulary_is_an_error_and_no_panic() {
    let config = DecoderConfig::small(Family::Llama, 10, 1);
    let model = Decoder::seeded(config, 1, DType::F32, &device()).unwrap();
    let batch = Batch::new(&[&causal(&[1, 10])], &device()).unwrap();
    let found = model.hidden(&batch).unwrap_err();
    assert_eq!(found, TrainError::Vocabulary { token: 10, vocabulary: 10 });
    assert!(found.to_string().contains("tokenize with the tokenizer of this checkpoint"));
}

#[test]
fn a_token_beyond_the_models_vocabulary_is_refused_before_the_model_runs() {
    let beyond = Batch::new([&causal(&[1, VOCABULARY as u32, 2])], &table::device()).unwrap();
    let table = Table::seeded(1);
    let found = NllConfig::new().init().forward(&table, &beyond).unwrap_err();
    assert_eq!(found, TrainError::Vocabulary { token: VOCABULARY as u32, vocabulary: VOCABULARY });
    assert_eq!(beyond.check_vocabulary(VOCABULARY + 1), Ok(()));
}

#[test]
fn positions_before_0_and_weights_that_are_no_numbers_are_refused_by_name() {
    let mut before = causal(&[1, 2, 3]);
    before.positions[1] = -1;
    let found = Batch::new([&before], &device()).unwrap_err().to_string();
    assert!(found.contains("positions[1] = -1 is negative"), "{found}");
    let mut nameless = causal(&[1, 2, 3]);
    nameless.terms[1].weight = f64::NAN;
    let found = Batch::new([&nameless], &device()).unwrap_err().to_string();
    assert!(found.contains("loss weight") && found.contains("NaN"), "{found}");
}

#[cfg(all(feature = "flex", feature = "ndarray"))]
#[test]
#[allow(deprecated, reason = "the second CPU device is what this is about")]
fn a_batch_on_another_device_than_the_model_is_an_error_and_no_panic() {
    use burn::tensor::Device;
    let table = Table::seeded(1);
    let other = match format!("{:?}", table::device()).to_lowercase().contains("flex") {
        true => Device::ndarray(),
        false => Device::flex(),
    };
    let batch = Batch::new([&causal(&[1, 2, 3])], &other).unwrap();
    let found = NllConfig::new().init().forward(&table, &batch).unwrap_err();
    assert!(matches!(found, TrainError::BatchDevice { .. }), "{found}");
}

#[test]
fn rotary_embeddings_of_a_batch_are_those_of_its_positions() {
    use burn::tensor::{DType, Tensor};
    let batch = Batch::new([&causal(&[1, 2, 3])], &device()).unwrap();
    let x_bhtd = Tensor::<4>::ones([1, 1, 3, 4], (&device(), DType::F64));
    let rotated = batch.rotary(4, 100.0, DType::F64).unwrap().rotate(x_bhtd.clone()).unwrap();
    let found = rotated.into_data().try_to_vec::<f64>().unwrap();
    let expected = |position: f64, frequency: f64| {
        let (sin, cos) = (position * frequency).sin_cos();
        (cos - sin, cos + sin)
    };
    for position in 0..3 {
        for (pair, frequency) in [1.0, 0.1].into_iter().enumerate() {
            let (first, second) = expected(position as f64, frequency);
            assert!((found[4 * position + pair] - first).abs() < 1e-15);
            assert!((found[4 * position + pair + 2] - second).abs() < 1e-15);
        }
    }
    assert!(batch.rotary(3, 100.0, DType::F64).is_err());
    assert!(batch.rotary(4, f64::NAN, DType::F64).is_err());
    assert!(batch.rotary(4, 100.0, DType::I64).is_err());
    let table = batch.rotary(4, 100.0, DType::F32).unwrap();
    let found = table.rotate(x_bhtd).unwrap_err().to_string();
    assert!(found.contains("cast"), "{found}");
}
