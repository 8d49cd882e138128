//! Contract: every CubeCL kernel compiles to CUDA for compute capability 8.0, 9.0a and 10.0 without
//! spilling a register and within pinned registers and shared memory, in float32, float16 and
//! bfloat16. No GPU is needed; the tools are `tools/install_cuda_tools.sh`'s, found through
//! `PLEACH_CUDA_TOOLS`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "cuda_source/emit.rs"]
mod emit;
#[allow(dead_code, unused_imports, reason = "launching is not tested here")]
#[path = "../src/cube/kernel/mod.rs"]
mod kernel;
#[allow(dead_code, reason = "limits are not tested here")]
#[path = "../src/cube/routine.rs"]
mod routine;

use cubecl::ir::{ElemType, FloatKind};
use routine::Routine;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const ARCHITECTURES: &str = "sm_80,sm_90a,sm_100";
/// Side of the schedule's tiles.
const TILE: usize = 64;
/// Static shared memory that every CUDA device grants a cube, and software Vulkan too.
const SHARED: usize = 32 << 10;

/// Most registers of a unit: forward, query gradient, key gradient and row terms of a head
/// dimension.
///
/// A streaming multiprocessor has 65,536: at 168 three cubes of 128 units run side by side, at 255
/// two.
const REGISTERS: [(usize, [u32; 4]); 3] =
    [(64, [240, 255, 255, 64]), (128, [255, 168, 168, 64]), (256, [168, 255, 255, 64])];

/// The tools' folder, or `None` with a note on stderr.
fn tools() -> Option<PathBuf> {
    let folder = env::var_os("PLEACH_CUDA_TOOLS").map(PathBuf::from);
    if folder.is_none() {
        let required = env::var_os("PLEACH_REQUIRE_CUDA_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "PLEACH_REQUIRE_CUDA_TOOLS=1 but PLEACH_CUDA_TOOLS names no folder");
        eprintln!(
            "skipped: set PLEACH_CUDA_TOOLS to a folder filled by kernels/tools/install_cuda_tools.sh"
        );
    }
    folder
}

/// What the assembler says of one kernel on one architecture.
struct Figures {
    kernel: String,
    registers: u32,
    spilled: u32,
}

fn figures(tools: &Path, sources: &[PathBuf]) -> Vec<Figures> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/cuda_figures.py");
    let output =
        Command::new("python3").arg(script).arg(tools).arg(ARCHITECTURES).args(sources).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |field: usize| fields[field].parse::<u32>().unwrap();
        Figures {
            kernel: format!("{} on {}", fields[0], fields[1]),
            registers: number(2),
            spilled: number(4) + number(5),
        }
    };
    table.lines().map(parse).collect()
}

fn check(kind: FloatKind, name: &str, window: bool) {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (head_dim, bounds) in REGISTERS {
        let blockings = Routine::for_device().blockings(TILE, head_dim, window, SHARED);
        for ((kernel, source), bound) in
            emit::sources(&blockings, ElemType::Float(kind)).into_iter().zip(bounds)
        {
            let path = folder.path().join(format!("{kernel}-{name}-{head_dim}.cu"));
            fs::write(&path, source.text).unwrap();
            assert!(
                source.shared <= SHARED,
                "{kernel}-{name}-{head_dim} takes {} bytes of shared memory",
                source.shared
            );
            for found in figures(&tools, &[path]) {
                eprintln!(
                    "{}: {} registers, {} bytes of shared memory",
                    found.kernel, found.registers, source.shared
                );
                assert!(
                    (16..=bound).contains(&found.registers),
                    "{}: {} registers, bound {bound}",
                    found.kernel,
                    found.registers
                );
                assert_eq!(found.spilled, 0, "{} spills", found.kernel);
            }
        }
    }
}

#[test]
fn float32_kernels_spill_nothing_on_any_architecture() {
    check(FloatKind::F32, "f32", false);
    check(FloatKind::F32, "f32-window", true);
}

#[test]
fn float16_kernels_spill_nothing_on_any_architecture() {
    check(FloatKind::F16, "f16", true);
}

#[test]
fn bfloat16_kernels_spill_nothing_on_any_architecture() {
    check(FloatKind::BF16, "bf16", true);
}
