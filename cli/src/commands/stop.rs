// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport stop`: ends a running program.

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

/// Ends it between two batches.
///
/// # Errors
/// Nobody to stop.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.to.connect()?.ask(&json!({"do": "stop"}))?;
    Ok(ExitCode::SUCCESS)
}
