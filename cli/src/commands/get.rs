// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport get`: prints variables of a running program.

use crate::running::To;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport get --to fw cnt.count 'logger.lengths[3]'\n  \
    freeport get --to fw --json")]
pub struct Arguments {
    /// Variables, or elements or members of them [default: all variables of up to 1024 elements]
    #[arg(value_name = "INSTANCE.VARIABLE[INDEX]")]
    paths: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    to: To,
}

/// Prints the values.
///
/// # Errors
/// No such running program, or no such variable.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    if arguments.paths.is_empty() {
        let all = client.ask(&json!({"do": "variables"}))?;
        if arguments.json {
            println!("{all}");
            return Ok(ExitCode::SUCCESS);
        }
        for (instance, variables) in all.as_object().into_iter().flatten() {
            for (variable, value) in variables.as_object().into_iter().flatten() {
                println!("{instance}.{variable} = {value}");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut values = serde_json::Map::new();
    for path in &arguments.paths {
        values.insert(path.clone(), client.ask(&json!({"do": "get", "path": path}))?);
    }
    if arguments.json {
        println!("{}", Value::Object(values));
        return Ok(ExitCode::SUCCESS);
    }
    for path in &arguments.paths {
        println!("{path} = {}", values[path]);
    }
    Ok(ExitCode::SUCCESS)
}
