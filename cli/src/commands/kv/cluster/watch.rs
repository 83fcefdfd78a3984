// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster watch`: prints changes as they happen.

use super::events::events;
use super::session::Session;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest time of one call to the registry.
const TURN: Duration = Duration::from_secs(5);

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster --registry file:/run/kv watch\n  \
                  freeport kv cluster watch --json\n\n\
                  Ctrl-C ends it. A registry that does not answer is reported, and tried again.")]
pub struct Arguments {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Prints changes until the process is ended.
///
/// # Errors
/// The registry does not answer at the beginning.
pub fn run(session: &Session, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut seen = session.state()?;
    let mut is_away = false;
    loop {
        match session.next(&seen, TURN) {
            Ok(state) => {
                if is_away {
                    report("the registry answers again", arguments.json);
                }
                is_away = false;
                events(&seen, &state).iter().for_each(|line| report(line, arguments.json));
                seen = state;
            }
            Err(error) => {
                if !is_away {
                    report(&error.to_string(), arguments.json);
                }
                is_away = true;
                std::thread::sleep(TURN / 5);
            }
        }
    }
}

fn report(line: &str, is_json: bool) {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, ms) = (time.as_secs(), time.subsec_millis());
    match is_json {
        true => println!("{}", json!({ "time_ms": time.as_millis() as u64, "event": line })),
        false => println!("{seconds}.{ms:03} {line}"),
    }
    // The reader of a pipe should see it now; a failure shows with the next line.
    let _ = std::io::stdout().flush();
}
