//! Contract: a batch pads rows so that padding sees nothing and nobody sees it, and refuses
//! sequences that cannot be.

use crate::fixtures::causal;
use burn::tensor::Device;
use pleach_kernels::KernelError;
use pleach_layout::Sequence;
use pleach_train::{
    Batch, CausalModel, Decoder, DecoderConfig, DeviceName, Family, Precision, TrainError,
};

fn device() -> Device {
    DeviceName::ALL.into_iter().find_map(|name| name.open().ok()).unwrap()
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
    assert_eq!(batch.mask().row_ends(0), Some(&[2, 2, 2, 3][..]));
    assert_eq!(batch.position_rows(), [[0, 1, 0, 0], [0, 1, 2, 3]]);
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
        batch.windowed_mask(window).unwrap().row_positions(0).map(<[i32]>::as_ptr)
    };
    assert_eq!(batch.windowed_mask(2).unwrap().window(), Some(2));
    assert_eq!(batch.windowed_mask(2).unwrap().row_positions(1), Some(&[0, 1, 0, 0][..]));
    assert_eq!(plan(&batch, 2), plan(&batch, 2));
    assert_eq!(plan(&batch, 2), plan(&batch.clone(), 2));
    assert_ne!(plan(&batch, 2), plan(&batch, 3));
    assert_eq!(batch.windowed_mask(3).unwrap().window(), Some(3));
    assert_eq!(batch.windowed_mask(0).unwrap_err(), TrainError::Kernel(KernelError::EmptyWindow));
}

#[test]
fn a_token_outside_the_vocabulary_is_an_error_and_no_panic() {
    let config = DecoderConfig::small(Family::Llama, 10, 1);
    let model = Decoder::seeded(config, 1, Precision::F32, &device()).unwrap();
    let batch = Batch::new(&[&causal(&[1, 10])], &device()).unwrap();
    let found = model.hidden(&batch).unwrap_err();
    assert_eq!(found, TrainError::Vocabulary { token: 10, vocabulary: 10 });
    assert!(found.to_string().contains("tokenize with the tokenizer of this checkpoint"));
}
