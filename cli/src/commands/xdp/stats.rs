// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp stats`: the counters of an XDP program at work. They are asked for and watched as
//! those of any running program.

use crate::commands::stats;
use clap::Args;
use std::process::ExitCode;

#[derive(Args)]
// The arguments that it has are a group of their own.
#[group(skip)]
#[command(after_help = "Example:\n  \
    freeport xdp stats --to fw\n  \
    freeport xdp stats --to fw --json\n  \
    freeport xdp stats --to fw --watch 1")]
pub struct Arguments {
    #[command(flatten)]
    stats: stats::Arguments,
}

/// Prints counters.
///
/// # Errors
/// Nobody to ask.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    stats::run(&arguments.stats)
}
