// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport told`: what a running program has printed and logged.

use crate::running::To;
use clap::Args;
use freeport_monitor::printable;
use freeport_runtime::server::Client;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(100);

#[derive(Args)]
#[command(after_help = "Example:\n  freeport told --to fw\n  freeport told --to fw --follow")]
pub struct Arguments {
    /// Go on with new lines until the program ends
    #[arg(short, long)]
    follow: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    to: To,
}

/// Prints the lines of printf, logs and breakpoints.
///
/// # Errors
/// Nobody to ask.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    let mut since = json!(0);
    let mut lost = 0;
    loop {
        let told = client.ask(&json!({"do": "told", "since": since}))?;
        // What was missed before the first look is no surprise to anybody.
        print(&told, arguments, if since == 0 { None } else { Some(lost) });
        lost = told["lost"].as_u64().unwrap_or_default();
        since = told["next"].clone();
        if told["is_last"] == json!(true) {
            if !arguments.follow {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(EVERY);
            if !lives(&mut client) {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

fn lives(client: &mut Client) -> bool {
    client.ask(&json!({"do": "status"})).is_ok()
}

fn print(told: &Value, arguments: &Arguments, lost: Option<u64>) {
    let missed = told["missed"].as_u64().unwrap_or_default();
    let total = told["lost"].as_u64().unwrap_or_default();
    let gone = total.saturating_sub(lost.unwrap_or(0)) + missed;
    for line in told["lines"].as_array().into_iter().flatten() {
        if arguments.json {
            println!("{line}");
        } else {
            // A program may print what packets have brought.
            let word = |member: &str| printable(line[member].as_str().unwrap_or_default());
            println!("{}: {}", word("instance"), word("text"));
        }
    }
    if gone > 0 {
        eprintln!("{gone} lines were lost");
    }
}
