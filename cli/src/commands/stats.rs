// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport stats`: the counters of a running program.

use crate::running::To;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport stats --to fw\n  freeport stats --to fw --json")]
pub struct Arguments {
    /// One JSON object
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// The Prometheus text exposition
    #[arg(long)]
    prometheus: bool,
    #[command(flatten)]
    to: To,
}

/// Prints counters.
///
/// # Errors
/// Nobody to ask.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    let format = match (arguments.json, arguments.prometheus) {
        (true, _) => "json",
        (_, true) => "prometheus",
        _ => "text",
    };
    match client.ask(&json!({"do": "stats", "format": format}))? {
        Value::String(text) => print!("{text}"),
        object => println!("{object}"),
    }
    Ok(ExitCode::SUCCESS)
}
