// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp stats`: the counters of a running XDP program, as `freeport stats` prints them.

use crate::commands::stats;
use clap::Args;
use std::process::ExitCode;

#[derive(Args)]
// The flattened arguments define a group already.
#[group(skip)]
#[command(after_help = "Example:\n  \
    freeport xdp stats --to fw\n  \
    freeport xdp stats --to fw --json\n  \
    freeport xdp stats --to fw --watch 1")]
pub struct Arguments {
    #[command(flatten)]
    stats: stats::Arguments,
}

/// Prints the counters.
///
/// # Errors
/// No such running program.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    stats::run(&arguments.stats)
}
