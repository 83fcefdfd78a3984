// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparison of two targets, packet by packet.

use crate::difference::{difference, differing_lines};
use crate::{Arrival, Contents, Departure, Error, Target};
use freeport_ebpf::interpreter::verdict;
use std::fmt;
use std::ops::Range;
use thiserror::Error as ThisError;

/// Compares the behaviour of two targets, of which the first is the reference. Between packets it
/// keeps only buffers; the targets are borrowed for each call.
pub struct Comparison {
    names: [&'static str; 2],
    unsteady: Vec<Unsteady>,
    departures: [Departure; 2],
}

/// Part of a map that depends on time or chance and is not compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsteady {
    /// Name of the map.
    pub map: String,
    /// Byte range of each of its values; values may be shorter.
    pub bytes: Range<usize>,
}

/// Reason for which two targets are not considered to agree.
#[derive(Debug, ThisError)]
pub enum Disagreement {
    /// One of the targets failed.
    #[error("{target}: {error}")]
    Failed {
        /// Name of the target.
        target: &'static str,
        /// Its error.
        error: Error,
    },
    /// A packet had a different outcome.
    #[error("packet {number}, {difference}")]
    Packet {
        /// Number of the packet, as the caller counts.
        number: u64,
        /// The two outcomes.
        difference: Box<PacketDifference>,
    },
    /// The targets have maps of different names.
    #[error("maps of {}: {:?}, of {}: {:?}", targets[0], maps[0], targets[1], maps[1])]
    Maps {
        /// Names of the targets.
        targets: [&'static str; 2],
        /// Names of the maps of each target.
        maps: [Vec<String>; 2],
    },
    /// A map has different contents.
    #[error("map {map}: {difference}")]
    Contents {
        /// Name of the map.
        map: String,
        /// The first difference.
        difference: String,
    },
}

/// A packet and its outcome on two targets.
#[derive(Debug)]
pub struct PacketDifference {
    /// Names of the targets.
    pub targets: [&'static str; 2],
    /// The packet before it was processed.
    pub bytes: Vec<u8>,
    /// Number of the ingress device.
    pub ingress_ifindex: u32,
    /// Receive queue of that device.
    pub rx_queue_index: u32,
    /// The outcome on each target.
    pub departures: [Departure; 2],
    /// Notes on each outcome, if the caller has any; else empty.
    pub notes: [String; 2],
}

impl Comparison {
    /// Creates a comparison of targets that have these names in messages.
    pub fn new(names: [&'static str; 2], unsteady: Vec<Unsteady>) -> Self {
        Self { names, unsteady, departures: Default::default() }
    }

    /// Runs a program on a packet on both targets; messages call the packet `number`.
    ///
    /// # Errors
    /// Verdict, bytes or metadata differ, or one of the targets failed.
    pub fn run(
        &mut self,
        targets: [&mut dyn Target; 2],
        program: &str,
        number: u64,
        arrival: &Arrival<'_>,
    ) -> Result<(), Disagreement> {
        for ((target, name), departure) in
            targets.into_iter().zip(self.names).zip(&mut self.departures)
        {
            let failed = |error| Disagreement::Failed { target: name, error };
            target.run_into(program, arrival, departure).map_err(failed)?;
        }
        let [expected, found] = &self.departures;
        self.same(number, arrival, expected, found)
    }

    /// Compares the outcomes of a packet that was run elsewhere.
    ///
    /// # Errors
    /// Verdict, bytes or metadata differ.
    pub fn same(
        &self,
        number: u64,
        arrival: &Arrival<'_>,
        expected: &Departure,
        found: &Departure,
    ) -> Result<(), Disagreement> {
        if expected == found {
            return Ok(());
        }
        let difference = Box::new(PacketDifference {
            targets: self.names,
            bytes: arrival.bytes.to_vec(),
            ingress_ifindex: arrival.ingress_ifindex,
            rx_queue_index: arrival.rx_queue_index,
            departures: [expected.clone(), found.clone()],
            notes: Default::default(),
        });
        Err(Disagreement::Packet { number, difference })
    }

    /// Returns the outcome of the last packet, which is the same on both targets.
    pub fn departure(&self) -> &Departure {
        &self.departures[0]
    }

    /// Returns the names of all maps, in order.
    ///
    /// # Errors
    /// The targets have maps of different names.
    pub fn map_names(&self, targets: [&dyn Target; 2]) -> Result<Vec<String>, Disagreement> {
        let mut maps = targets.map(Target::maps);
        maps.iter_mut().for_each(|names| names.sort());
        if maps[0] != maps[1] {
            return Err(Disagreement::Maps { targets: self.names, maps });
        }
        let [names, _] = maps;
        Ok(names)
    }

    /// Compares a map of both targets and returns its contents, as [`Target::contents`] reads them:
    /// queues, stacks and rings are empty afterwards. Unsteady parts are 0.
    ///
    /// # Errors
    /// The contents differ or cannot be read.
    pub fn map(&self, targets: [&mut dyn Target; 2], map: &str) -> Result<Contents, Disagreement> {
        let [reference, subject] = targets;
        let [expected, found] =
            [(reference, self.names[0]), (subject, self.names[1])].map(|(target, name)| {
                let failed = |error| Disagreement::Failed { target: name, error };
                target.contents(map).map_err(failed)
            });
        let (mut expected, mut found) = (expected?, found?);
        self.leave_out(map, &mut expected);
        self.leave_out(map, &mut found);
        match difference(self.names, &expected, &found) {
            None => Ok(expected),
            Some(difference) => Err(Disagreement::Contents { map: map.into(), difference }),
        }
    }

    /// Sets the parts that are not compared to 0.
    fn leave_out(&self, map: &str, contents: &mut Contents) {
        for unsteady in self.unsteady.iter().filter(|unsteady| unsteady.map == map) {
            let range = &unsteady.bytes;
            match contents {
                Contents::Entries(entries) => {
                    entries.values_mut().for_each(|value| clear(value, range));
                }
                Contents::Items(items) => items.iter_mut().for_each(|item| clear(item, range)),
                Contents::Opaque => {}
            }
        }
    }
}

fn clear(value: &mut [u8], range: &Range<usize>) {
    let end = range.end.min(value.len());
    value[range.start.min(end)..end].fill(0);
}

/// Formats the packet, both outcomes, and the differing lines of a hex dump.
impl fmt::Display for PacketDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, queue) = (self.ingress_ifindex, self.rx_queue_index);
        write!(
            f,
            "{} bytes by device {device}, queue {queue}, has different outcomes",
            self.bytes.len()
        )?;
        let width = self.targets.map(str::len).into_iter().max().unwrap_or(0) + 1;
        for ((name, departure), note) in self.targets.iter().zip(&self.departures).zip(&self.notes)
        {
            let Departure { verdict, bytes, metadata } = departure;
            let verdict = verdict::name(*verdict).map_or(verdict.to_string(), str::to_owned);
            let name = format!("{name}:");
            write!(f, "\n{name:width$} {verdict}, {} bytes", bytes.len())?;
            if !metadata.is_empty() {
                write!(f, " and {} of metadata", metadata.len())?;
            }
            if !note.is_empty() {
                write!(f, "; {note}")?;
            }
        }
        let [expected, found] = &self.departures;
        for (what, pair) in [
            ("the packet", [&expected.bytes, &found.bytes]),
            ("its metadata", [&expected.metadata, &found.metadata]),
        ] {
            let lines = differing_lines(self.targets, pair.map(Vec::as_slice));
            if !lines.is_empty() {
                write!(f, "\n{what} differs in these lines:\n{}", lines.trim_end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_left_out() {
        let unsteady = Unsteady { map: "map".into(), bytes: 1..3 };
        let comparison = Comparison::new(["a", "b"], vec![unsteady]);
        let filled = Contents::Items(vec![vec![9; 4], vec![9; 2]]);
        let mut contents = filled.clone();
        comparison.leave_out("other", &mut contents);
        assert_eq!(contents, filled);
        comparison.leave_out("map", &mut contents);
        assert_eq!(contents, Contents::Items(vec![vec![9, 0, 0, 9], vec![9, 0]]));
    }

    /// Returns each packet with a fixed byte appended and a fixed verdict.
    struct Fake {
        verdict: u32,
        byte: u8,
        value: u8,
    }

    impl Target for Fake {
        fn run_into(
            &mut self,
            _: &str,
            arrival: &Arrival<'_>,
            departure: &mut Departure,
        ) -> Result<(), Error> {
            departure.verdict = self.verdict;
            departure.bytes.clear();
            departure.bytes.extend(arrival.bytes);
            departure.bytes[17] = self.byte;
            Ok(())
        }

        fn update_with(&mut self, _: &str, _: &[u8], _: &[u8], _: u64) -> Result<(), Error> {
            Ok(())
        }

        fn delete(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
            Ok(())
        }

        fn push(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
            Ok(())
        }

        fn put_inside(&mut self, _: &str, _: &[u8], _: &str) -> Result<(), Error> {
            Ok(())
        }

        fn put_program(&mut self, _: &str, _: &[u8], _: &str) -> Result<(), Error> {
            Ok(())
        }

        fn maps(&self) -> Vec<String> {
            vec!["only".into()]
        }

        fn contents(&mut self, _: &str) -> Result<Contents, Error> {
            Ok(Contents::Entries([(vec![1], vec![self.value, 7])].into()))
        }
    }

    #[test]
    fn a_packet_that_fares_otherwise_is_shown_with_what_differs() {
        let arrival = Arrival { bytes: &[0x11; 20], ingress_ifindex: 3, rx_queue_index: 2 };
        let mut comparison = Comparison::new(["kernel", "other"], vec![]);
        let mut one = Fake { verdict: 2, byte: 5, value: 1 };
        let mut other = Fake { verdict: 3, byte: 6, value: 1 };
        let error = comparison.run([&mut one, &mut other], "any", 8, &arrival).err();
        let expected = "packet 8, 20 bytes by device 3, queue 2, has different outcomes\n\
            kernel: XDP_PASS, 20 bytes\n\
            other:  XDP_TX, 20 bytes\n\
            the packet differs in these lines:\n\
            \x20 0010  kernel  11 05 11 11\n\
            \x20       other   11 06 11 11\n\
            \x20                  ^^";
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(expected));
        (other.verdict, other.byte) = (2, 5);
        comparison.run([&mut one, &mut other], "any", 9, &arrival).expect("they agree");
        assert_eq!(comparison.departure().verdict, 2);
    }

    #[test]
    fn a_map_is_compared_without_what_is_unsteady() {
        let mut one = Fake { verdict: 2, byte: 5, value: 1 };
        let mut other = Fake { value: 2, ..one };
        let comparison = Comparison::new(["kernel", "other"], vec![]);
        let error = comparison.map([&mut one, &mut other], "only").err();
        let expected = "map only: key 01: kernel 0107, other 0207";
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(expected));
        let unsteady = vec![Unsteady { map: "only".into(), bytes: 0..1 }];
        let comparison = Comparison::new(["kernel", "other"], unsteady);
        let contents = comparison.map([&mut one, &mut other], "only").ok();
        assert_eq!(contents, Some(Contents::Entries([(vec![1], vec![0, 7])].into())));
    }
}
