// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets stats`: prints the counters of the monitor.

use clap::Args;
use freeport_monitor::{Control, printable};
use serde_json::Value;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets stats\n  freeport sockets stats --json")]
pub struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the counters.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let stats = control.stats()?;
    if arguments.json {
        println!("{stats}");
        return Ok(());
    }
    print_members("", &stats);
    Ok(())
}

/// Prints each counter with its name; nested ones are prefixed with the name of their group.
fn print_members(before: &str, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let name = format!("{before}{}", printable(&name.replace('_', " ")));
        if value.is_object() {
            print_members(&format!("{name}: "), value);
        } else {
            println!("{name:<32} {value}");
        }
    }
}
