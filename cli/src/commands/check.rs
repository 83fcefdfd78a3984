// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport check`: compiles programs and reports all errors and warnings.

use crate::library::LibraryArguments;
use crate::program::{self, WarningArguments};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "Example:\n  freeport check firewall.cnp\n  freeport check --json *.cnp\n  \
    freeport check --deny warnings *.cnp\n\n\
    With --json, each message is an object with severity, code, file, line and column (both from \
    1), message, label, notes and help."
)]
pub struct Arguments {
    /// Programs, .cnp or .ir
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object per line, one for each message
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    denied: WarningArguments,
    #[command(flatten)]
    library: LibraryArguments,
}

/// Prints the messages. The status is that of a failure if one is an error or a denied warning.
///
/// # Errors
/// None: a file that cannot be read is reported like any other error.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let library = arguments.library.folders();
    let (mut errors, mut warnings) = (0, 0);
    for path in &arguments.files {
        let messages = match program::examine(path, &library) {
            Ok(loaded) => loaded.warnings,
            Err(messages) => messages,
        };
        for message in messages {
            match message.is_error {
                true => errors += 1,
                false => warnings += 1,
            }
            match arguments.json {
                true => println!("{}", message.json),
                false => eprintln!("{}", message.text),
            }
        }
    }
    if !arguments.json {
        let files = arguments.files.len();
        let denied = if arguments.denied.refuse(warnings) { ", which are denied" } else { "" };
        eprintln!("{files} file(s): {errors} error(s), {warnings} warning(s){denied}");
    }
    let is_refused = errors > 0 || arguments.denied.refuse(warnings);
    Ok(if !is_refused { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
