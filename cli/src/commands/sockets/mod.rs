// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets`: what the monitor knows of connections.

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
    /// Accelerated connections, and what was refused last
    List(list::Arguments),
    /// What the monitor has counted
    Stats(stats::Arguments),
    /// What programs do past the kernel, as it happens
    Top(top::Arguments),
    /// Why a socket is accelerated, or is not
    Why(why::Arguments),
    /// Which connections may be accelerated
    Policy(policy::Arguments),
    /// Bring connections back into the kernel that the policy does not allow any more
    Recall(recall::Arguments),
}

/// Asks the monitor.
///
/// # Errors
/// None answers, or it refuses.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let control = Control::at(Location::of_programs());
    // Who reads only the first lines hangs up: that ends the command, and is no failure to tell.
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
