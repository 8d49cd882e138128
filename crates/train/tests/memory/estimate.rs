//! Contract: the memory estimate is within a third of the real peak of a CPU device, so that
//! refusing by it refuses the right things.
use crate::fixtures::{causal, device::cpu};
use crate::{ALLOCATED, ONE_AT_A_TIME, peak};
use burn::tensor::DType;
use pleach_layout::Sequence;
use pleach_train::{
    decoder::{Decoder, DecoderConfig, Family},
    diagnostics::{Union, union_log_probabilities},
    evaluation::{evaluate, log_probabilities, replay},
    memory::{MemoryEstimate, Workload},
};

fn shape(time: usize, layers: usize, vocabulary: usize) -> (DecoderConfig, Vec<u32>) {
    let mut config = DecoderConfig::small(Family::Llama, vocabulary, layers);
    config.hidden_size = 64;
    config.intermediate_size = 160;
    config.head_dim = 16;
    let tokens = (0..time).map(|index| (index * 7 % vocabulary) as u32).collect();
    (config, tokens)
}

fn seeded(config: &DecoderConfig) -> Decoder {
    let device = cpu();
    Decoder::seeded(config.clone(), 1, DType::F32, &device).unwrap()
}

/// Peak bytes above what was live before, and the estimate.
fn measure(
    time: usize,
    layers: usize,
    vocabulary: usize,
    gradients: bool,
) -> (f64, f64, MemoryEstimate) {
    let (config, tokens) = shape(time, layers, vocabulary);
    let sequences = [causal(&tokens)];
    let real = peak(|| {
        let model = seeded(&config);
        match gradients {
            true => drop(evaluate(&model, &sequences, &mut |_| {}).unwrap()),
            false => drop(log_probabilities(&model, &sequences, &mut |_| {}).unwrap()),
        }
    });
    let workload = Workload::of(&sequences)[0];
    let estimate = MemoryEstimate::new(&config, DType::F32, workload, gradients);
    (real, estimate.total() as f64, estimate)
}

#[test]
fn the_estimate_is_within_a_third_of_the_real_peak() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let mut wrong = Vec::new();
    for (time, layers, vocabulary) in
        [(768, 2, 64), (512, 4, 64), (64, 6, 64), (128, 2, 8192), (256, 1, 32768), (16, 32, 64)]
    {
        for gradients in [true, false] {
            let (real, estimated, parts) = measure(time, layers, vocabulary, gradients);
            let ratio = estimated / real;
            let line = format!(
                "T {time}, {layers} layers, vocabulary {vocabulary}, gradients {gradients}: {ratio:.2} of {real:.2e}, {parts:?}"
            );
            eprintln!("{line}");
            if !(0.75..=1.34).contains(&ratio) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn assert_within_a_third(context: &str, real: f64, estimate: MemoryEstimate) {
    let ratio = estimate.total() as f64 / real;
    eprintln!("{context}: {ratio:.2} of {real:.2e}, {estimate:?}");
    assert!((0.75..=1.34).contains(&ratio), "{context}: {ratio:.2} of {real:.2e}, {estimate:?}");
}

#[test]
fn gradients_of_batches_and_evaluations_before_are_counted() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let (config, tokens) = shape(520, 1, 32768);
    let mut sequence = causal(&tokens);
    sequence.terms.truncate(8);
    let model = seeded(&config);
    let sequences = vec![sequence; 3];
    let run = |count: usize| peak(|| evaluate(&model, &sequences[..count], &mut |_| {}).unwrap());
    // The first run starts threads, which keep room for the blocks of their products.
    run(1);
    let growth = run(3) - run(1);
    let map = 8 * config.parameters();
    assert!(
        (0.9..=1.1).contains(&(growth / map as f64)),
        "{growth:.2e} more for two more batches, a map is {map} bytes"
    );
    let before = ALLOCATED.current_usage();
    let kept = evaluate(&model, &sequences, &mut |_| {}).unwrap();
    let held = ALLOCATED.current_usage() - before;
    assert!(
        (0.9..=1.1).contains(&(held as f64 / map as f64)),
        "{held} bytes are kept, a map is {map}"
    );
    drop(kept);
    let estimate = |count: usize| {
        let workload = Workload::of(&sequences[..count])[0];
        MemoryEstimate::new(&config, DType::F32, workload, true)
    };
    assert_eq!(estimate(3).total(), estimate(1).total() + map);
    assert_eq!(estimate(1).beside_gradients(&config, 2).total(), estimate(1).total() + 2 * map);
}

#[test]
fn the_estimate_of_a_replay_is_within_a_third_of_the_real_peak() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    for (time, life, width) in [(96, 96, 64), (96, 24, 64), (96, 24, 256)] {
        let (mut config, tokens) = shape(time, 2, 64);
        (config.kv_heads, config.head_dim, config.hidden_size, config.intermediate_size) =
            (4, 64, width, 4 * width);
        let ends: Vec<i32> = (0..time).map(|token| time.min(token + life) as i32).collect();
        let pairs = ends.iter().zip(0..).map(|(&end, token)| (end - token) as u64).sum();
        let tape = Sequence { ends, ..causal(&tokens) };
        let real = peak(|| replay(&seeded(&config), std::slice::from_ref(&tape)).unwrap());
        let workload = Workload::of(std::slice::from_ref(&tape))[0];
        let estimate = MemoryEstimate::replay(&config, DType::F32, workload, pairs);
        assert_within_a_third(
            &format!("replay of {time} tokens that live for {life}, width {width}"),
            real,
            estimate,
        );
    }
}

#[test]
fn the_estimate_of_a_union_is_within_a_third_of_the_real_peak() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let (config, tokens) = shape(768, 2, 64);
    let real = peak(|| {
        let visible = (0..tokens.len() as u32).map(|row| (0..=row).collect()).collect();
        let union = Union { tokens: tokens.clone(), visible, terms: causal(&tokens).terms };
        union_log_probabilities(&seeded(&config), &union).unwrap()
    });
    let workload = Workload::of_sizes(&[(tokens.len(), tokens.len() - 1)])[0];
    assert_within_a_third("union", real, MemoryEstimate::union(&config, DType::F32, workload));
}

#[test]
fn sizes_suffice_to_know_the_batches() {
    let batch = |rows, time, terms| Workload { rows, time, terms, batches: 3 };
    let sizes = [(0, 0), (512, 3), (10, 1), (0, 0), (300, 2), (301, 4)];
    let expected = [batch(1, 512, 3), batch(2, 300, 3), batch(1, 301, 4)];
    assert_eq!(Workload::of_sizes(&sizes), expected);
    let sequences = sizes.map(|(tokens, terms)| {
        let mut sequence = causal(&vec![1; tokens]);
        sequence.terms.truncate(terms);
        sequence
    });
    assert_eq!(Workload::of(&sequences), expected);
    assert_eq!(Workload::of_sizes(&[(0, 0)]), []);
}

#[test]
fn logits_of_one_chunk_exist_at_a_time() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let (real, _, _) = measure(1024, 1, 16384, true);
    let (half, _, _) = measure(512, 1, 16384, true);
    let all_logits = 512.0 * 16384.0 * 4.0;
    let growth = real - half;
    assert!(
        growth < 0.5 * all_logits,
        "512 more terms cost {growth:.2e} bytes, their logits are {all_logits:.2e}"
    );
}
