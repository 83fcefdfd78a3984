// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two targets on a scenario: the same packets one by one, in streams, or cut at every length, with
//! state carried along.

use super::Scenario;
use crate::compare::{Comparison, Disagreement, Unsteady};
use crate::traffic::{Packet, Traffic};
use crate::{Arrival, Departure, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Names of the targets in messages.
const NAMES: [&str; 2] = ["reference", "subject"];

/// Number of packets by verdict.
type Verdicts = BTreeMap<u32, usize>;

/// Parameters of packet streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    /// Number of packets in total.
    pub packets: u64,
    /// Packets that the subject processes at a time.
    pub at_once: u64,
    /// Packets after which maps are compared, in addition to the end.
    pub maps_every: u64,
}

/// Lengths at which packets are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// Shortest and longest length that both targets accept.
    pub all: RangeInclusive<usize>,
    /// Up to this length every length is tried.
    pub dense_to: usize,
    /// Longer lengths are sampled: one of this number is tried; the seed determines which.
    pub one_of: usize,
}

/// Sets up two targets, runs `count` packets of a seed on both, and compares verdict, bytes and
/// metadata of each packet, and finally all maps. Returns the number of packets by verdict.
///
/// # Errors
/// The first difference, or the failure of a target.
pub fn compare(
    scenario: &Scenario,
    seed: u64,
    count: u64,
    reference: &mut dyn Target,
    subject: &mut dyn Target,
) -> Result<Verdicts, Disagreement> {
    let mut trial = Trial::new(scenario, [reference, subject])?;
    let mut traffic = Traffic::new(seed, scenario.kinds);
    for _ in 0..count {
        let packet = traffic.next_packet();
        trial.run(&packet.arrival())?;
        traffic.observe(trial.comparison.departure());
    }
    trial.compare_maps()?;
    Ok(trial.verdicts)
}

/// As [`compare`], with many packets at a time on the subject; maps are compared at intervals.
///
/// # Errors
/// As [`compare`].
pub fn compare_streams(
    scenario: &Scenario,
    seed: u64,
    streams: Streams,
    reference: &mut dyn Target,
    subject: &mut dyn Target,
) -> Result<Verdicts, Disagreement> {
    let mut trial = Trial::new(scenario, [reference, subject])?;
    let mut traffic = Traffic::new(seed, scenario.kinds);
    let mut maps_at = streams.maps_every;
    while trial.packets < streams.packets {
        let count = streams.at_once.min(streams.packets - trial.packets);
        trial.run_together(&mut traffic, count)?;
        if trial.packets >= maps_at {
            maps_at += streams.maps_every;
            trial.compare_maps()?;
        }
    }
    trial.compare_maps()?;
    Ok(trial.verdicts)
}

/// Sets up two targets and runs a packet of each of the scenario's kinds on both, cut at each
/// length up to its own; compares as [`compare`] does. Returns the number of packets.
///
/// # Errors
/// As [`compare`].
pub fn compare_lengths(
    scenario: &Scenario,
    seed: u64,
    lengths: &Lengths,
    reference: &mut dyn Target,
    subject: &mut dyn Target,
) -> Result<u64, Disagreement> {
    let mut trial = Trial::new(scenario, [reference, subject])?;
    let mut traffic = Traffic::new(seed, scenario.kinds);
    let mut seen = BTreeSet::new();
    for kind in scenario.kinds {
        if !seen.insert(format!("{kind:?}")) {
            continue;
        }
        let mut packet = traffic.whole_packet(*kind);
        let whole = std::mem::take(&mut packet.bytes);
        for length in lengths.of(whole.len(), seed) {
            packet.bytes.clear();
            packet.bytes.extend_from_slice(&whole[..length]);
            trial.run(&packet.arrival())?;
        }
    }
    trial.compare_maps()?;
    Ok(trial.packets)
}

