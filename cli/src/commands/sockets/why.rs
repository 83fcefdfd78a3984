// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets why`: explains why a socket is or is not accelerated.

use super::list;
use anyhow::Context;
use clap::Args;
use freeport_monitor::{Control, printable};
use freeport_sockets_proto::Reason;
use serde_json::Value;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets why 4711:8")]
pub struct Arguments {
    /// Process ID and descriptor, as `freeport sockets list` prints them
    #[arg(value_name = "PID:FD")]
    socket: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Reasons why the socket could not be inspected.
const NOT_SEEN: [Reason; 4] =
    [Reason::NoProcess, Reason::NoDescriptor, Reason::NotSocket, Reason::NotPermitted];

/// Prints the reason.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let numbers = arguments.socket.split_once(':');
    let numbers = numbers.and_then(|(pid, number)| Some((pid.parse().ok()?, number.parse().ok()?)));
    let (pid, number) = numbers.context("a socket is named as PID:FD, such as 4711:8")?;
    let reported = freeport_monitor::why(control, pid, number);
    if arguments.json {
        println!("{reported}");
    } else {
        println!("{}", shown(&reported));
    }
    Ok(())
}

fn shown(reported: &Value) -> String {
    let text = &*printable(reported["text"].as_str().unwrap_or("-"));
    match reported["state"].as_str() {
        Some("accelerated") => list::shown(&reported["connection"]),
        Some("refused") => format!("in the kernel: {}", list::why(&reported["refusal"], text)),
        // If it is not a socket or cannot be inspected, it is unknown where it is.
        _ if NOT_SEEN.iter().any(|it| reported["reason"] == it.name()) => text.to_owned(),
        _ => format!("in the kernel: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_seen_is_in_the_kernel() {
        let reported =
            |reason: &str| shown(&json!({"state": "kernel", "reason": reason, "text": "x"}));
        assert_eq!(reported("Young"), "in the kernel: x");
        assert_eq!(
            (reported("NoProcess"), reported("NotPermitted")),
            ("x".to_owned(), "x".to_owned())
        );
        let refusal = json!({"reason": "PeerPlain", "times": 3, "seconds_ago": 1.5});
        let refused = json!({"state": "refused", "refusal": refusal, "text": "y"});
        assert_eq!(shown(&refused), "in the kernel: y (refused 3 times, 1.5 s ago)");
    }
}
