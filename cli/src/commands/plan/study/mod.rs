// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan study`: the case studies, which run on the simulated machine of a profile.

mod key_value;
mod replication;

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan study key-value --gets A4 --gets A5:200\n  \
    freeport plan study replication --writes a2:4 --writes a3:4\n\n\
    The applications run with real bytes; time is that of the simulated machine.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Get values of a store in the memory of a host and of its NIC's processor
    KeyValue(key_value::Arguments),
    /// Replicate writes of files to a chain of backups
    Replication(replication::Arguments),
}

/// Runs the command.
///
/// # Errors
/// The profile or an option is invalid.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.what {
        What::KeyValue(arguments) => key_value::run(arguments),
        What::Replication(arguments) => replication::run(arguments),
    }
}

/// Most clients of one alternative: sums of a few do not overflow.
const CLIENTS_MAX: usize = 1 << 20;

/// Splits `NAME` or `NAME:COUNT`.
fn counted(text: &str) -> Result<(&str, Option<usize>), String> {
    match text.split_once(':') {
        None => Ok((text, None)),
        Some((name, count)) => match count.parse() {
            Ok(count) if (1..=CLIENTS_MAX).contains(&count) => Ok((name, Some(count))),
            _ => Err(format!("{count} is no number of clients from 1 to {CLIENTS_MAX}")),
        },
    }
}
