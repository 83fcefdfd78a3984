// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport resume`: lets instances of a running program go on from their breakpoints (ClickNP
//! 3.7).

use crate::running::To;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport resume --to fw parse")]
pub struct Arguments {
    /// Who goes on [default: all that rest]
    instance: Option<String>,
    #[command(flatten)]
    to: To,
}

/// Prints who goes on.
///
/// # Errors
/// Nobody to ask, or an instance that does not rest.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut request = json!({"do": "resume"});
    if let Some(instance) = &arguments.instance {
        request["instance"] = json!(instance);
    }
    let resumed = arguments.to.connect()?.ask(&request)?;
    for instance in resumed.as_array().into_iter().flatten() {
        println!("{} goes on", instance.as_str().unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}
