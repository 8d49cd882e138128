//! `pleach`: inspect, convert, lay out and check recorded agent rollouts.
mod allocator;
mod arrays;
mod beside;
mod check;
mod convert;
mod device;
mod free_memory;
mod html;
mod input;
mod inspect;
mod layout;
mod mask;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build the conditioning tree of an agent rollout whose harness compacts its context, and see what
/// training on it would mean.
///
/// Exit status: 0 when all is well, 1 when a check failed or did not fit into memory, 2 for bad
/// input.
#[derive(Parser)]
#[command(name = "pleach", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Inspect(inspect::Inspect),
    Convert(convert::Convert),
    Layout(layout::Layout),
    Mask(mask::Mask),
    Check(check::Check),
}

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    let result = match Cli::parse().verb {
        Verb::Inspect(verb) => verb.run(),
        Verb::Convert(verb) => verb.run(),
        Verb::Layout(verb) => verb.run(),
        Verb::Mask(verb) => verb.run(),
        Verb::Check(verb) => verb.run(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}
