// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The screen of `top`: a line of totals, the column names, and for each program a line with its
//! connections below.

use crate::commands::sockets::figures::{column, percent, short, time, times};
use freeport_monitor::activity::{Activity, EndRates, InKernel, Key, ProgramRates, Rates};
use freeport_monitor::printable;
use std::collections::HashMap;

/// Widths of the columns before the numbers.
const PROGRAM: usize = 17;
const PID: usize = 7;
const CONNECTION: usize = 43;
const TRANSPORT: usize = 8;
/// Names of the numeric columns; each is at least [`NUMBER`] wide.
const NUMBERS: [&str; 8] = [
    "MSG/S out",
    "MSG/S in",
    "BYTES/S out",
    "BYTES/S in",
    "BELLS/S",
    "SLEPT",
    "SAVED/S est.",
    "GAIN est.",
];
const NUMBER: usize = 7;

/// Settings of the display.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// Sort key.
    pub key: Key,
    /// Whether the connections of each program are shown.
    pub has_connections: bool,
}

impl View {
    /// The view after a key.
    pub fn after(self, key: u8) -> Self {
        match key {
            b'b' => Self { key: Key::Bytes, ..self },
            b'm' => Self { key: Key::Messages, ..self },
            b'd' => Self { key: Key::Doorbells, ..self },
            b's' => Self { key: Key::Saved, ..self },
            b'c' => Self { has_connections: !self.has_connections, ..self },
            _ => self,
        }
    }
}

/// The lines, headings first, and the number of headings.
pub fn lines(activity: &Activity, view: View) -> (Vec<String>, usize) {
    let mut lines = vec![sums(activity, view), heads()];
    let heads = lines.len();
    let mut below: HashMap<i32, Vec<String>> = HashMap::new();
    if view.has_connections {
        let past = activity.ends.iter().map(|it| (it.end.pid, end_line(it)));
        let kernel = activity.in_kernel.iter().map(|it| (it.pid, kernel_line(it)));
        past.chain(kernel).for_each(|(pid, line)| below.entry(pid).or_default().push(line));
    }
    for program in &activity.programs {
        lines.push(program_line(program));
        lines.extend(below.remove(&program.pid).unwrap_or_default());
    }
    if activity.programs.is_empty() {
        lines.push("no program has connections; `freeport exec` starts one".to_owned());
    }
    (lines, heads)
}

fn sums(activity: &Activity, view: View) -> String {
    let key = match view.key {
        Key::Bytes => "bytes",
        Key::Messages => "messages",
        Key::Doorbells => "doorbells",
        Key::Saved => "saved (est.)",
    };
    // Each connection has two ends; the other one may belong to another user.
    let ends = activity.ends.len();
    let saved: f64 = activity.programs.iter().map(|it| it.rates.saved_processors()).sum();
    format!(
        "{} programs, {ends} accelerated ends, {} in the kernel; {:.1} s; {} processors saved \
         (est.); by {key}",
        activity.programs.len(),
        activity.in_kernel.len(),
        activity.seconds,
        short(saved),
    )
}

fn heads() -> String {
    let mut line = row("PROGRAM", "PID", "CONNECTION", "WAY");
    for name in NUMBERS {
        line += &format!(" {name:>width$}", width = width_of(name));
    }
    line
}

/// Width of a column: at least that of its name.
fn width_of(name: &str) -> usize {
    name.len().max(NUMBER)
}

fn row(program: &str, pid: &str, connection: &str, way: &str) -> String {
    format!(
        "{} {pid:>PID$} {} {}",
        column(program, PROGRAM),
        column(connection, CONNECTION),
        column(way, TRANSPORT),
    )
}

fn program_line(program: &ProgramRates) -> String {
    let ends = format!("{} accelerated, {} in the kernel", program.accelerated, program.in_kernel);
    let name = printable(&program.command);
    row(&name, &program.pid.to_string(), &ends, "all") + &numbers(&program.rates)
}

fn end_line(reported: &EndRates) -> String {
    let end = &reported.end;
    let peer = format!("{}:{}", printable(&end.peer_command), end.peer_pid);
    let addresses = addresses(end.local.as_deref(), end.remote.as_deref(), Some(&peer));
    let name = format!("  fd {}", end.descriptor);
    row(&name, &end.pid.to_string(), &addresses, end.family.name()) + &numbers(&reported.rates)
}

fn kernel_line(end: &InKernel) -> String {
    let addresses = addresses(end.local.as_deref(), end.remote.as_deref(), None);
    let name = end.descriptor.map_or_else(|| "  fd -".to_owned(), |it| format!("  fd {it}"));
    let line = row(&name, &end.pid.to_string(), &addresses, "kernel");
    format!("{line}  {}: {}", printable(&end.reason), printable(&end.text))
}

