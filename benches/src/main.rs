//! Tree attention on this machine, beside other ways to compute the same and a
//! floor, measured in one run.
mod aims;
#[path = "../../crates/cli/src/allocator.rs"]
mod allocator;
mod attention;
mod blocks;
mod clock;
mod device;
mod environment;
mod floor;
#[path = "../../crates/cli/src/free_memory.rs"]
mod free_memory;
mod inputs;
mod memory;
#[path = "../../crates/cli/src/output.rs"]
mod output;
mod peers;
mod report;
mod schedule;
mod setup;
mod step;
mod table;

use std::process::ExitCode;

use crate::device::DeviceName;
use anyhow::{Result, bail};
use clap::Parser;
use pleach_kernels::problem::NamedProblem;

use floor::Product;
use memory::Peaks;
use report::Report;
use setup::{Dtype, Problems, Setup};

/// Time tree attention on this machine beside other ways to compute the same
///
/// Every named problem is timed forward and forward with backward: tree attention, the dense
/// reference, burn's own attention under the mask, plain causal attention with as many visible
/// pairs, and a matrix product as the floor, turn by turn in one run. `rate` is the floor's time
/// over the measured time: the flops of the visible pairs alone, at the speed of the product.
#[derive(Parser)]
#[command(name = "pleach-bench", version, max_term_width = 100)]
struct Bench {
    /// Device: flex, ndarray, wgpu or cuda
    #[arg(long, default_value = "flex")]
    device: DeviceName,
    /// Numbers to compute in: f16, f32 or f64
    #[arg(long, default_value = "f32")]
    dtype: Dtype,
    /// Which masks: names of problems, or all
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "fold,cleared-results"
    )]
    problem: Vec<Problems>,
    /// Tokens of a row
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "512,2048", value_parser = setup::tokens)]
    tokens: Vec<usize>,
    /// Lengths at which only the memory of tree attention is measured
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = setup::tokens)]
    memory_tokens: Vec<usize>,
    /// Query heads
    #[arg(long, value_name = "N", default_value = "8", value_parser = setup::count_to(setup::MOST_HEADS))]
    heads: usize,
    /// Key/value heads [default: as many as query heads]
    #[arg(long, value_name = "N", value_parser = setup::count_to(setup::MOST_HEADS))]
    kv_heads: Option<usize>,
    /// Features of a head
    #[arg(long, value_name = "N", default_value = "64", value_parser = setup::count_to(setup::MOST_FEATURES))]
    head_dim: usize,
    /// Samples of each measurement; ways that take seconds get fewer, and tables say how many
    #[arg(long, value_name = "N", default_value = "5", value_parser = setup::count)]
    repeats: usize,
    /// Side of the square matrices whose product is the floor
    #[arg(long, value_name = "N", default_value = "2048", value_parser = setup::count_to(setup::LARGEST_SIDE))]
    product: usize,
    /// Time the training step of a decoder too, on packed against segments
    #[arg(long)]
    step: bool,
    /// Tokens that the rollouts of the training step pack to
    #[arg(long, value_name = "N", default_value = "4096", value_parser = setup::tokens, requires = "step")]
    step_tokens: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Print a page in Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Measure memory alone and print it as JSON: what the program asks of itself
    #[arg(long, hide = true)]
    only_memory: bool,
}

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    match Bench::parse().run() {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}

impl Bench {
    fn run(self) -> Result<ExitCode> {
        let setup = self.setup()?;
        let problems = Problems::list(&self.problem);
        if self.only_memory {
            output::json(&memory::measure(&setup, &problems, &self.tokens, &self.memory_tokens)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let report = self.measure(&setup, &problems)?;
        match (self.json, self.markdown) {
            (true, _) => output::json(&report)?,
            (_, true) => table::markdown(&report)?,
            _ => table::plain(&report)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn setup(&self) -> Result<Setup> {
        let kv_heads = self.kv_heads.unwrap_or(self.heads);
        if !self.heads.is_multiple_of(kv_heads) {
            bail!(
                "{} query heads do not divide among {kv_heads} key/value heads; choose a divisor for --kv-heads",
                self.heads
            );
        }
        if self.step {
            self.dtype.of_decoder()?;
        }
        let device = self.device.open()?;
        self.dtype.check(self.device, &device)?;
        let setup = Setup {
            device_name: self.device,
            device,
            dtype: self.dtype,
            heads: self.heads,
            kv_heads,
            head_dim: self.head_dim,
            repeats: self.repeats,
            product: self.product,
        };
        let tokens = self.tokens.iter().chain(&self.memory_tokens).copied().max().unwrap_or(0);
        setup.check_memory(tokens, free_memory::available())?;
        Ok(setup)
    }

    fn measure(&self, setup: &Setup, problems: &[NamedProblem]) -> Result<Report> {
        let environment = environment::Environment::of(setup);
        let progress = setup::progress();
        let product = Product::new(setup)?;
        let mut rows = Vec::new();
        for &tokens in &self.tokens {
            for &problem in problems {
                progress.set_message(format!("{problem}, {} tokens", output::size(tokens)));
                progress.tick();
                rows.extend(attention::measure(setup, &product, problem, tokens)?);
            }
        }
        progress.set_message("memory");
        progress.tick();
        let peaks = Peaks::of_own_process(setup, problems, &self.tokens, &self.memory_tokens)?;
        progress.set_message("schedules");
        progress.tick();
        let schedule = schedule::measure(setup, problems, &self.tokens)?;
        let step = match self.step {
            true => step::measure(setup, self.step_tokens, &progress)?,
            false => Vec::new(),
        };
        progress.finish_and_clear();
        Ok(Report::new(environment, rows, peaks, schedule, step))
    }
}
