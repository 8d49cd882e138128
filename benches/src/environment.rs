use std::process::Command;

use serde::Serialize;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::setup::{Dtype, Setup};

/// What figures hold for.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Environment {
    pub(crate) version: &'static str,
    /// The checkout that the command ran in, if it is one of this project.
    pub(crate) commit: Option<String>,
    pub(crate) date: String,
    pub(crate) command: String,
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) system: String,
    /// Processes that wanted a core in the minute before, on average.
    pub(crate) load_average: f64,
    pub(crate) device: &'static str,
    /// What the device calls itself, if it is no CPU.
    pub(crate) device_description: Option<String>,
    pub(crate) dtype: Dtype,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) product: usize,
}

impl Environment {
    pub(crate) fn of(setup: &Setup) -> Self {
        let kinds = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::everything());
        let system = System::new_with_specifics(kinds);
        let cpu = system.cpus().first().map_or("unknown", |cpu| cpu.brand().trim()).to_owned();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            date: jiff::Timestamp::now().strftime("%F").to_string(),
            command: command(),
            cpu,
            cores: system.cpus().len(),
            threads: rayon::current_num_threads(),
            memory_bytes: system.total_memory(),
            system: System::long_os_version().unwrap_or_else(|| std::env::consts::OS.to_owned()),
            load_average: System::load_average().one,
            device: setup.device_name.name(),
            device_description: describe(setup),
            dtype: setup.dtype,
            heads: setup.heads,
            kv_heads: setup.kv_heads,
            head_dim: setup.head_dim,
            product: setup.product,
        }
    }
}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn describe(setup: &Setup) -> Option<String> {
    match setup.on_host() {
        true => None,
        false => setup.device.identity().map(|identity| identity.name),
    }
}

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
fn describe(_setup: &Setup) -> Option<String> {
    None
}

/// The commit of the checkout around the working folder, if this program is made there.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(args)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let root = git(&["rev-parse", "--show-toplevel"])?;
    if !std::path::Path::new(&root).join("crates/cli/src/bench").is_dir() {
        return None;
    }
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changes| !changes.is_empty());
    Some(if changed { format!("{commit} with changes") } else { commit })
}

/// The command line as one would type it.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| match word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word,
    });
    ["pleach-bench".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
