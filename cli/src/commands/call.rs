// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport call`: calls methods of a running program, also those of its tables.

use crate::running::To;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport call --to fw 'exact.insert({source: 10.0.0.8, protocol: 17}, 0, 100)'\n  \
    freeport call 'nat.flows.lookup({address: 10.0.0.1, port: 80})'")]
pub struct Arguments {
    /// What to call, with values as in the language; a struct is written as {member: value}
    #[arg(value_name = "INSTANCE.METHOD(VALUE,VALUE)", required = true)]
    calls: Vec<String>,
    #[command(flatten)]
    to: To,
}

/// Calls and prints results.
///
/// # Errors
/// Nobody to call, or what is wrong with a call.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    for call in &arguments.calls {
        println!("{}", client.ask(&json!({"do": "call", "call": call}))?);
    }
    Ok(ExitCode::SUCCESS)
}