impl Lengths {
    /// Returns the lengths for a packet in ascending order; its own length is always the last.
    fn of(&self, whole: usize, seed: u64) -> impl Iterator<Item = usize> {
        let longest = whole.min(*self.all.end());
        let (dense_to, one_of) = (self.dense_to, self.one_of.max(1));
        (*self.all.start()..=longest).filter(move |&length| {
            length <= dense_to
                || length == longest
                || (length + seed as usize).is_multiple_of(one_of)
        })
    }
}

/// Two targets with the same initial state.
struct Trial<'a> {
    scenario: &'a Scenario,
    targets: [&'a mut dyn Target; 2],
    comparison: Comparison,
    found: Vec<Departure>,
    packets: u64,
    verdicts: Verdicts,
}

impl<'a> Trial<'a> {
    fn new(
        scenario: &'a Scenario,
        mut targets: [&'a mut dyn Target; 2],
    ) -> Result<Self, Disagreement> {
        for (name, target) in NAMES.into_iter().zip(&mut targets) {
            let failed = |error| Disagreement::Failed { target: name, error };
            (scenario.set_up)(*target).map_err(failed)?;
        }
        let unsteady = scenario.unsteady.iter().map(|(map, bytes)| {
            let (map, bytes) = ((*map).to_owned(), bytes.clone());
            Unsteady { map, bytes }
        });
        let comparison = Comparison::new(NAMES, unsteady.collect());
        let (found, verdicts) = (vec![], Verdicts::new());
        Ok(Self { scenario, targets, comparison, found, packets: 0, verdicts })
    }

    fn run(&mut self, arrival: &Arrival<'_>) -> Result<(), Disagreement> {
        self.packets += 1;
        let [reference, subject] = &mut self.targets;
        let targets: [&mut dyn Target; 2] = [*reference, *subject];
        self.comparison.run(targets, self.scenario.program, self.packets, arrival)?;
        *self.verdicts.entry(self.comparison.departure().verdict).or_default() += 1;
        Ok(())
    }

    /// Runs the reference first, packet by packet, because later packets may be replies to earlier
    /// output.
    fn run_together(&mut self, traffic: &mut Traffic, count: u64) -> Result<(), Disagreement> {
        let failed = |target| move |error| Disagreement::Failed { target, error };
        let [reference, subject] = &mut self.targets;
        let program = self.scenario.program;
        let (mut packets, mut expected): (Vec<Packet>, Vec<_>) = (vec![], vec![]);
        for _ in 0..count {
            let packet = traffic.next_packet();
            let departure = reference.run(program, &packet.arrival()).map_err(failed(NAMES[0]))?;
            traffic.observe(&departure);
            *self.verdicts.entry(departure.verdict).or_default() += 1;
            packets.push(packet);
            expected.push(departure);
        }
        let arrivals: Vec<_> = packets.iter().map(Packet::arrival).collect();
        subject.run_all(program, &arrivals, &mut self.found).map_err(failed(NAMES[1]))?;
        for ((arrival, expected), found) in arrivals.iter().zip(&expected).zip(&self.found) {
            self.packets += 1;
            self.comparison.same(self.packets, arrival, expected, found)?;
        }
        Ok(())
    }

    fn compare_maps(&mut self) -> Result<(), Disagreement> {
        let [reference, subject] = &mut self.targets;
        for map in self.comparison.map_names([&**reference, &**subject])? {
            self.comparison.map([&mut **reference, &mut **subject], &map)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lengths_are_all_tried_and_long_ones_in_turn() {
        let lengths = Lengths { all: 14..=100, dense_to: 16, one_of: 10 };
        let of = |whole, seed| lengths.of(whole, seed).collect::<Vec<_>>();
        assert_eq!(of(43, 1), [14, 15, 16, 19, 29, 39, 43]);
        assert_eq!(of(43, 8), [14, 15, 16, 22, 32, 42, 43]);
        assert_eq!(of(12, 8), Vec::<usize>::new());
        assert_eq!(of(200, 1).last(), Some(&100));
        let every = Lengths { all: 1..=3520, dense_to: usize::MAX, one_of: 1 };
        assert_eq!(every.of(60, 3).count(), 60);
    }
}