/// Local and remote address. A Unix socket has a path at one end only, so the peer is shown too.
fn addresses(local: Option<&str>, remote: Option<&str>, peer: Option<&str>) -> String {
    let shown = |address: Option<&str>| match address {
        None | Some("unix") => None,
        Some(address) => Some(printable(address).into_owned()),
    };
    match (shown(local), shown(remote), peer) {
        (Some(local), Some(remote), _) => format!("{local} > {remote}"),
        (Some(local), None, Some(peer)) => format!("{local} > {peer}"),
        (None, Some(remote), _) => format!("> {remote}"),
        (None, None, Some(peer)) => format!("> {peer}"),
        (Some(local), None, None) => local,
        (None, None, None) => "-".to_owned(),
    }
}

fn numbers(rates: &Rates) -> String {
    let counts = &rates.counts;
    let a_second = |count: u64| short(rates.per_second(count));
    let values = [
        a_second(counts.sends),
        a_second(counts.receives),
        a_second(counts.sent_bytes),
        a_second(counts.received_bytes),
        a_second(counts.doorbells),
        percent(counts.slept_share()),
        time(rates.saved_processors()),
        times(rates.estimate.gain()),
    ];
    let named = NUMBERS.iter().zip(values);
    named.map(|(name, value)| format!(" {value:>width$}", width = width_of(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_monitor::activity::{Costs, Snapshot};
    use serde_json::json;
    use std::time::{Duration, Instant};

    fn activity() -> Activity {
        let side = |pid: i32, name: &str, local: &str, remote: &str, sends: u64| {
            json!({"pid": pid, "command": name, "descriptor": 8, "inode": pid, "family": "tcp",
                   "local": local, "remote": remote, "sends": sends, "sent_bytes": 64 * sends,
                   "receives": 2000, "received_bytes": 4000, "sleeps": 500, "doorbells": 30})
        };
        let [here, there] = ["127.0.0.1:7000", "127.0.0.1:40112"];
        let ends = |sends| {
            [side(4711, "ser\x1bver", here, there, sends), side(4712, "client", there, here, 2000)]
        };
        let list = |sends| {
            json!({
                "connections": [
                    {"ends": ends(sends)},
                    {"reason": "HandedOn", "ends": ends(0)},
                ],
            })
        };
        let begun = Instant::now();
        let before = Snapshot::of(&list(0), begun);
        let after = Snapshot::of(&list(2000), begun + Duration::from_secs(2));
        let mut activity = Activity::between(&before, &after, &Costs::assumed());
        activity.sort(Key::Bytes);
        activity
    }

    #[test]
    fn programs_have_their_connections_below() {
        let view = View { key: Key::Bytes, has_connections: true };
        let (lines, heads) = lines(&activity(), view);
        assert_eq!((heads, lines.len()), (2, 8), "{lines:#?}");
        assert!(lines[0].starts_with("2 programs, 2 accelerated ends, 2 in the kernel; 2.0 s"));
        assert!(lines[0].ends_with("by bytes"), "{}", lines[0]);
        assert!(lines[1].contains("SAVED/S est.") && lines[1].contains("GAIN est."));
        assert!(lines[2].starts_with(r"ser\u{1b}ver         4711 1 accelerated, 1 in the kernel"));
        assert!(lines[3].contains(" 127.0.0.1:7000 > 127.0.0.1:40112 "), "{}", lines[3]);
        let words: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!(&words[6..12], ["tcp", "1k", "0", "64k", "0", "0"], "{words:?}");
        assert!(lines[4].contains("kernel") && lines[4].contains("HandedOn: "), "{}", lines[4]);
        let ends: Vec<usize> = lines[1..4].iter().map(|line| line.chars().count()).collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{lines:#?}");
    }

    #[test]
    fn connections_can_be_left_out_and_nothing_is_told() {
        let view = View { key: Key::Saved, has_connections: false };
        let (shown, heads) = lines(&activity(), view);
        assert_eq!(shown.len(), heads + 2);
        let nothing = Snapshot::of(&json!({}), Instant::now());
        let nothing = Activity::until(&nothing, &Costs::assumed());
        let (shown, _) = lines(&nothing, view);
        assert!(shown.last().unwrap().contains("no program has connections"), "{shown:?}");
    }

    #[test]
    fn keys_change_what_is_shown() {
        let view = View { key: Key::Bytes, has_connections: true };
        assert_eq!(view.after(b'd').key, Key::Doorbells);
        assert_eq!(view.after(b'c').after(b'c'), view);
        assert!(!view.after(b'c').after(b's').has_connections);
        assert_eq!(view.after(b'x'), view);
    }

    #[test]
    fn unix_sockets_are_known_by_their_path_or_their_peer() {
        assert_eq!(addresses(Some("/run/a"), Some("unix"), Some("it:7")), "/run/a > it:7");
        assert_eq!(addresses(Some("unix"), Some("/run/a"), Some("it:7")), "> /run/a");
        assert_eq!(addresses(Some("unix"), Some("unix"), Some("it:7")), "> it:7");
        assert_eq!(addresses(None, None, None), "-");
    }
}
