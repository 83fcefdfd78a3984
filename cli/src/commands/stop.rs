// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport stop`: stops a running program.

use crate::running::To;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport stop --to fw")]
pub struct Arguments {
    #[command(flatten)]
    to: To,
}

/// Stops the program between two batches.
///
/// # Errors
/// No such running program.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.to.connect()?.ask(&json!({"do": "stop"}))?;
    Ok(ExitCode::SUCCESS)
}
