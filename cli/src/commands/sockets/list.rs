// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets list`: the gain of each program, its accelerated connections, and those in the
//! kernel with the reason.

use super::figures::{short, time, times};
use clap::Args;
use freeport_monitor::activity::{
    Activity, Costs, Counts, Existence, Existing, InKernel, Key, ProgramRates, Snapshot,
};
use freeport_monitor::{Control, printable};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets list\n  freeport sockets list --all\n  \
                  freeport sockets list --json\n\n\
                  Values marked est. are estimates from counters of the programs: see \
                  docs/guide/operating.md.")]
pub struct Arguments {
    /// List each connection in the kernel, and refusals of sockets that are closed
    #[arg(long)]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Lists programs and connections.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let mut list = control.list()?;
    if let Some(connections) = list["connections"].as_array_mut() {
        connections.sort_by_key(|it| std::cmp::Reverse(bytes(it)));
    }
    mark_existing(&mut list);
    let snapshot = Snapshot::of(&list, Instant::now());
    let costs = Costs::measured();
    let mut activity = Activity::until(&snapshot, &costs);
    activity.sort(Key::Bytes);
    if arguments.json {
        let programs = activity.programs.iter().map(ProgramRates::totals_to_json);
        list["programs"] = programs.collect();
        list["costs"] = costs.to_json();
        println!("{list}");
        return Ok(());
    }
    for program in &activity.programs {
        println!("{}", summary(program));
    }
    for connection in list["connections"].as_array().into_iter().flatten() {
        // Connections that returned to the kernel are counted below.
        if arguments.all || connection["reason"].is_null() {
            println!("{}", shown(connection));
        }
    }
    if activity.ends.is_empty() {
        println!("no connection is accelerated");
    }
    match arguments.all {
        true => each(&list),
        false => print_counted(&activity.in_kernel, &list),
    }
    Ok(())
}

/// Bytes of both directions.
fn bytes(connection: &Value) -> u64 {
    let ends = connection["ends"].as_array().into_iter().flatten();
    ends.fold(0, |sum, end| sum.saturating_add(end["sent_bytes"].as_u64().unwrap_or_default()))
}

/// Adds to each socket that the monitor remembers whether it still exists; null: its process may
/// not be inspected.
fn mark_existing(list: &mut Value) {
    let mut existing = Existing::default();
    for name in ["refused", "kept"] {
        for end in list[name].as_array_mut().into_iter().flatten() {
            let pid = end["pid"].as_i64().and_then(|it| it.try_into().ok()).unwrap_or_default();
            let found = existing.look(pid, end["inode"].as_u64().unwrap_or_default());
            end["exists"] = match found {
                Existence::Open(_) => json!(true),
                Existence::Gone => json!(false),
                Existence::Hidden => Value::Null,
            };
            if let Existence::Open(number) = found {
                end["descriptor"] = number.into();
            }
        }
    }
}

/// Describes a program in a line.
fn summary(program: &ProgramRates) -> String {
    let Counts { sent_bytes, received_bytes, .. } = program.rates.counts;
    let estimate = program.rates.estimate;
    let mut text = format!(
        "program {} {}: {} accelerated ends, {} in the kernel",
        program.pid,
        printable(&program.command),
        program.accelerated,
        program.in_kernel,
    );
    if program.rates.counts != Counts::default() {
        text += &format!(
            "; {}B sent and {}B received past the kernel in {} messages; saved {} of processor \
             time, {} (est.)",
            short(sent_bytes as f64),
            short(received_bytes as f64),
            short(program.rates.counts.messages() as f64),
            time(estimate.saved_seconds()),
            times(estimate.gain()),
        );
    }
    text
}

/// Prints the number of sockets in the kernel, by program and reason, and the number of refusals of
/// closed sockets.
fn print_counted(in_kernel: &[InKernel], list: &Value) {
    let mut counted: BTreeMap<(i32, &str), (usize, &InKernel)> = BTreeMap::new();
    for end in in_kernel {
        counted.entry((end.pid, &end.reason)).or_insert((0, end)).0 += 1;
    }
    for ((pid, reason), (count, end)) in counted {
        let (command, text) = (printable(&end.command), printable(&end.text));
        // As an argument of `why`, which may know more.
        let one = end.descriptor.map_or_else(String::new, |it| format!(" ({pid}:{it})"));
        println!("kernel  {pid} {command}: {count} {}: {text}{one}", printable(reason));
    }
    let gone = list["refused"].as_array().into_iter().flatten();
    let gone = gone.filter(|it| it["exists"] == false).count();
    if gone > 0 {
        println!("refused and closed: {gone}; --all lists them");
    }
}

/// Prints each socket in the kernel that the monitor remembers.
fn each(list: &Value) {
    for name in ["refused", "kept"] {
        for reported in list[name].as_array().into_iter().flatten() {
            let gone = if reported["exists"] == false { ", closed" } else { "" };
            let text = why(reported, &word(&reported["text"]));
            println!(
                "kernel  {}{gone}\n        {}: {text}",
                end(reported),
                word(&reported["reason"])
            );
        }
    }
}

/// Describes why an end is in the kernel, and since when.
pub fn why(refusal: &Value, text: &str) -> String {
    let (times, ago) = (&refusal["times"], &refusal["seconds_ago"]);
    match refusal["reason"].as_str() {
        // Not refused: it was accelerated before.
        Some("HandedOn" | "Recalled") => format!("{text} ({ago} s ago)"),
        // Reported by the library of the process.
        _ if times.is_null() => format!("{text} ({ago} s ago)"),
        _ => format!("{text} (refused {times} times, {ago} s ago)"),
    }
}

/// Describes a connection in up to three lines.
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
        Some(1) => text += "\n        1 more connection reused this stream",
        Some(more) => text += &format!("\n        {more} more connections reused this stream"),
    }
    text
}

fn state(side: &Value) -> &'static str {
    let is = |name: &str| side[name] == true;
    if is("closed") {
        "closed"
    } else if is("leaves") {
        "back in the kernel"
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

/// Describes an end by its process and its address.
fn end(side: &Value) -> String {
    let (pid, descriptor) = (&side["pid"], &side["descriptor"]);
    let command = word(&side["command"]);
    let descriptor = descriptor.as_i64().map_or_else(|| "?".to_owned(), |it| it.to_string());
    match side["local"].as_str() {
        Some(local) => format!("{pid}:{descriptor} {command} {}", printable(local)),
        None => format!("{pid}:{descriptor} {command}"),
    }
}

fn word(value: &Value) -> String {
    // A monitor of an earlier release does not escape text that processes have chosen.
    printable(value.as_str().unwrap_or("-")).into_owned()
}
