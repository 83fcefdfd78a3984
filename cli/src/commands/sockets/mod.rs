// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets`: reads and changes the state of the monitor.

mod figures;
mod list;
mod policy;
mod recall;
mod stats;
mod top;
mod why;

use clap::{Args, Subcommand};
use freeport_monitor::{Control, Location};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets list\n  freeport sockets top\n  \
                  freeport sockets why 4711:8\n  \
                  freeport sockets policy deny user www-data with user root")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List accelerated connections, and the most recent refusals
    List(list::Arguments),
    /// Print the counters of the monitor
    Stats(stats::Arguments),
    /// Show the traffic of accelerated connections live
    Top(top::Arguments),
    /// Explain why a socket is or is not accelerated
    Why(why::Arguments),
    /// Print and change the rules about which connections may be accelerated
    Policy(policy::Arguments),
    /// Move connections that the policy no longer allows back into the kernel
    Recall(recall::Arguments),
}

/// Sends the request to the monitor and prints the answer.
///
/// # Errors
/// No monitor answers, or it refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let control = Control::at(Location::of_programs());
    // A reader may close the pipe after the first lines: that ends the command without an error.
    // SAFETY: numbers only.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    match &arguments.what {
        What::List(arguments) => list::run(arguments, &control)?,
        What::Stats(arguments) => stats::run(arguments, &control)?,
        What::Top(arguments) => top::run(arguments, &control)?,
        What::Why(arguments) => why::run(arguments, &control)?,
        What::Policy(arguments) => policy::run(arguments, &control)?,
        What::Recall(arguments) => recall::run(arguments, &control)?,
    }
    Ok(ExitCode::SUCCESS)
}
