//! The most memory of each way, measured in a process of its own so that the clocked one keeps its
//! allocator.
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use burn::tensor::Device;
use burn::tensor::Tensor;
use pleach_kernels::problem::NamedProblem;
use serde::{Deserialize, Serialize};

use crate::clock::sync;
use crate::inputs::{Inputs, Pass, Way, too_large, unavailable};
use crate::setup::Setup;

/// What makes the allocator hand every array back to the system as soon as it is freed.
const HAND_BACK: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");

/// Tokens of the run before the measured one, which starts threads and fills pools.
const WARM_UP_TOKENS: usize = 256;

/// The peak of one way, beyond queries, keys, values, the output and the gradients of all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Peak {
    pub(crate) problem: String,
    pub(crate) tokens: usize,
    pub(crate) way: Way,
    pub(crate) pass: Pass,
    pub(crate) peak_bytes: u64,
}

/// Peaks, and how they were measured or why not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peaks {
    pub(crate) method: String,
    pub(crate) rows: Vec<Peak>,
}

impl Peaks {
    /// Measures all ways at `tokens` and tree attention at `memory_tokens`, in another process of
    /// this program.
    pub(crate) fn of_own_process(
        setup: &Setup,
        problems: &[NamedProblem],
        tokens: &[usize],
        memory_tokens: &[usize],
    ) -> Result<Self> {
        let method = match Meter::of(setup) {
            Meter::Resident if !cfg!(target_os = "linux") => {
                return Ok(Self {
                    method: "n/a: read from /proc/self, which only Linux has".into(),
                    rows: Vec::new(),
                });
            }
            Meter::Resident => "resident pages of a process of its own",
            Meter::Pools => {
                "an upper bound: pages that the device's pools hold in a process of its own"
            }
        };
        let list =
            |lengths: &[usize]| lengths.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let names: Vec<_> = problems.iter().map(|problem| problem.name()).collect();
        let mut command = Command::new(own_program()?);
        command.args(["--only-memory", "--device", setup.device_name.name()]);
        command.args(["--dtype", &setup.dtype.to_string(), "--problem", &names.join(",")]);
        command.args([
            "--heads",
            &setup.heads.to_string(),
            "--kv-heads",
            &setup.kv_heads.to_string(),
        ]);
        command.args(["--head-dim", &setup.head_dim.to_string(), "--tokens", &list(tokens)]);
        if !memory_tokens.is_empty() {
            command.args(["--memory-tokens", &list(memory_tokens)]);
        }
        let output = command
            .env(HAND_BACK.0, HAND_BACK.1)
            .output()
            .context("the process that measures memory did not start")?;
        if !output.status.success() {
            bail!(
                "the process that measures memory failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let rows = serde_json::from_slice(&output.stdout)
            .context("the process that measures memory said something else")?;
        Ok(Self { method: method.into(), rows })
    }

    /// The peak of one way.
    pub(crate) fn get(
        &self,
        problem: NamedProblem,
        tokens: usize,
        way: Way,
        pass: Pass,
    ) -> Option<u64> {
        let fits = |row: &&Peak| {
            row.problem == problem.name() && (row.tokens, row.way, row.pass) == (tokens, way, pass)
        };
        self.rows.iter().find(fits).map(|row| row.peak_bytes)
    }
}

/// The file of this program, which on Linux can be run even where a newer one has taken its place.
fn own_program() -> Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => std::env::current_exe().context("this program's own file is not known"),
    }
}

/// Measures in this process.
pub(crate) fn measure(
    setup: &Setup,
    problems: &[NamedProblem],
    tokens: &[usize],
    memory_tokens: &[usize],
) -> Result<Vec<Peak>> {
    let all =
        tokens.iter().map(|&tokens| (tokens, &[Way::Tree, Way::Reference, Way::BurnAttention][..]));
    let lengths = all.chain(memory_tokens.iter().map(|&tokens| (tokens, &[Way::Tree][..])));
    let mut rows: Vec<Peak> = Vec::new();
    for (tokens, ways) in lengths {
        for &problem in problems {
            let ends = problem.tree(tokens).ends;
            for (&way, pass) in ways.iter().flat_map(|way| Pass::ALL.map(|pass| (way, pass))) {
                if too_large(setup, way, pass, tokens).is_some() {
                    continue;
                }
                let Some(peak_bytes) = peak(setup, &ends, way, pass)? else { continue };
                rows.push(Peak {
                    problem: problem.name().to_owned(),
                    tokens,
                    way,
                    pass,
                    peak_bytes,
                });
            }
        }
    }
    Ok(rows)
}

/// `None` where a dense way does not run on the device; its row among the times says why.
fn peak(setup: &Setup, ends: &[i32], way: Way, pass: Pass) -> Result<Option<u64>> {
    let short = ends.len().min(WARM_UP_TOKENS);
    match Inputs::new(setup, &vec![short as i32; short], pass)?.run(way) {
        Ok(warmed_up) => drop(warmed_up),
        Err(error) if way.is_dense() && unavailable(&error).is_some() => return Ok(None),
        Err(error) => return Err(error),
    }
    let inputs = Inputs::new(setup, ends, pass)?;
    sync(&setup.device)?;
    let meter = Meter::of(setup);
    let before = meter.before(&setup.device)?;
    let left = inputs.run(way)?;
    sync(&setup.device)?;
    let most = meter.most(&setup.device)?;
    // The gradient of the output is as large as the output, and given rather than computed.
    let given = if pass == Pass::ForwardBackward { left.first() } else { None };
    let entries: usize = left
        .iter()
        .chain(given)
        .map(|tensor: &Tensor<4>| tensor.dims().iter().product::<usize>())
        .sum();
    Ok(Some(most.saturating_sub(before).saturating_sub((entries * setup.dtype.bytes()) as u64)))
}

/// Where the memory of a device is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meter {
    /// The process's resident pages and their high-water mark.
    Resident,
    /// What the device's pools hold.
    Pools,
}

impl Meter {
    fn of(setup: &Setup) -> Self {
        if setup.on_host() { Self::Resident } else { Self::Pools }
    }

    /// Bytes in use, with the high-water mark set down to them.
    fn before(self, device: &Device) -> Result<u64> {
        match self {
            Self::Resident => {
                std::fs::write("/proc/self/clear_refs", "5")
                    .context("the high-water mark of memory cannot be reset")?;
                status("VmRSS:")
            }
            Self::Pools => {
                device.memory_cleanup();
                Ok(device
                    .memory_pool_usage()
                    .context("the device does not tell what its pools hold")?
                    .bytes_in_use)
            }
        }
    }

    /// The most that was used since.
    fn most(self, device: &Device) -> Result<u64> {
        match self {
            Self::Resident => status("VmHWM:"),
            Self::Pools => Ok(device
                .memory_pool_usage()
                .context("the device does not tell what its pools hold")?
                .bytes_reserved),
        }
    }
}

/// A line of /proc/self/status, which counts in KiB.
fn status(key: &str) -> Result<u64> {
    let text =
        std::fs::read_to_string("/proc/self/status").context("/proc/self/status cannot be read")?;
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).with_context(|| format!("/proc/self/status has no {key}"))
}
