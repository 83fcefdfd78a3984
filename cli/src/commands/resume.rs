// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport resume`: resumes instances of a running program that stopped at a breakpoint (ClickNP
//! 3.7).

use crate::running::To;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport resume --to fw parse")]
pub struct Arguments {
    /// The instance [default: all that are stopped]
    instance: Option<String>,
    #[command(flatten)]
    to: To,
}

/// Resumes the instances and prints their names.
///
/// # Errors
/// No such running program, or an instance that is not stopped at a breakpoint.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut request = json!({"do": "resume"});
    if let Some(instance) = &arguments.instance {
        request["instance"] = json!(instance);
    }
    let resumed = arguments.to.connect()?.ask(&request)?;
    for instance in resumed.as_array().into_iter().flatten() {
        println!("{} resumes", instance.as_str().unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}
