//! Contract: nothing of size tokens x tokens exists in the CPU kernels, forward or backward: their
//! memory grows with the tokens, and stays far below one such array. (One test, for the count is of
//! the whole process.)
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod oracle;

use oracle::{Naive, Random, Runner, kernels};
use peak_alloc::PeakAlloc;
use pleach_kernels::Execution;
use pleach_kernels::problem::NamedProblem;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Bytes beyond the problem itself at the worst moment of a forward and a backward pass.
fn peak(runner: &Runner, named: NamedProblem, time: usize) -> usize {
    let mut random = Random(1);
    let problem = Naive::random(&mut random, [2, 1, 32], vec![named.tree(time).ends]);
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let found = runner.run(&problem);
    assert!(found.o.iter().chain(&found.dk).all(|x| x.is_finite()));
    ALLOCATED.peak_usage() - before
}

#[test]
fn memory_grows_with_the_tokens_and_not_with_their_square() {
    for kernel in kernels().into_iter().filter(|kernel| kernel.is_single() && !kernel.compiles()) {
        let Runner { target, .. } = &kernel;
        let target = oracle::Target {
            name: target.name.clone(),
            device: target.device.clone(),
            dtype: target.dtype,
        };
        let dense = Runner { target, execution: Execution::Reference };
        let seen = peak(&dense, NamedProblem::Fold, 1_024);
        assert!(
            seen > 1_024 * 1_024 * 4,
            "the count must notice a dense array: {seen} bytes on {}",
            dense.name()
        );
        for named in [NamedProblem::Causal, NamedProblem::Fold, NamedProblem::Caterpillar] {
            // Threads and pools are made on the first call.
            peak(&kernel, named, 512);
            let [half, whole] = [2_048, 4_096].map(|time| peak(&kernel, named, time));
            let one_array = 4_096 * 4_096 * 4;
            assert!(4 * whole < one_array, "{named} on {}: {} MiB", kernel.name(), whole / MIB);
            assert!(
                10 * whole < 23 * half,
                "{named} on {}: {half} bytes, twice the tokens {whole}",
                kernel.name()
            );
        }
    }
}
