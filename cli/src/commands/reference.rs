// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport reference`: the page `docs/reference/commands.md`, made of what the command line is
//! parsed with. It is hidden: only those who write documentation need it.

use crate::{CommandLine, reference};
use clap::{Args, CommandFactory};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport reference")]
pub struct Arguments {}

/// Prints the part of the page that is generated.
///
/// # Errors
/// None.
pub fn run(_arguments: &Arguments) -> anyhow::Result<ExitCode> {
    print!("{}", reference::page(CommandLine::command()));
    Ok(ExitCode::SUCCESS)
}
