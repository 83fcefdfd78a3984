// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport fmt`: formats programs, or prints what it would change.

use crate::rewriting::{self, Source};
use anyhow::bail;
use clap::Args;
use freeport_clicknp::format::{changes, format_text};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "Example:\n  freeport fmt firewall.cnp elements/\n  freeport fmt --check .\n  \
    freeport fmt - < draft.cnp\n\n\
    Only white space changes. A file that is not a valid program is reported and left as it is. \
    With --check, the lines that are not formatted are printed, nothing is written, and the status \
    is that of a failure if there are any."
)]
pub struct Arguments {
    /// Programs, folders with programs (.cnp), or - for standard input and output
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print what would change, and write nothing
    #[arg(long)]
    check: bool,
}

/// Formats each file. The status is that of a failure if one could not be formatted.
///
/// # Errors
/// A path that does not exist, or `-` together with others. An error in one file is reported, and
/// the others are still formatted.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let sources = rewriting::sources(&arguments.paths)?;
    if sources.is_empty() {
        bail!("there is no .cnp file in these paths");
    }
    let (mut wrong, mut changed) = (0, 0);
    for source in &sources {
        match format_one(source, arguments.check) {
            Ok(has_changed) => changed += usize::from(has_changed),
            Err(message) => {
                eprintln!("{}", message.trim_end());
                wrong += 1;
            }
        }
    }
    if !matches!(sources.as_slice(), [Source::Input]) {
        let what = if arguments.check { "not formatted" } else { "changed" };
        eprintln!("{} file(s): {changed} {what}, {wrong} error(s)", sources.len());
    }
    let is_good = wrong == 0 && (changed == 0 || !arguments.check);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Formats a source; returns whether it changed, or would change.
fn format_one(source: &Source, is_check: bool) -> Result<bool, String> {
    let name = source.name();
    let text = source.read().map_err(|error| format!("{}: {error}", name.display()))?;
    let formatted = format_text(&name, &text).map_err(|error| match error {
        freeport_clicknp::format::Unformatted::Wrong(messages) => messages,
        other => format!("{}: {other}", name.display()),
    })?;
    if is_check {
        for change in changes(&text, &formatted) {
            print!("{}:{}:\n{change}", name.display(), change.line);
        }
    } else if formatted != text || matches!(source, Source::Input) {
        source.write(&formatted).map_err(|error| format!("{}: {error}", name.display()))?;
    }
    Ok(formatted != text)
}
