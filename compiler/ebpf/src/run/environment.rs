// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The environment of a program outside its packet and its maps: time, random numbers, devices and
//! routes. All of it can be set, so that a run can be repeated.

use std::net::IpAddr;
use std::time::Instant;

/// Ticks of the kernel's `jiffies` per second.
const TICKS_PER_SECOND: u64 = 250;

/// Environment of a machine that runs programs.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The clock.
    pub clock: Clock,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Maximum number of instructions for a packet; a program that exceeds it is aborted.
    pub instructions_max: u64,
    /// Maximum memory of all maps in bytes; further maps are not created.
    pub map_bytes_max: usize,
    /// Number of the processor that runs programs.
    pub processor: u32,
    /// Devices, for routes and MTUs.
    pub devices: Vec<Device>,
    /// Routes, in any order: the longest prefix wins, then the smallest metric.
    pub routes: Vec<Route>,
    /// Link addresses of neighbours.
    pub neighbours: Vec<Neighbour>,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            clock: Clock::running(),
            seed: 1,
            instructions_max: 1_000_000,
            map_bytes_max: 1 << 30,
            processor: 0,
            devices: vec![],
            routes: vec![],
            neighbours: vec![],
        }
    }
}

impl Environment {
    /// Returns the device with this number.
    pub fn device(&self, ifindex: u32) -> Option<&Device> {
        self.devices.iter().find(|device| device.ifindex == ifindex)
    }
}

/// A source of time in nanoseconds, monotonic unless it is set back.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// Time since this instant.
    Running(Instant),
    /// A fixed time.
    Set(u64),
}

impl Clock {
    /// Creates a clock that begins at 0 now.
    pub fn running() -> Self {
        Self::Running(Instant::now())
    }

    /// Returns the time in nanoseconds.
    pub fn now_ns(self) -> u64 {
        match self {
            Self::Running(since) => since.elapsed().as_nanos() as u64,
            Self::Set(time_ns) => time_ns,
        }
    }

    /// Returns the time in ticks of 4 ms.
    pub fn ticks(self) -> u64 {
        self.now_ns() / (1_000_000_000 / TICKS_PER_SECOND)
    }
}

/// A network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Number, not 0.
    pub ifindex: u32,
    /// Link address.
    pub address: [u8; 6],
    /// Maximum packet length in bytes, without the link header.
    pub mtu: u32,
    /// Whether packets that it receives are forwarded.
    pub forwards: bool,
}

/// A route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Network address of the destination.
    pub target: IpAddr,
    /// Length of the prefix in bits.
    pub prefix_bits: u8,
    /// Metric; the smaller one is preferred among prefixes of the same length.
    pub metric: u32,
    /// Destination of the packets.
    pub way: Way,
}

/// Destination of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Out of a device, to a gateway or, without one, to the destination itself.
    Out {
        /// Number of the device.
        ifindex: u32,
        /// Gateway.
        gateway: Option<IpAddr>,
    },
    /// To this machine.
    Local,
    /// Dropped silently.
    Blackhole,
    /// Dropped, and reported to the sender as unreachable.
    Unreachable,
    /// Dropped, and reported to the sender as prohibited.
    Prohibited,
}

/// A neighbour on a device's network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Number of the device.
    pub ifindex: u32,
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// Link address of the neighbour.
    pub link_address: [u8; 6],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_stands_still() {
        let clock = Clock::Set(5_000_001);
        assert_eq!((clock.now_ns(), clock.ticks()), (5_000_001, 1));
        let running = Clock::running();
        let before = running.now_ns();
        assert!(running.now_ns() >= before);
    }
}
