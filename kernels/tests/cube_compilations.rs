//! Contract: nothing is compiled from tree to tree. On a device of CubeCL the kernels of a head
//! dimension and dtype are compiled once, whatever the lengths, batches, head counts and schedules;
//! only another key compiles others. CubeCL's own compilation log counts.
#![cfg(feature = "wgpu")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod oracle;

use burn::tensor::DType;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig, compilation::CompilationLogLevel};
use oracle::{Naive, Random, Target, differentiate, wgpu};
use pleach_kernels::{AttentionConfig, Execution, TreeMask, tree_attention};
use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// Forward, row terms, gradients of queries, gradients of keys and values.
const KERNELS: usize = 4;

fn compiled(log: &Path) -> usize {
    let log = fs::read_to_string(log).unwrap_or_default();
    log.lines()
        .filter(|line| line.contains("Compiling kernel") && line.contains("tree_attention"))
        .count()
}

/// Waits for the log, which another thread writes in order.
fn wait_for(log: &Path, count: usize) {
    let start = Instant::now();
    while compiled(log) < count && start.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
    }
}

fn train(
    random: &mut Random,
    target: &Target,
    [time, batch, heads_kv, group, head_dim]: [usize; 5],
) {
    let ends = (0..batch).map(|_| random.tree(time)).collect();
    let problem = Naive::random(random, [heads_kv * group, heads_kv, head_dim], ends);
    let mask = TreeMask::new(&problem.ends, &target.device).unwrap();
    let config =
        AttentionConfig { execution: Execution::Cube, ..AttentionConfig::for_head_dim(head_dim) };
    differentiate(&problem, target, |[q, k, v]| tree_attention(q, k, v, &mask, &config).unwrap());
}

#[test]
fn fifty_trees_of_any_length_are_computed_by_the_kernels_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("compilations.log");
    let mut config = CubeClRuntimeConfig::default();
    config.compilation.logger.level = CompilationLogLevel::Basic;
    config.compilation.logger.file = Some(log.clone());
    assert!(
        CubeClRuntimeConfig::try_set(config),
        "nothing may use CubeCL before its log is set up"
    );
    let Some(device) = wgpu() else { return };
    let target = Target { name: "wgpu".into(), device: device.autodiff(), dtype: DType::F32 };
    let mut random = Random(11);
    for tree in 0..50 {
        train(
            &mut random,
            &target,
            [1 + (tree * 29) % 150, 1 + tree % 3, 1 + tree % 2, 1 + tree % 4, 16],
        );
    }
    wait_for(&log, KERNELS);
    assert_eq!(compiled(&log), KERNELS);
    // Another head dimension is another key: the log does see what is compiled, and once it has,
    // nothing before it is missing.
    train(&mut random, &target, [20, 1, 1, 1, 8]);
    wait_for(&log, 2 * KERNELS);
    assert_eq!(compiled(&log), 2 * KERNELS);
}
