// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv`: the key-value server, and its engine.

mod bench;
mod certificates;
mod cli;
mod cluster;
mod connection;
mod encryption;
mod functions;
mod inspect;
mod login;
mod redirection;
mod replication;
mod serve;
mod storage;
mod tune;

use crate::diagnostics::Diagnostics;
use clap::{Args, Subcommand};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv serve\n  \
                  freeport kv tune --pairs 10:7 --pairs 62:3 --utilisation 0.5")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Serve clients of Redis and memcached
    Serve(Box<serve::Arguments>),
    /// Send commands to a server, and print the replies
    Cli(cli::Arguments),
    /// Make, show and change a cluster of servers
    Cluster(Box<cluster::Arguments>),
    /// Send a load to a running server, and print its rate and latencies
    Bench(bench::Arguments),
    /// Check files with functions on values, and list the functions
    Functions(functions::Arguments),
    /// Show what is in the folder of a server, or cut its damaged log
    Inspect(inspect::Arguments),
    /// Choose the inline threshold and the index ratio for a mix of sizes
    Tune(tune::Arguments),
}

impl Arguments {
    /// How the command reports events.
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        let runs_long = matches!(self.what, What::Serve(_));
        Diagnostics { runs_long, ..Diagnostics::default() }
    }
}

/// Runs the command.
///
/// # Errors
/// The reason why it cannot.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Serve(arguments) => serve::run(arguments),
        What::Cli(arguments) => cli::run(arguments),
        What::Cluster(arguments) => cluster::run(arguments),
        What::Bench(arguments) => bench::run(arguments),
        What::Functions(arguments) => functions::run(arguments),
        What::Inspect(arguments) => inspect::run(arguments),
        What::Tune(arguments) => tune::run(arguments),
    }
}
