// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters of a run.

use super::distribution::{Distribution, PerPacket};
use freeport_ebpf::interpreter::{Abort, Outcome, Redirect, verdict};
use freeport_vliw::model::Statistics;
use std::collections::BTreeMap;

/// Maximum number of refused packets whose numbers are kept; more are only counted.
const NUMBERS_MAX: usize = 10;

/// Counters. Memory is allocated only when a value is seen for the first time.
#[derive(Default)]
pub struct Tally {
    packets: u64,
    bytes: u64,
    verdicts: BTreeMap<u32, u64>,
    redirects: BTreeMap<Redirect, u64>,
    aborts: BTreeMap<(usize, usize), Aborts>,
    instructions: Distribution,
    rows: Distribution,
    operations: Distribution,
    jumps: Distribution,
    cycles: Distribution,
    refused: u64,
    refused_numbers: Vec<u64>,
}

/// Results of a packet that targets in user space report.
#[derive(Default)]
pub struct Reported<'t> {
    /// Outcome on the first of them.
    pub outcome: Option<&'t Outcome>,
    /// Number of instructions that the interpreter executed.
    pub instructions: Option<u64>,
    /// Counters of the model of the processor.
    pub statistics: Option<&'t Statistics>,
    /// Cycles of the simulated card, from the first beat to the verdict.
    pub cycles: Option<u64>,
}

/// Packets for which a target in user space aborted the program at the same instruction.
pub struct Aborts {
    /// The first abort.
    pub abort: Abort,
    /// Number of its packet.
    pub first: u64,
    /// Number of packets.
    pub packets: u64,
}

impl Tally {
    /// Counts a packet that was run, with its results.
    pub fn count(&mut self, number: u64, bytes: usize, verdict: u32, reported: &Reported<'_>) {
        self.packets += 1;
        self.bytes += bytes as u64;
        *self.verdicts.entry(verdict).or_default() += 1;
        if let Some(instructions) = reported.instructions {
            self.instructions.count(instructions);
        }
        if let Some(cycles) = reported.cycles {
            self.cycles.count(cycles);
        }
        if let Some(statistics) = reported.statistics {
            self.rows.count(statistics.rows);
            self.operations.count(statistics.operations);
            self.jumps.count(statistics.jumps);
        }
        let Some(outcome) = reported.outcome else { return };
        if let Some(redirect) = outcome.redirect {
            *self.redirects.entry(redirect).or_default() += 1;
        }
        if let Some(abort) = &outcome.aborted {
            let new = || Aborts { abort: abort.clone(), first: number, packets: 0 };
            self.aborts.entry((abort.program, abort.slot)).or_insert_with(new).packets += 1;
        }
    }

    /// Counts a packet that a target does not support.
    pub fn refuse(&mut self, number: u64) {
        self.refused += 1;
        if self.refused_numbers.len() < NUMBERS_MAX {
            self.refused_numbers.push(number);
        }
    }

    /// Number of packets that were run.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Number of their bytes on arrival.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of packets by verdict: all verdicts of the kernel, and others that occurred.
    pub fn verdicts(&self) -> BTreeMap<u32, u64> {
        let known = (verdict::ABORTED..=verdict::REDIRECT).map(|verdict| (verdict, 0));
        let mut verdicts: BTreeMap<u32, u64> = known.collect();
        verdicts.extend(&self.verdicts);
        verdicts
    }

    /// Number of packets by target of the redirection, as far as known.
    pub fn redirects(&self) -> &BTreeMap<Redirect, u64> {
        &self.redirects
    }

    /// Aborts, by instruction.
    pub fn aborts(&self) -> impl Iterator<Item = &Aborts> {
        self.aborts.values()
    }

    /// Number of refused packets, and the numbers of the first ones.
    pub fn refused(&self) -> (u64, &[u64]) {
        (self.refused, &self.refused_numbers)
    }

    /// Instructions per packet, if the interpreter ran.
    pub fn instructions(&self) -> Option<PerPacket> {
        self.instructions.per_packet()
    }

    /// Cycles per packet, if the simulated card ran.
    pub fn cycles(&self) -> Option<PerPacket> {
        self.cycles.per_packet()
    }

    /// Named counters per packet, if the model of the processor ran.
    pub fn model(&self) -> Option<[(&'static str, PerPacket); 3]> {
        Some([
            ("rows", self.rows.per_packet()?),
            ("operations", self.operations.per_packet()?),
            ("jumps taken", self.jumps.per_packet()?),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_counted_by_itself() {
        let statistics = |rows| Statistics { rows, operations: 2 * rows, ..Statistics::default() };
        let mut tally = Tally::default();
        assert!(tally.instructions().is_none() && tally.model().is_none());
        for number in 1..=3 {
            let statistics = statistics(number);
            let reported = Reported { statistics: Some(&statistics), ..Reported::default() };
            tally.count(number, 60, 2, &reported);
        }
        assert!(tally.instructions().is_none());
        let most = tally.model().map(|model| model.map(|(name, each)| (name, each.most)));
        assert_eq!(most, Some([("rows", 3), ("operations", 6), ("jumps taken", 0)]));
        assert_eq!((tally.packets(), tally.bytes()), (3, 180));
        tally.count(4, 60, 2, &Reported { instructions: Some(7), ..Reported::default() });
        assert_eq!(tally.instructions().map(|each| each.mean), Some(7.0));
    }

    #[test]
    fn every_verdict_has_a_place_and_others_are_added() {
        let mut tally = Tally::default();
        tally.count(1, 60, 7, &Reported::default());
        tally.count(2, 60, 2, &Reported::default());
        let verdicts = [(0, 0), (1, 0), (2, 1), (3, 0), (4, 0), (7, 1)];
        assert_eq!(tally.verdicts().into_iter().collect::<Vec<_>>(), verdicts);
        (3..40).for_each(|number| tally.refuse(number));
        assert_eq!(tally.refused(), (37, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12][..]));
    }
}
