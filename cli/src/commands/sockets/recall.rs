// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets recall`: moves connections that the rules no longer allow back into the
//! kernel.

use clap::Args;
use freeport_monitor::Control;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the monitor is asked whether they have moved.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets policy deny port 6379\n  \
                  freeport sockets recall\n  \
                  tcpdump -i lo port 6379\n\n\
                  A connection moves at the next operation of one of its processes, without \
                  losing a byte, and stays in the kernel, where tcpdump, nft and tc see it. New \
                  connections are accelerated again once the rule is removed.")]
pub struct Arguments {
    /// How long to wait for idle connections
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    wait: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Recalls the connections, and waits for idle ones.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let wait = Duration::try_from_secs_f64(arguments.wait)
        .map_err(|_| anyhow::anyhow!("--wait {}: not a time in seconds", arguments.wait))?;
    let until = Instant::now() + wait;
    let recalled = loop {
        let recalled = control.recall()?;
        if recalled["pending"] == 0 || Instant::now() >= until {
            break recalled;
        }
        thread::sleep(PAUSE);
    };
    if arguments.json {
        println!("{recalled}");
        return Ok(());
    }
    println!("{}", reported(&recalled["returned"], "are back in the kernel"));
    if recalled["pending"] != json!(0) {
        let text = "move as soon as one of their processes sends, receives or polls";
        println!("{}", reported(&recalled["pending"], text));
    }
    Ok(())
}

fn reported(count: &Value, what: &str) -> String {
    format!("{count} connections that the rules do not allow {what}")
}
