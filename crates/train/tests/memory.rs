//! Contract: the memory estimate is within a third of the real peak of a CPU device, so that refusing by it refuses the right things.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "a counting allocator is the only way to see the peak")]
mod fixtures;

use fixtures::causal;
use pleach_train::{
    Decoder, DecoderConfig, DeviceName, Family, MemoryEstimate, Precision, Workload, evaluate, log_probabilities,
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

// SAFETY: every call is passed on to the system allocator unchanged; the counters are atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's layout is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn shape(time: usize, layers: usize, vocabulary: usize) -> (DecoderConfig, Vec<u32>) {
    let mut config = DecoderConfig::small(Family::Llama, vocabulary, layers);
    config.hidden_size = 64;
    config.intermediate_size = 160;
    config.head_dim = 16;
    let tokens = (0..time).map(|index| (index * 7 % vocabulary) as u32).collect();
    (config, tokens)
}

/// Peak bytes above what was live before, and the estimate.
fn measure(time: usize, layers: usize, vocabulary: usize, gradients: bool) -> (f64, f64, MemoryEstimate) {
    let (config, tokens) = shape(time, layers, vocabulary);
    let precision = Precision::F32;
    let device = DeviceName::ALL.into_iter().find_map(|name| name.open().ok()).unwrap();
    let sequences = [causal(&tokens)];
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let model = Decoder::seeded(config.clone(), 1, precision, &device).unwrap();
    match gradients {
        true => drop(evaluate(&model, &sequences, &mut |_| {}).unwrap()),
        false => drop(log_probabilities(&model, &sequences, &mut |_| {}).unwrap()),
    }
    let real = PEAK.load(Relaxed) - before;
    let workload = Workload::of(&sequences)[0];
    let estimate = MemoryEstimate::new(&config, precision, workload, gradients);
    (real as f64, estimate.total() as f64, estimate)
}

#[test]
fn the_estimate_is_within_a_third_of_the_real_peak() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let mut wrong = Vec::new();
    for (time, layers, vocabulary) in [(768, 2, 64), (512, 4, 64), (64, 6, 64), (128, 2, 8192), (256, 1, 32768), (16, 32, 64)] {
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

#[test]
fn logits_of_one_chunk_exist_at_a_time() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let (real, _, _) = measure(1024, 1, 16384, true);
    let (half, _, _) = measure(512, 1, 16384, true);
    let all_logits = 512.0 * 16384.0 * 4.0;
    let attention = 4.0 * (1024.0f64.powi(2) - 512.0f64.powi(2)) * 4.0;
    let growth = real - half - 6.0 * attention;
    assert!(growth < 0.5 * all_logits, "512 more terms cost {growth:.2e} bytes, their logits are {all_logits:.2e}");
}
