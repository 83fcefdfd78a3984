// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every target of an XDP object can do.

use crate::Error;
use freeport_ebpf::interpreter::Outcome;
use freeport_ebpf::maps::flags;
use std::collections::BTreeMap;

/// A loaded object with its maps.
pub trait Target {
    /// Runs a program on a packet. What it leaves in maps is there for the next one.
    ///
    /// # Errors
    /// No such program, or the target does not take the packet: the kernel takes none of less than
    /// 14 or more than 3,520 bytes.
    fn run(&mut self, program: &str, arrival: &Arrival<'_>) -> Result<Departure, Error> {
        let mut departure = Departure::default();
        self.run_into(program, arrival, &mut departure)?;
        Ok(departure)
    }

    /// The same, with what became of the packet in place of another that needs no new memory then.
    ///
    /// # Errors
    /// As with [`run`](Self::run).
    fn run_into(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
    ) -> Result<(), Error>;

    /// Runs a program on packets behind each other, as close as the target can have them. There are
    /// as many departures afterwards, in that order.
    ///
    /// # Errors
    /// As with [`run`](Self::run); what became of packets before is lost.
    fn run_all(
        &mut self,
        program: &str,
        arrivals: &[Arrival<'_>],
        departures: &mut Vec<Departure>,
    ) -> Result<(), Error> {
        departures.resize_with(arrivals.len(), Departure::default);
        let pairs = arrivals.iter().zip(departures);
        pairs
            .into_iter()
            .try_for_each(|(arrival, departure)| self.run_into(program, arrival, departure))
    }

    /// Sets an entry of a map; of maps with a value for each processor, all of them.
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn update(&mut self, map: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.update_with(map, key, value, flags::ANY)
    }

    /// The same with flags, those of [`freeport_ebpf::maps::flags`].
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn update_with(&mut self, map: &str, key: &[u8], value: &[u8], flags: u64)
    -> Result<(), Error>;

    /// Takes an entry away.
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error>;

    /// The value of an entry, as helpers of programs find it; of maps with a value for each
    /// processor, that of the one that runs programs. None if there is no such entry.
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self.contents(map)? {
            Contents::Entries(mut entries) => Ok(entries.remove(key)),
            Contents::Items(_) | Contents::Opaque => Ok(None),
        }
    }

    /// Puts a value into a queue, a stack or a Bloom filter.
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn push(&mut self, map: &str, value: &[u8]) -> Result<(), Error>;

    /// Puts a map of the object into a map of maps.
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn put_inside(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Error>;

    /// Puts a program of the object into a map of programs.
    ///
    /// # Errors
    /// No such map or program, or what the map says.
    fn put_program(&mut self, map: &str, key: &[u8], program: &str) -> Result<(), Error>;

    /// The names of all maps. Variables are in maps that are called as their section: `.bss`.
    fn maps(&self) -> Vec<String>;

    /// What is in a map, as far as it can be read. Queues, stacks and rings are empty afterwards.
    ///
    /// # Errors
    /// No such map, or what the map says.
    fn contents(&mut self, map: &str) -> Result<Contents, Error>;
}

/// A target in user space, which says more of a packet than what became of it.
pub trait InUserSpace: Target {
    /// Most bytes of a packet.
    const LENGTH_MAX: usize;

    /// Whether a program can run here.
    ///
    /// # Errors
    /// No such program, or all that keeps it from running.
    fn takes(&self, program: &str) -> Result<(), Error>;

    /// What came of the last packet, with where it was redirected to and, where that is known, why
    /// it was aborted and how many instructions it took.
    fn last(&self) -> Option<&Outcome>;
}

/// A packet as it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival<'a> {
    /// From the Ethernet header to the last byte before the checksum.
    pub bytes: &'a [u8],
    /// The device by which it comes.
    pub ingress_ifindex: u32,
    /// The queue of that device.
    pub rx_queue_index: u32,
}

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Departure {
    /// The program's verdict, one of `enum xdp_action` or whatever it returned.
    pub verdict: u32,
    /// The packet.
    pub bytes: Vec<u8>,
    /// What was put in front of it for whoever gets it.
    pub metadata: Vec<u8>,
}

/// What is in a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Values by key; of maps with a value for each processor, that of the one that runs programs.
    Entries(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Values or records, in the order in which they leave.
    Items(Vec<Vec<u8>>),
    /// Programs, maps, sockets, or what cannot be listed.
    Opaque,
}
