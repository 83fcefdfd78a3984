// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport replace`: replaces the program of a running process, which keeps its ports, its state
//! and the packets inside it (ClickNP 7).

use crate::library::LibraryArguments;
use crate::program;
use crate::running::To;
use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport replace --to fw firewall2.cnp\n\n\
    Variables and tables whose instance, name and type are the same keep their values; others are \
    reported. The new program is compiled and loaded while traffic flows.")]
pub struct Arguments {
    /// The program, .cnp or .ir
    file: PathBuf,
    /// Replace the program even if packets are lost because the new graph has no channel for them
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    library: LibraryArguments,
    #[command(flatten)]
    to: To,
}

/// Replaces the program and reports what was kept.
///
/// # Errors
/// No such running program, a program with errors, or packets that would be lost.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    // Errors of the program are reported here, with their places, before the request is sent.
    program::load(&arguments.file, &arguments.library.folders())?;
    let file = arguments.file.canonicalize();
    let file = file.with_context(|| format!("{} cannot be found", arguments.file.display()))?;
    let request = json!({"do": "replace", "file": file, "force": arguments.force});
    let answer = client.ask(&request)?;
    match arguments.json {
        true => println!("{}", answer["report"]),
        false => println!("{}", answer["text"].as_str().unwrap_or_default().trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}
