// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two targets in the surroundings of a scenario: the same packets, one by one, many behind each
//! other, or cut at every length, with state carried along.

use super::Scenario;
use crate::compare::{Comparison, Disagreement, Unsteady};
use crate::traffic::{Packet, Traffic};
use crate::{Arrival, Departure, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What the two targets are called.
const NAMES: [&str; 2] = ["reference", "subject"];

/// How often each verdict was.
type Verdicts = BTreeMap<u32, usize>;

/// Packets that come behind each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    /// How many in all.
    pub packets: u64,
    /// How many the subject has at once.
    pub at_once: u64,
    /// After how many packets maps are compared, beside at the end.
    pub maps_every: u64,
}

/// Lengths at which packets are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// The shortest and the longest that both targets take.
    pub all: RangeInclusive<usize>,
    /// Up to this length each is tried.
    pub dense_to: usize,
    /// Of longer ones one of so many, which ones depends on the seed.
    pub one_of: usize,
}

/// Sets two targets up, has both run `count` packets of a seed, and compares verdict, bytes and
/// metadata of each packet, and at last all maps. Gives how often each verdict was.
///
/// # Errors
/// The first difference, or what one of them could not do.
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

/// The same where the subject has many packets at once, and maps are compared now and then.
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

/// Sets two targets up, and has both run a packet of each kind of the scenario's, cut at one length
/// after the other up to its own; compares as [`compare`] does. Gives how many packets there were.
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
    /// Those of a packet, the shortest one first; its own is always among them.
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

/// Two targets that have been set up alike.
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

    /// The reference first, packet after packet, since what comes next may answer what it sent.
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
