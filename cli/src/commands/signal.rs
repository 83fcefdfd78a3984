// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport signal`: sends signals to instances of a running program (ClickNP 3.5).

use crate::arguments::SignalSpec;
use crate::running::To;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport signal --to fw cnt:0,7")]
pub struct Arguments {
    /// The instance and the words of the message; numbers may be written as 0x1f
    #[arg(value_name = "INSTANCE:WORD,WORD", required = true)]
    signals: Vec<SignalSpec>,
    /// The command number, for elements that support several
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    command: u32,
    #[command(flatten)]
    to: To,
}

/// Sends the signals and prints the answers.
///
/// # Errors
/// No such running program, or an instance that takes no signals.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    for SignalSpec { instance, words } in &arguments.signals {
        let command = arguments.command;
        let request = json!({
            "do": "signal", "instance": instance, "command": command, "words": words,
        });
        let answer = client.ask(&request)?;
        let words = answer.as_array().into_iter().flatten().map(Value::to_string);
        println!("signal {instance}: {}", words.collect::<Vec<_>>().join(" "));
    }
    Ok(ExitCode::SUCCESS)
}
