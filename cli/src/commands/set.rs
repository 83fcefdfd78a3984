// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport set`: writes variables of a running program.

use crate::arguments::Assignment;
use crate::running::To;
use clap::Args;
use freeport_runtime::layout::value_of_text;
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport set --to fw cnt.count=0 'police.limits[2].most=900'")]
pub struct Arguments {
    /// The variables with their values, in any form that the variables take
    #[arg(value_name = "INSTANCE.VARIABLE[INDEX]=VALUE", required = true)]
    values: Vec<Assignment>,
    #[command(flatten)]
    to: To,
}

/// Writes the variables, in order.
///
/// # Errors
/// No such running program, no such variable, or a value that does not fit.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    for Assignment { path, value } in &arguments.values {
        client.ask(&json!({"do": "set", "path": path, "value": value_of_text(value)}))?;
    }
    Ok(ExitCode::SUCCESS)
}
