// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters of what happened to packets, by port. Their memory is bounded, whatever programs do.

use crate::{Count, Stop};
use freeport_ebpf::interpreter::verdict;
use std::collections::BTreeMap;
use std::fmt;

/// Number of verdict counters: one for each known verdict, and one for all other return values.
pub const VERDICTS: usize = verdict::REDIRECT as usize + 2;
/// Device numbers without a port that are counted separately; further numbers share one counter.
const DEVICES_MAX: usize = 32;
/// Places of aborts that are counted separately.
const STOPS_MAX: usize = 256;

/// Reason for which a packet was dropped, other than the program's own verdict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Drop {
    /// The packet is too short or too long for the target.
    Length,
    /// The packet was passed, and its ingress port has no host side.
    NoHost,
    /// The packet was redirected to the device with this number, which is no port.
    NoPort(u32),
    /// As `NoPort`, for all device numbers that have no counter of their own.
    NoPortOfMany,
    /// The packet was redirected to a socket.
    Socket,
    /// The packet was redirected to a map entry that was removed in the meantime.
    Nowhere,
    /// The egress port cannot transmit.
    NoWayOut,
    /// Too many packets already wait for the network.
    NetworkFull,
    /// Too many packets already wait for the host.
    HostFull,
    /// The program left the packet empty, or longer than ports carry.
    Outsized,
}

/// Counters of a port.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Received from the network.
    pub received: Count,
    /// By verdict; other return values come last.
    pub verdicts: [Count; VERDICTS],
    /// Sent to the network.
    pub sent: Count,
    /// Sent to the host.
    pub to_host: Count,
    /// Received from the host.
    pub from_host: Count,
    /// Drops by reason.
    pub drops: BTreeMap<Drop, u64>,
}

/// Packets for which a program was aborted at one place.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The first of these aborts.
    pub stop: Stop,
    /// Number of packets.
    pub packets: u64,
}

/// All counters of a program.
#[derive(Debug, Default)]
pub struct Counters {
    /// Counters of the ports, in their order.
    pub ports: Vec<PortCounters>,
    stopped: BTreeMap<(usize, usize), Stopped>,
    devices: Vec<u32>,
    /// Aborts at places that have no counter of their own.
    pub stopped_elsewhere: u64,
}

impl Counters {
    /// Creates counters for this number of ports.
    pub fn new(ports: usize) -> Self {
        Self { ports: vec![PortCounters::default(); ports], ..Self::default() }
    }

    /// Counts a packet by its verdict.
    pub fn verdict(&mut self, port: usize, verdict: u32, bytes: usize) {
        let place = (verdict as usize).min(VERDICTS - 1);
        self.ports[port].verdicts[place].add(bytes);
    }

    /// Counts a dropped packet.
    pub fn drop(&mut self, port: usize, mut why: Drop) {
        if let Drop::NoPort(ifindex) = why
            && !self.devices.contains(&ifindex)
        {
            match self.devices.len() {
                DEVICES_MAX.. => why = Drop::NoPortOfMany,
                _ => self.devices.push(ifindex),
            }
        }
        *self.ports[port].drops.entry(why).or_default() += 1;
    }

    /// Counts an aborted program run.
    pub fn stop(&mut self, stop: &Stop) {
        let place = match stop {
            Stop::At(abort) => (abort.program, abort.slot),
            Stop::Card(reason) => (usize::MAX, *reason as usize),
        };
        if let Some(stopped) = self.stopped.get_mut(&place) {
            stopped.packets += 1;
        } else if self.stopped.len() < STOPS_MAX {
            self.stopped.insert(place, Stopped { stop: stop.clone(), packets: 1 });
        } else {
            self.stopped_elsewhere += 1;
        }
    }

    /// Returns the places where programs were aborted.
    pub fn stopped(&self) -> impl Iterator<Item = &Stopped> {
        self.stopped.values()
    }
}

impl fmt::Display for Drop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("too short or too long for the target"),
            Self::NoHost => f.write_str("passed, and the port has no host side"),
            Self::NoPort(ifindex) => {
                write!(f, "redirected to device {ifindex}, which is not a port")
            }
            Self::NoPortOfMany => f.write_str("redirected to other devices that are not ports"),
            Self::Socket => f.write_str("redirected to a socket, which is not supported here"),
            Self::Nowhere => f.write_str("redirected to a map entry that was removed"),
            Self::NoWayOut => f.write_str("sent to a port that only receives"),
            Self::NetworkFull => f.write_str("the queue to the network was full"),
            Self::HostFull => f.write_str("the queue to the host was full"),
            Self::Outsized => f.write_str("left with a length that no port carries"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ebpf::interpreter::{Abort, Reason};

    #[test]
    fn what_programs_choose_is_counted_in_bounded_memory() {
        let mut counters = Counters::new(1);
        for ifindex in 0..1_000 {
            counters.drop(0, Drop::NoPort(ifindex));
        }
        let drops = &counters.ports[0].drops;
        assert_eq!(drops.len(), DEVICES_MAX + 1);
        assert_eq!(drops[&Drop::NoPortOfMany], 1_000 - DEVICES_MAX as u64);
        assert_eq!(drops.values().sum::<u64>(), 1_000);
        for slot in 0..1_000 {
            let stop = Stop::At(Abort { program: 0, slot, reason: Reason::PastTheEnd });
            counters.stop(&stop);
            counters.stop(&stop);
        }
        assert_eq!(counters.stopped().count(), STOPS_MAX);
        let reported: u64 = counters.stopped().map(|stopped| stopped.packets).sum();
        assert_eq!(reported + counters.stopped_elsewhere, 2_000);
        counters.verdict(0, 4, 60);
        counters.verdict(0, 5, 60);
        counters.verdict(0, u32::MAX, 60);
        let packets = counters.ports[0].verdicts.map(|count| count.packets);
        assert_eq!(packets, [0, 0, 0, 0, 1, 2]);
    }
}
