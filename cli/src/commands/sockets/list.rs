// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets list`: accelerated connections, and what was refused last.

use clap::Args;
use freeport_monitor::{Control, printable};
use serde_json::Value;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets list\n  freeport sockets list --json")]
pub struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let list = control.list()?;
    if arguments.json {
        println!("{list}");
        return Ok(());
    }
    let members = |name: &str| list[name].as_array().cloned().unwrap_or_default();
    let (connections, refused) = (members("connections"), members("refused"));
    for connection in &connections {
        println!("{}", shown(connection));
    }
    if connections.iter().all(|it| it["transport"] == "kernel") {
        println!("no connection is accelerated");
    }
    for refusal in &refused {
        println!("kernel  {}\n        {}", end(refusal), why(refusal, &word(&refusal["text"])));
    }
    Ok(())
}

/// Why an end is in the kernel, and since when.
pub fn why(refusal: &Value, text: &str) -> String {
    let (times, ago) = (&refusal["times"], &refusal["seconds_ago"]);
    match refusal["reason"].as_str() {
        // It was not refused: it was accelerated before.
        Some("HandedOn" | "Recalled") => format!("{text} ({ago} s ago)"),
        _ => format!("{text} (refused {times} times, {ago} s ago)"),
    }
}

/// A connection in three lines.
pub fn shown(connection: &Value) -> String {
    let transport = word(&connection["transport"]);
    let mut text = format!("{transport:<7} ");
    for (at, side) in connection["ends"].as_array().into_iter().flatten().enumerate() {
        let margin = if at == 0 { "" } else { "\n        " };
        let count = |name: &str| side[name].to_string();
        text += &format!(
            "{margin}{}: {}; sent {} bytes in {}, {} doorbells, {} sleeps",
            end(side),
            state(side),
            count("sent_bytes"),
            count("sends"),
            count("doorbells"),
            count("sleeps"),
        );
    }
    let reused = |side: &Value| side["reused"].as_u64().unwrap_or_default();
    let ends = connection["ends"].as_array().into_iter().flatten();
    match ends.map(reused).min() {
        None | Some(0) => {}
        Some(1) => text += "\n        one more connection was made over this stream",
        Some(more) => text += &format!("\n        {more} more connections were made over it"),
    }
    text
}

fn state(side: &Value) -> &'static str {
    let is = |name: &str| side[name] == true;
    if is("closed") {
        "closed"
    } else if is("leaves") {
        "in the kernel again"
    } else if is("switched") {
        "in shared memory"
    } else if is("declined") {
        "stays in the kernel"
    } else if is("attached") {
        "about to switch"
    } else {
        "about to attach"
    }
}

/// An end by its process and its address.
fn end(side: &Value) -> String {
    let (pid, descriptor) = (&side["pid"], &side["descriptor"]);
    let (command, local) = (word(&side["command"]), word(&side["local"]));
    format!("{pid}:{descriptor} {command} {local}")
}

fn word(value: &Value) -> String {
    // What a monitor of an earlier release tells may be as processes have chosen it.
    printable(value.as_str().unwrap_or("-")).into_owned()
}
