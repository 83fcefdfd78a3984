// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The same packets to two targets, and what differs.

use crate::scenario::Scenario;
use crate::traffic::{Packet, Traffic};
use crate::{Arrival, Contents, Departure, Error, Target};
use std::collections::BTreeMap;
use std::fmt::Write;
use thiserror::Error as ThisError;

/// Why two targets are not taken to agree.
#[derive(Debug, ThisError)]
pub enum Disagreement {
    /// One of them could not do what it should.
    #[error("{target}: {error}")]
    Failed {
        /// Which.
        target: &'static str,
        /// What it says.
        error: Error,
    },
    /// A packet fared otherwise.
    #[error(
        "packet {number} (device {}, queue {}): {}\n\
         reference: {reference:?}\nsubject:   {subject:?}",
        packet.ingress_ifindex, packet.rx_queue_index, hexadecimal(&packet.bytes)
    )]
    Packet {
        /// How many came before it.
        number: usize,
        /// The packet.
        packet: Box<Packet>,
        /// What became of it.
        reference: Box<Departure>,
        /// What became of it.
        subject: Box<Departure>,
    },
    /// The maps do not have the same names.
    #[error("maps of the reference: {reference:?}, of the subject: {subject:?}")]
    Maps {
        /// Names.
        reference: Vec<String>,
        /// Names.
        subject: Vec<String>,
    },
    /// A map does not hold the same.
    #[error("map {map}: {difference}")]
    Contents {
        /// Its name.
        map: String,
        /// Its first difference.
        difference: String,
    },
}

/// Sets two targets up, has both run `count` packets of a seed, and compares verdict, bytes and
/// metadata of each packet, and at last all maps. Gives how often each verdict was.
///
/// # Errors
/// The first difference, or what one of them could not do.
pub fn compare(
    scenario: &Scenario,
    seed: u64,
    count: usize,
    reference: &mut dyn Target,
    subject: &mut dyn Target,
) -> Result<BTreeMap<u32, usize>, Disagreement> {
    let failed = |target| move |error| Disagreement::Failed { target, error };
    (scenario.set_up)(reference).map_err(failed("reference"))?;
    (scenario.set_up)(subject).map_err(failed("subject"))?;
    let mut traffic = Traffic::new(seed, scenario.kinds);
    let mut verdicts = BTreeMap::new();
    for number in 0..count {
        let packet = traffic.next_packet();
        let arrival = Arrival {
            bytes: &packet.bytes,
            ingress_ifindex: packet.ingress_ifindex,
            rx_queue_index: packet.rx_queue_index,
        };
        let expected = reference.run(scenario.program, &arrival).map_err(failed("reference"))?;
        let found = subject.run(scenario.program, &arrival).map_err(failed("subject"))?;
        if expected != found {
            let (reference, subject) = (expected.into(), found.into());
            let packet = packet.into();
            return Err(Disagreement::Packet { number, packet, reference, subject });
        }
        *verdicts.entry(expected.verdict).or_default() += 1;
        traffic.observe(&expected);
    }
    compare_maps(scenario, reference, subject)?;
    Ok(verdicts)
}

fn compare_maps(
    scenario: &Scenario,
    reference: &mut dyn Target,
    subject: &mut dyn Target,
) -> Result<(), Disagreement> {
    let sorted = |target: &dyn Target| {
        let mut names = target.maps();
        names.sort();
        names
    };
    let (names, others) = (sorted(reference), sorted(subject));
    if names != others {
        return Err(Disagreement::Maps { reference: names, subject: others });
    }
    for map in names {
        let failed = |target| move |error| Disagreement::Failed { target, error };
        let mut expected = reference.contents(&map).map_err(failed("reference"))?;
        let mut found = subject.contents(&map).map_err(failed("subject"))?;
        scenario.leave_out(&map, &mut expected);
        scenario.leave_out(&map, &mut found);
        if let Some(difference) = difference(&expected, &found) {
            return Err(Disagreement::Contents { map, difference });
        }
    }
    Ok(())
}

/// The first difference between the contents of a map, in words.
fn difference(expected: &Contents, found: &Contents) -> Option<String> {
    if expected == found {
        return None;
    }
    let say = |value: Option<&Vec<u8>>| value.map_or("nothing".into(), |value| hexadecimal(value));
    Some(match (expected, found) {
        (Contents::Entries(expected), Contents::Entries(found)) => {
            let mut keys = expected.keys().chain(found.keys());
            let key = keys.find(|key| expected.get(*key) != found.get(*key))?;
            let (reference, subject) = (say(expected.get(key)), say(found.get(key)));
            format!("key {}: reference {reference}, subject {subject}", hexadecimal(key))
        }
        (Contents::Items(expected), Contents::Items(found)) => {
            let longer = expected.len().max(found.len());
            let at = (0..longer).find(|&at| expected.get(at) != found.get(at))?;
            let (reference, subject) = (say(expected.get(at)), say(found.get(at)));
            format!("item {at}: reference {reference}, subject {subject}")
        }
        _ => format!("reference {expected:?}, subject {found:?}"),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let entries = |value: u8| Contents::Entries([(vec![1], vec![value])].into());
        let empty = Contents::Entries(BTreeMap::new());
        assert_eq!(difference(&entries(1), &entries(1)), None);
        let said = difference(&entries(1), &entries(2));
        assert_eq!(said.as_deref(), Some("key 01: reference 01, subject 02"));
        let said = difference(&empty, &entries(2));
        assert_eq!(said.as_deref(), Some("key 01: reference nothing, subject 02"));
        let items = |count| Contents::Items(vec![vec![7]; count]);
        let said = difference(&items(2), &items(1));
        assert_eq!(said.as_deref(), Some("item 1: reference 07, subject nothing"));
        assert!(difference(&items(1), &empty).is_some());
    }
}
