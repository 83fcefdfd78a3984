// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of an estimate, as text and as JSON.

use super::super::run::json::figures_json;
use super::super::run::report::figures;
use super::{BEAT_BYTES, Estimate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Counters of the card for verdicts.
pub const VERDICTS: [&str; 6] =
    ["aborted", "dropped", "passed", "sent_back", "redirected", "other_verdicts"];
/// Percentage of cycles with a beat from which on the bus counts as the limit.
const BUSY_PERCENT: f64 = 95.0;

impl Estimate<'_> {
    /// Million packets per second at the assumed clock.
    fn mpps(&self) -> f64 {
        self.clock_mhz / self.counted.cycles.mean
    }

    fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 / self.clock_mhz * 1e3
    }

    /// Percentage of cycles with a beat of an arriving packet.
    fn busy_percent(&self) -> f64 {
        100.0 * self.beats / self.counted.cycles.mean
    }

    /// Whether the bus that delivers packets is the limit, and not the processor.
    fn is_bound_by_bus(&self) -> bool {
        self.busy_percent() >= BUSY_PERCENT
    }

    /// Percentage of packets on the busiest core.
    fn busiest_percent(&self) -> f64 {
        let most = self.counted.by_core.iter().copied().max().unwrap_or(0);
        100.0 * most as f64 / self.packets as f64
    }

    /// The report as JSON.
    pub fn as_json(&self) -> Value {
        let spent = self.counted.spent.iter().map(|(name, _, mean)| (*name, *mean));
        let verdicts = self.counted.verdicts.iter().copied();
        let limit = if self.is_bound_by_bus() { "bus" } else { "processor" };
        json!({
            "kind": "simulated",
            "program": self.program,
            "profile": self.schedule.is_profiled(),
            "profile_left_out": self.schedule.left_out(),
            "packets": self.packets,
            "refused": self.refused,
            "packets_by_core": self.counted.by_core,
            "verdicts": verdicts.collect::<BTreeMap<_, _>>(),
            "cycles": figures_json(self.counted.cycles),
            "assumed_clock_mhz": self.clock_mhz,
            "mpps_at_clock": self.mpps(),
            "latency": {
                "p50_cycles": self.counted.latency.median,
                "p99_cycles": self.counted.latency.percentile_99,
                "p50_ns": self.ns(self.counted.latency.median),
                "p99_ns": self.ns(self.counted.latency.percentile_99),
            },
            "bus": {
                "beat_bytes": BEAT_BYTES,
                "beats_per_packet": self.beats,
                "mpps_at_clock": self.clock_mhz / self.beats,
                "busy_percent": self.busy_percent(),
                "packets_of_more_beats_than_p50_cycles": self.long_packets,
            },
            "limit": limit,
            "spent_per_packet": spent.collect::<BTreeMap<_, _>>(),
            "rows": self.counted.rows,
            "rows_of_card": self.counted.card.rows,
            "map_bytes": self.counted.map_bytes,
            "map_bytes_of_card": self.counted.card.map_bytes,
        })
    }
}

/// The report as text.
impl fmt::Display for Estimate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, packets, clock_mhz, .. } = self;
        let card = &self.counted.card;
        let profile = match self.schedule.is_profiled() {
            true => "scheduled for the ways of these packets",
            false => "without a profile",
        };
        writeln!(f, "program `{program}` on the simulated card, {profile}: {packets} packets")?;
        if let Some(reason) = self.schedule.left_out() {
            writeln!(f, "the schedule for the ways of these packets is left out: {reason}")?;
        }
        if self.refused > 0 {
            let lengths = freeport_card::Sim::LENGTHS;
            let (least, most) = (lengths.start(), lengths.end());
            writeln!(
                f,
                "{} packets are left out, since the card takes {least} to {most} bytes",
                self.refused
            )?;
        }
        let named = |(name, packets): &(&str, u64)| format!("{} {packets}", name.replace('_', " "));
        let verdicts: Vec<String> = self.counted.verdicts.iter().map(named).collect();
        writeln!(f, "verdicts: {}", verdicts.join(", "))?;
        writeln!(f, "\ncycles from one verdict to the next, packets without a gap:")?;
        writeln!(f, "  {}", figures(&self.counted.cycles))?;
        writeln!(f, "  {:.2} Mpps: cycles at an assumed clock of {clock_mhz} MHz", self.mpps())?;
        writeln!(f, "latency under that load, from a packet's first beat to its verdict:")?;
        let (median, most) = (self.counted.latency.median, self.counted.latency.percentile_99);
        let (median_ns, most_ns) = (self.ns(median), self.ns(most));
        writeln!(f, "  p50 {median} cycles ({median_ns:.0} ns), p99 {most} ({most_ns:.0} ns)")?;
        if self.counted.by_core.len() > 1 {
            let (cores, most) = (self.counted.by_core.len(), self.busiest_percent());
            writeln!(f, "{cores} cores, of which one has {most:.0} % of the packets")?;
        }
        writeln!(
            f,
            "what limits it: {}",
            match self.is_bound_by_bus() {
                true => "the bus",
                false if self.counted.by_core.len() > 1 => "the processors",
                false => "the processor",
            }
        )?;
        let (beats, bound) = (self.beats, clock_mhz / self.beats);
        let busy = self.busy_percent().min(100.0);
        writeln!(
            f,
            "  {beats:.1} beats of {BEAT_BYTES} bytes per packet, {bound:.2} Mpps at most"
        )?;
        writeln!(f, "  the bus has a beat in {busy:.0} % of the cycles")?;
        if self.long_packets > 0 && !self.is_bound_by_bus() {
            let (long, median) = (self.long_packets, self.counted.cycles.median);
            writeln!(
                f,
                "  {long} packets have more than {median} beats: those may wait for the bus"
            )?;
        }
        let whose = match self.counted.by_core.len() {
            0 | 1 => "the processor's cycles go, per packet".to_owned(),
            cores => format!("the cycles of {cores} processors go, per packet"),
        };
        writeln!(f, "where {whose}:")?;
        let of = |(_, name, mean): &(_, &str, f64)| format!("{name} {mean:.1}");
        let spent: Vec<String> = self.counted.spent.iter().map(of).collect();
        spent.chunks(4).try_for_each(|line| writeln!(f, "  {}", line.join(", ")))?;
        writeln!(f, "the object takes:")?;
        writeln!(f, "  {} of {} rows of instruction memory", self.counted.rows, card.rows)?;
        writeln!(f, "  {} of {} bytes of map memory", self.counted.map_bytes, card.map_bytes)
    }
}
