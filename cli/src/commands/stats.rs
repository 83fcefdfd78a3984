// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport stats`: prints the counters of a running program, or their rates.

use crate::running::To;
use clap::Args;
use freeport_runtime::server::Client;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport stats --to fw\n  \
    freeport stats --to fw --json\n  \
    freeport stats --to fw --watch 1")]
pub struct Arguments {
    /// Print one JSON object
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print the Prometheus text exposition format
    #[arg(long, conflicts_with = "watch")]
    prometheus: bool,
    /// Print the rates of counters that changed, per second, at this interval; with --json, all
    /// counters
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watch: Option<f64>,
    /// End after this number of intervals
    #[arg(long, value_name = "NUMBER", requires = "watch")]
    times: Option<u64>,
    #[command(flatten)]
    to: To,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    let is_good = (0.01..=86_400.0).contains(&seconds);
    is_good.then_some(seconds).ok_or_else(|| "expected 0.01 to 86400".to_owned())
}

/// Prints the counters.
///
/// # Errors
/// No such running program.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = arguments.to.connect()?;
    if let Some(seconds) = arguments.watch {
        watch(&mut client, arguments, Duration::from_secs_f64(seconds))?;
        return Ok(ExitCode::SUCCESS);
    }
    let format = match (arguments.json, arguments.prometheus) {
        (true, _) => "json",
        (_, true) => "prometheus",
        _ => "text",
    };
    match client.ask(&json!({"do": "stats", "format": format}))? {
        Value::String(text) => print!("{text}"),
        object => println!("{object}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(client: &mut Client, arguments: &Arguments, every: Duration) -> anyhow::Result<()> {
    let mut before = client.ask(&json!({"do": "stats"}))?;
    let mut asked = Instant::now();
    let mut left = arguments.times;
    while left != Some(0) {
        left = left.map(|left| left - 1);
        std::thread::sleep(every);
        let now = client.ask(&json!({"do": "stats"}))?;
        let elapsed = asked.elapsed().as_secs_f64();
        asked = Instant::now();
        match arguments.json {
            true => println!("{now}"),
            false => print!("{}", rates(&before, &now, elapsed)),
        }
        before = now;
    }
    Ok(())
}

/// Members that state how full a channel is, and are not counters.
const FILL: [&str; 3] = ["waiting", "peak", "room"];

/// Lists of counters, and the members that identify a row. XDP programs have the last two lists.
const LISTS: [(&str, &[&str]); 5] = [
    ("instances", &["instance"]),
    ("channels", &["channel"]),
    ("endpoints", &["endpoint"]),
    ("ports", &["port"]),
    ("drops", &["port", "reason"]),
];

/// Adds the rate of each counter in an object and in the objects inside it.
fn add_growth(prefix: &str, before: &Value, now: &Value, seconds: f64, grown: &mut Vec<String>) {
    for (counter, value) in now.as_object().into_iter().flatten() {
        if FILL.contains(&counter.as_str()) {
            continue;
        }
        let (was, name) = (&before[counter], format!("{prefix}{counter}"));
        if value.is_object() {
            add_growth(&format!("{name} "), was, value, seconds, grown);
        } else if let Some(now) = value.as_u64() {
            let growth = now.checked_sub(was.as_u64().unwrap_or(0)).filter(|growth| *growth > 0);
            let rate = growth.map(|growth| format!("{name} {:.0}/s", growth as f64 / seconds));
            grown.extend(rate);
        }
    }
}

/// A line for each row whose counters have grown or that holds items, and an empty line.
fn rates(before: &Value, now: &Value, seconds: f64) -> String {
    let mut text = String::new();
    for (list, names) in LISTS {
        let rows = now[list].as_array().into_iter().flatten();
        for row in rows {
            let earlier = before[list].as_array().into_iter().flatten();
            // A replaced program has other rows.
            let is_the_same = |it: &&Value| names.iter().all(|name| it[*name] == row[*name]);
            let earlier = earlier.into_iter().find(is_the_same).unwrap_or(&Value::Null);
            let mut grown = vec![];
            add_growth("", earlier, row, seconds, &mut grown);
            let [waiting, peak, room] = FILL.map(|name| row[name].as_u64().unwrap_or(0));
            if waiting > 0 {
                grown.push(format!("{waiting} of {room} queued, peak {peak}"));
            }
            if !grown.is_empty() {
                let name = names.iter().filter_map(|name| row[*name].as_str());
                let name = name.collect::<Vec<_>>().join(", ");
                text += &format!("{name}: {}\n", grown.join(", "));
            }
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_what_has_grown() {
        let row =
            |frames: u64| json!({"endpoint": "from_tor", "direction": "in", "frames": frames});
        let stats = |frames| json!({"endpoints": [row(frames)], "channels": [], "instances": []});
        assert_eq!(rates(&stats(10), &stats(30), 2.0), "from_tor: frames 10/s\n\n");
        assert_eq!(rates(&stats(30), &stats(30), 2.0), "\n");
        assert_eq!(rates(&stats(30), &stats(4), 2.0), "\n", "counters that began anew");
        assert_eq!(rates(&json!({}), &stats(4), 2.0), "from_tor: frames 2/s\n\n");
        let full = |waiting: u64| {
            let row = json!({"channel": "a -> b", "waiting": waiting, "peak": 9, "room": 16});
            json!({"channels": [row]})
        };
        assert_eq!(rates(&full(1), &full(7), 2.0), "a -> b: 7 of 16 queued, peak 9\n\n");
        assert_eq!(rates(&full(1), &full(0), 2.0), "\n");
        let port = |packets: u64| {
            let sent = json!({"packets": packets});
            let row = json!({"port": "xdp:a", "ifindex": 3, "sent": sent, "received": null});
            let drop = json!({"port": "xdp:a", "reason": "full", "packets": packets});
            json!({"ports": [row], "drops": [drop]})
        };
        let expected = "xdp:a: sent packets 5/s\nxdp:a, full: packets 5/s\n\n";
        assert_eq!(rates(&port(10), &port(20), 2.0), expected);
    }
}
