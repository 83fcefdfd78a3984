// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of all targets of an XDP object.

use crate::Error;
use freeport_ebpf::interpreter::Outcome;
use freeport_ebpf::maps::flags;
use std::collections::BTreeMap;

/// A loaded object with its maps.
pub trait Target {
    /// Runs a program on a packet. Changes to maps remain for the next packet.
    ///
    /// # Errors
    /// There is no such program, or the target does not accept the packet: the kernel accepts 14 to
    /// 3,520 bytes.
    fn run(&mut self, program: &str, arrival: &Arrival<'_>) -> Result<Departure, Error> {
        let mut departure = Departure::default();
        self.run_into(program, arrival, &mut departure)?;
        Ok(departure)
    }

    /// As [`run`](Self::run), but stores the outcome in `departure`, whose buffers are reused.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn run_into(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
    ) -> Result<(), Error>;

    /// Runs a program on packets back to back, as closely as the target can. Stores one departure
    /// for each packet, in the same order.
    ///
    /// # Errors
    /// As [`run`](Self::run); the outcomes of earlier packets are lost.
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

    /// Sets an entry of a map; for a per-CPU map, the values of all processors.
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn update(&mut self, map: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.update_with(map, key, value, flags::ANY)
    }

    /// As [`update`](Self::update), with flags of [`freeport_ebpf::maps::flags`].
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn update_with(&mut self, map: &str, key: &[u8], value: &[u8], flags: u64)
    -> Result<(), Error>;

    /// Deletes an entry.
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error>;

    /// Returns the value of an entry as helper functions see it, or `None` if there is no such
    /// entry; for a per-CPU map, the value of the processor that runs programs.
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self.contents(map)? {
            Contents::Entries(mut entries) => Ok(entries.remove(key)),
            Contents::Items(_) | Contents::Opaque => Ok(None),
        }
    }

    /// Pushes a value into a queue, a stack or a Bloom filter.
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn push(&mut self, map: &str, value: &[u8]) -> Result<(), Error>;

    /// Stores a map of the object in a map of maps.
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn put_inside(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Error>;

    /// Stores a program of the object in a map of programs.
    ///
    /// # Errors
    /// There is no such map or program, or the map refuses.
    fn put_program(&mut self, map: &str, key: &[u8], program: &str) -> Result<(), Error>;

    /// Returns the names of all maps. Maps of variables are named like their section: `.bss`.
    fn maps(&self) -> Vec<String>;

    /// Returns the contents of a map, as far as it can be read. Queues, stacks and rings are empty
    /// afterwards.
    ///
    /// # Errors
    /// There is no such map, or the map refuses.
    fn contents(&mut self, map: &str) -> Result<Contents, Error>;
}

/// Longest packet, in bytes.
pub trait InUserSpace: Target {
    /// Longest packet, in bytes.
    const LENGTH_MAX: usize;

    /// Checks that a program can run here.
    ///
    /// # Errors
    /// There is no such program, or it cannot run; all reasons are listed.
    fn takes(&self, program: &str) -> Result<(), Error>;

    /// Returns the outcome of the last packet with its redirection and, where known, the reason of
    /// an abort and the number of executed instructions.
    fn last(&self) -> Option<&Outcome>;
}

/// An arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival<'a> {
    /// Bytes from the Ethernet header up to the frame check sequence, without it.
    pub bytes: &'a [u8],
    /// Number of the ingress device.
    pub ingress_ifindex: u32,
    /// Receive queue of that device.
    pub rx_queue_index: u32,
}

/// The outcome of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Departure {
    /// The program's return value: a verdict of `enum xdp_action`, or any other number.
    pub verdict: u32,
    /// Bytes of the packet.
    pub bytes: Vec<u8>,
    /// Metadata that the program put in front of the packet for its receiver.
    pub metadata: Vec<u8>,
}

/// Contents of a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Values by key; for a per-CPU map, the values of the processor that runs programs.
    Entries(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Values or records, in the order in which they are removed.
    Items(Vec<Vec<u8>>),
    /// Programs, maps, sockets, or contents that cannot be listed.
    Opaque,
}
