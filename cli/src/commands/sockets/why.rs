// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets why`: why one socket is accelerated, or is not.

use super::list;
use anyhow::Context;
use clap::Args;
use freeport_monitor::{Control, printable};
use serde_json::Value;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets why 4711:8")]
pub struct Arguments {
    /// The process and the number of the descriptor, as `freeport sockets list` has them
    #[arg(value_name = "PID:FD")]
    socket: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Says why.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let numbers = arguments.socket.split_once(':');
    let numbers = numbers.and_then(|(pid, number)| Some((pid.parse().ok()?, number.parse().ok()?)));
    let (pid, number) = numbers.context("a socket is named as PID:FD, such as 4711:8")?;
    let told = freeport_monitor::why(control, pid, number);
    if arguments.json {
        println!("{told}");
    } else {
        println!("{}", shown(&told));
    }
    Ok(())
}

fn shown(told: &Value) -> String {
    let text = &*printable(told["text"].as_str().unwrap_or("-"));
    match told["state"].as_str() {
        Some("accelerated") => list::shown(&told["connection"]),
        Some("refused") => format!("in the kernel: {}", list::why(&told["refusal"], text)),
        _ => format!("in the kernel: {text}"),
    }
}
