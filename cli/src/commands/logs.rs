// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport logs`: the lines that a running program has printed and logged.

use crate::running::To;
use clap::Args;
use freeport_monitor::printable;
use freeport_runtime::server::Client;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Time between two requests for new lines.
const EVERY: Duration = Duration::from_millis(100);

#[derive(Args)]
#[command(after_help = "Example:\n  freeport logs --to fw\n  freeport logs --to fw --follow")]
pub struct Arguments {
    /// Keep printing new lines until the program ends
    #[arg(short, long)]
    follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    to: To,
}

/// Prints the lines of printf, logs and breakpoints.
///
/// # Errors
/// No such running program.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    let mut since = json!(0);
    let mut lost = 0;
    loop {
        let logged = client.ask(&json!({"do": "told", "since": since}))?;
        // Lines that were lost before the first request are not worth a warning.
        print(&logged, arguments, if since == 0 { None } else { Some(lost) });
        lost = logged["lost"].as_u64().unwrap_or_default();
        since = logged["next"].clone();
        if logged["is_last"] == json!(true) {
            if !arguments.follow {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(EVERY);
            if !is_running(&mut client) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

fn is_running(client: &mut Client) -> bool {
    client.ask(&json!({"do": "status"})).is_ok()
}

fn print(logged: &Value, arguments: &Arguments, lost: Option<u64>) {
    let missed = logged["missed"].as_u64().unwrap_or_default();
    let total = logged["lost"].as_u64().unwrap_or_default();
    let gone = total.saturating_sub(lost.unwrap_or(0)) + missed;
    for line in logged["lines"].as_array().into_iter().flatten() {
        if arguments.json {
            println!("{line}");
        } else {
            // A program may print bytes of packets.
            let word = |member: &str| printable(line[member].as_str().unwrap_or_default());
            println!("{}: {}", word("instance"), word("text"));
        }
    }
    if gone > 0 {
        eprintln!("{gone} lines were lost");
    }
}
