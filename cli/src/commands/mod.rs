// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subcommands. Each has its arguments, with an example in its help, and a `run`.

mod doctor;

use clap::Subcommand;
use std::process::ExitCode;

/// What `freeport` can do.
#[derive(Subcommand)]
pub enum Command {
    /// Tell what this machine offers, and what falls back to what, and why
    Doctor(doctor::Arguments),
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// What went wrong and what to do, for the user.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Doctor(arguments) => doctor::run(&arguments),
        }
    }
}
