// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics of a running program. A figure that a target cannot report is unknown, not 0.

mod text;

use crate::Stop;
use crate::counters::{Counters, PortCounters, VERDICTS};
use freeport_ebpf::interpreter::verdict;
use freeport_ebpf::object::Object;
use freeport_xdp::ended;
use serde_json::{Map, Value, json};

/// Reasons for which the card stops a program, by their numbers from 1
/// (docs/internals/sephirot.md).
const CARD_REASONS: [&str; 6] = [
    "it accessed memory that does not belong to it",
    "it took more cycles than the watchdog allows",
    "it jumped to a row that does not exist",
    "it executed an instruction that does not exist",
    "it called a helper that does not exist",
    "its function calls are nested too deeply",
];

/// Packets with their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes in them.
    pub bytes: u64,
}

/// All statistics of a running program.
#[derive(Clone, Debug)]
pub struct Statistics {
    ports: Vec<PortRow>,
    stopped: Vec<StoppedRow>,
    stopped_elsewhere: u64,
    /// Target that counted the figures.
    target: &'static str,
    figures: Vec<(&'static str, Option<u64>)>,
}

/// Statistics of a port.
#[derive(Clone, Debug)]
pub struct PortRow {
    /// Name as the user wrote it.
    pub name: String,
    /// Device number.
    pub ifindex: u32,
    /// Packets received and sent, by direction; `None` is unknown.
    pub ways: Vec<(&'static str, Option<Count>)>,
    /// By verdict, if known.
    pub verdicts: Option<[Count; VERDICTS]>,
    /// Drops by reason, if known.
    pub drops: Option<Vec<(String, u64)>>,
}

/// Packets for which a program was aborted at one place.
#[derive(Clone, Debug)]
struct StoppedRow {
    what: String,
    /// Source line, if known.
    line: Option<String>,
    packets: u64,
}

impl Count {
    /// Counts a packet.
    pub fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

impl PortRow {
    /// Creates the row of a port whose packets were counted here; the port itself lost `lost` more.
    pub fn of_counters(name: &str, ifindex: u32, counters: &PortCounters, lost: u64) -> Self {
        let drops = counters.drops.iter().map(|(why, packets)| (why.to_string(), *packets));
        let lost = (lost > 0).then(|| ("lost in the interface or its rings".to_owned(), lost));
        Self {
            name: name.to_owned(),
            ifindex,
            ways: vec![
                ("received", Some(counters.received)),
                ("sent", Some(counters.sent)),
                ("to host", Some(counters.to_host)),
                ("from host", Some(counters.from_host)),
            ],
            verdicts: Some(counters.verdicts),
            drops: Some(drops.chain(lost).collect()),
        }
    }

    fn as_json(&self) -> Value {
        let mut row = json!({ "port": self.name, "ifindex": self.ifindex });
        for (name, count) in &self.ways {
            row[name.replace(' ', "_")] = count.map_or(Value::Null, Count::as_json);
        }
        row["verdicts"] = self.verdicts.map_or(Value::Null, |verdicts| {
            let named = verdicts.into_iter().enumerate();
            named.map(|(at, count)| (verdict_name(at).to_owned(), count.as_json())).collect()
        });
        row
    }
}

impl Count {
    fn as_json(self) -> Value {
        json!({ "packets": self.packets, "bytes": self.bytes })
    }
}

/// Returns the name of a verdict by its index among the counters.
fn verdict_name(place: usize) -> &'static str {
    verdict::name(place as u32).unwrap_or("no verdict")
}

impl Statistics {
    /// Creates statistics of ports, with the figures that the target counts itself.
    pub fn new(
        ports: Vec<PortRow>,
        target: &'static str,
        figures: Vec<(&'static str, Option<u64>)>,
    ) -> Self {
        Self { ports, stopped: vec![], stopped_elsewhere: 0, target, figures }
    }

    /// Adds the places where programs of an object were aborted.
    #[must_use]
    pub fn with_stopped(mut self, counters: &Counters, object: &Object) -> Self {
        let rows = counters.stopped().map(|stopped| {
            let (what, line) = match &stopped.stop {
                Stop::At(abort) => {
                    let line = ended::line(object, abort).map(|line| line.text.trim().to_owned());
                    (ended::abort(object, abort), line)
                }
                Stop::Card(reason) => (card_reason(*reason), None),
            };
            StoppedRow { what, line, packets: stopped.packets }
        });
        self.stopped = rows.collect();
        self.stopped_elsewhere = counters.stopped_elsewhere;
        self
    }

    /// Returns the statistics as JSON, for scripts.
    pub fn as_json(&self) -> Value {
        let drops = self.ports.iter().flat_map(|port| {
            let drops = port.drops.iter().flatten();
            drops.map(|(reason, packets)| {
                json!({ "port": port.name, "reason": reason, "packets": packets })
            })
        });
        let ended = self
            .stopped
            .iter()
            .map(|row| json!({ "what": row.what, "line": row.line, "packets": row.packets }));
        let figures = self.figures.iter();
        let figures = figures.map(|(name, value)| (name.replace(' ', "_"), json!(value)));
        json!({
            "ports": self.ports.iter().map(PortRow::as_json).collect::<Vec<_>>(),
            "drops": drops.collect::<Vec<_>>(),
            "ended": ended.collect::<Vec<_>>(),
            "ended_elsewhere": self.stopped_elsewhere,
            "counted_by": self.target,
            "target": figures.collect::<Map<String, Value>>(),
        })
    }
}

fn card_reason(reason: u32) -> String {
    let known = CARD_REASONS.get((reason as usize).wrapping_sub(1));
    let what = known.map_or_else(|| format!("reason {reason}"), |known| (*known).to_owned());
    format!("stopped by the card: {what}")
}
