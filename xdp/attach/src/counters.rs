// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What has become of packets, counted by port. All memory is bounded, whatever programs do.

use crate::{Count, Stop};
use freeport_ebpf::interpreter::verdict;
use std::collections::BTreeMap;
use std::fmt;

/// Verdicts that are told apart; whatever else programs return is one more.
pub const VERDICTS: usize = verdict::REDIRECT as usize + 2;
/// Numbers of devices without a port that are told by themselves; others are counted together.
const DEVICES_MAX: usize = 32;
/// Places where programs were ended that are told by themselves.
const STOPS_MAX: usize = 256;

/// Why a packet was dropped that the program did not drop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Drop {
    /// It is too short or too long for the target.
    Length,
    /// It was passed, and the port it came by has no host side.
    NoHost,
    /// It was redirected to the device of that number, which is no port.
    NoPort(u32),
    /// The same, with one of many numbers.
    NoPortOfMany,
    /// It was redirected to a socket.
    Socket,
    /// It was redirected to an entry that was taken away meanwhile.
    Nowhere,
    /// Nothing can leave by the port it was to go to.
    NoWayOut,
    /// Too many packets wait for the network already.
    NetworkFull,
    /// Too many packets wait for the host already.
    HostFull,
    /// The program has left nothing of it, or made it longer than ports carry.
    Outsized,
}

/// What is counted of a port.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Came from the network.
    pub received: Count,
    /// By verdict, those that are no verdict last.
    pub verdicts: [Count; VERDICTS],
    /// Left to the network.
    pub sent: Count,
    /// Left to the host.
    pub to_host: Count,
    /// Came from the host.
    pub from_host: Count,
    /// Dropped, by reason.
    pub drops: BTreeMap<Drop, u64>,
}

/// Packets for which a program was ended at one place.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The first one's.
    pub stop: Stop,
    /// How many.
    pub packets: u64,
}

/// All counters of a program.
#[derive(Debug, Default)]
pub struct Counters {
    /// In the order of the ports.
    pub ports: Vec<PortCounters>,
    stopped: BTreeMap<(usize, usize), Stopped>,
    devices: Vec<u32>,
    /// Ended programs beyond those places.
    pub stopped_elsewhere: u64,
}

impl Counters {
    /// For so many ports.
    pub fn new(ports: usize) -> Self {
        Self { ports: vec![PortCounters::default(); ports], ..Self::default() }
    }

    /// Counts a packet with its verdict.
    pub fn verdict(&mut self, port: usize, verdict: u32, bytes: usize) {
        let place = (verdict as usize).min(VERDICTS - 1);
        self.ports[port].verdicts[place].add(bytes);
    }

    /// Counts a packet that is dropped.
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

    /// Counts a program that was ended.
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

    /// Where programs were ended.
    pub fn stopped(&self) -> impl Iterator<Item = &Stopped> {
        self.stopped.values()
    }
}

impl fmt::Display for Drop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("too short or too long for the target"),
            Self::NoHost => f.write_str("passed, and the port has no host side"),
            Self::NoPort(ifindex) => write!(f, "redirected to device {ifindex}, which is no port"),
            Self::NoPortOfMany => f.write_str("redirected to other devices that are no ports"),
            Self::Socket => f.write_str("redirected to a socket, which nobody has here"),
            Self::Nowhere => f.write_str("redirected to an entry that is no more"),
            Self::NoWayOut => f.write_str("sent to a port that only brings packets"),
            Self::NetworkFull => f.write_str("the queue to the network was full"),
            Self::HostFull => f.write_str("the queue to the host was full"),
            Self::Outsized => f.write_str("of a length that no port carries, when it left"),
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
        let told: u64 = counters.stopped().map(|stopped| stopped.packets).sum();
        assert_eq!(told + counters.stopped_elsewhere, 2_000);
        counters.verdict(0, 4, 60);
        counters.verdict(0, 5, 60);
        counters.verdict(0, u32::MAX, 60);
        let packets = counters.ports[0].verdicts.map(|count| count.packets);
        assert_eq!(packets, [0, 0, 0, 0, 1, 2]);
    }
}
