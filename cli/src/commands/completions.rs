// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport completions`: the script by which a shell completes subcommands and options.

use crate::CommandLine;
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  source <(freeport completions bash)\n  \
    freeport completions zsh > ~/.zfunc/_freeport\n  \
    freeport completions fish > ~/.config/fish/completions/freeport.fish\n\n\
    `make install` installs those of bash, zsh and fish.")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// A script that is not UTF-8.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut script = vec![];
    clap_complete::generate(arguments.shell, &mut CommandLine::command(), "freeport", &mut script);
    print!("{}", String::from_utf8(script).context("the script is not UTF-8")?);
    Ok(ExitCode::SUCCESS)
}
