// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What came of the packets of a run, counted.

use freeport_ebpf::interpreter::{Abort, Outcome, Redirect, verdict};
use std::collections::BTreeMap;

/// Numbers of refused packets that are kept; further ones are only counted.
const NUMBERS_MAX: usize = 10;

/// Counters. Memory is only needed where something is seen for the first time.
#[derive(Default)]
pub struct Tally {
    packets: u64,
    bytes: u64,
    verdicts: BTreeMap<u32, u64>,
    redirects: BTreeMap<Redirect, u64>,
    aborts: BTreeMap<(usize, usize), Aborts>,
    /// How many packets took how many executed instructions.
    instructions: BTreeMap<u64, u64>,
    refused: u64,
    refused_numbers: Vec<u64>,
}

/// Packets for which the interpreter ended a program at one instruction.
pub struct Aborts {
    /// The first one's.
    pub abort: Abort,
    /// Its number.
    pub first: u64,
    /// How many.
    pub packets: u64,
}

/// Executed instructions per packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Instructions {
    pub mean: f64,
    pub median: u64,
    pub percentile_99: u64,
    pub most: u64,
}

impl Tally {
    /// Counts a packet that was run, with the interpreter's outcome if it ran there.
    pub fn count(&mut self, number: u64, bytes: usize, verdict: u32, outcome: Option<&Outcome>) {
        self.packets += 1;
        self.bytes += bytes as u64;
        *self.verdicts.entry(verdict).or_default() += 1;
        let Some(outcome) = outcome else { return };
        *self.instructions.entry(outcome.instructions).or_default() += 1;
        if let Some(redirect) = outcome.redirect {
            *self.redirects.entry(redirect).or_default() += 1;
        }
        if let Some(abort) = &outcome.aborted {
            let new = || Aborts { abort: abort.clone(), first: number, packets: 0 };
            self.aborts.entry((abort.program, abort.slot)).or_insert_with(new).packets += 1;
        }
    }

    /// Counts a packet that a target does not take.
    pub fn refuse(&mut self, number: u64) {
        self.refused += 1;
        if self.refused_numbers.len() < NUMBERS_MAX {
            self.refused_numbers.push(number);
        }
    }

    /// Packets that were run.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Their bytes as they came.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All verdicts of the kernel, and others that were given, with their packets.
    pub fn verdicts(&self) -> BTreeMap<u32, u64> {
        let known = (verdict::ABORTED..=verdict::REDIRECT).map(|verdict| (verdict, 0));
        let mut verdicts: BTreeMap<u32, u64> = known.collect();
        verdicts.extend(&self.verdicts);
        verdicts
    }

    /// Where packets were redirected to, as far as it is known.
    pub fn redirects(&self) -> &BTreeMap<Redirect, u64> {
        &self.redirects
    }

    /// Where the interpreter ended programs.
    pub fn aborts(&self) -> impl Iterator<Item = &Aborts> {
        self.aborts.values()
    }

    /// How many packets were refused, and the numbers of the first ones.
    pub fn refused(&self) -> (u64, &[u64]) {
        (self.refused, &self.refused_numbers)
    }

    /// What the interpreter executed, if anything ran there.
    pub fn instructions(&self) -> Option<Instructions> {
        let (&most, _) = self.instructions.last_key_value()?;
        let count: u64 = self.instructions.values().sum();
        let all = self
            .instructions
            .iter()
            .map(|(&each, &packets)| u128::from(each) * u128::from(packets));
        Some(Instructions {
            mean: all.sum::<u128>() as f64 / count as f64,
            median: self.percentile(count, 50),
            percentile_99: self.percentile(count, 99),
            most,
        })
    }

    /// The least number that is enough for that many packets of a hundred.
    fn percentile(&self, count: u64, percent: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let found = self.instructions.iter().find(|&(_, &packets)| {
            seen += u128::from(packets);
            seen >= rank
        });
        found.map_or(0, |(&each, _)| each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(instructions: u64) -> Outcome {
        let verdict = verdict::PASS;
        Outcome { verdict, value: 2, aborted: None, instructions, redirect: None }
    }

    #[test]
    fn percentiles_are_of_packets() {
        let mut tally = Tally::default();
        assert_eq!(tally.instructions(), None);
        for number in 1..=200 {
            tally.count(number, 60, 2, Some(&outcome(number)));
        }
        let expected = Instructions { mean: 100.5, median: 100, percentile_99: 198, most: 200 };
        assert_eq!(tally.instructions(), Some(expected));
        assert_eq!((tally.packets(), tally.bytes()), (200, 12_000));
    }

    #[test]
    fn every_verdict_has_a_place_and_others_are_added() {
        let mut tally = Tally::default();
        tally.count(1, 60, 7, None);
        tally.count(2, 60, 2, None);
        let verdicts = [(0, 0), (1, 0), (2, 1), (3, 0), (4, 0), (7, 1)];
        assert_eq!(tally.verdicts().into_iter().collect::<Vec<_>>(), verdicts);
        (3..40).for_each(|number| tally.refuse(number));
        assert_eq!(tally.refused(), (37, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12][..]));
    }
}
