// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport ps`: lists running programs with their ports.

use clap::Args;
use freeport_monitor::printable;
use freeport_runtime::server::{Client, RunFolder};
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport ps\n  freeport ps --json")]
pub struct Arguments {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Lists the running programs.
///
/// # Errors
/// The folder of sockets cannot be read.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = RunFolder::of_user()?;
    for name in Client::living(&folder)? {
        let status = Client::connect(&folder, Some(&name));
        let status = status.and_then(|mut client| client.ask(&json!({"do": "status"})));
        match status {
            Ok(status) if arguments.json => println!("{status}"),
            Ok(status) => print!("{}", shown(&status)),
            // A program that ends in between does not prevent listing the others.
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(status: &Value) -> String {
    // Names of files and interfaces may contain any characters.
    let word = |value: &Value| match value.as_str() {
        Some(text) => printable(text).into_owned(),
        None => value.to_string(),
    };
    let uptime = status["uptime_seconds"].as_f64().unwrap_or_default();
    let mut text = format!(
        "{}: {}, process {}, {} for {uptime:.0} s, {}\n",
        word(&status["name"]),
        word(&status["file"]),
        status["process"],
        word(&status["device"]),
        word(&status["state"]),
    );
    for instance in status["resting"].as_array().into_iter().flatten() {
        let instance = word(instance);
        text += &format!(
            "  {instance} is stopped at a breakpoint; `freeport resume {instance}` resumes it\n"
        );
    }
    for port in status["ports"].as_array().into_iter().flatten() {
        let [endpoint, direction, port] =
            ["endpoint", "direction", "port"].map(|member| word(&port[member]));
        text += &format!("  {direction} {endpoint}={port}\n");
    }
    text
}
