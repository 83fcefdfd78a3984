// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program learns of the world outside its packet and its maps: time, chance, the devices
//! of the machine and the ways from it. All of it can be set, so that a run can be repeated.

use std::net::IpAddr;
use std::time::Instant;

/// Ticks of the kernel's `jiffies` in a second.
const TICKS_PER_SECOND: u64 = 250;

/// The world of a machine that runs programs.
#[derive(Clone, Debug)]
pub struct Environment {
    /// What time it is.
    pub clock: Clock,
    /// Where random numbers begin.
    pub seed: u64,
    /// A program that executes more instructions for one packet is ended.
    pub instructions_max: u64,
    /// Maps that take more memory in all, in bytes, are not made.
    pub map_bytes_max: usize,
    /// Number of the processor that programs run on.
    pub processor: u32,
    /// Devices, for routes and the sizes that they carry.
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
    /// The device of that number.
    pub fn device(&self, ifindex: u32) -> Option<&Device> {
        self.devices.iter().find(|device| device.ifindex == ifindex)
    }
}

/// A source of time in nanoseconds, which never goes back unless it is set back.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The time since then.
    Running(Instant),
    /// A time that stands still.
    Set(u64),
}

impl Clock {
    /// A clock that begins at 0 now.
    pub fn running() -> Self {
        Self::Running(Instant::now())
    }

    /// The time in nanoseconds.
    pub fn now_ns(self) -> u64 {
        match self {
            Self::Running(since) => since.elapsed().as_nanos() as u64,
            Self::Set(time_ns) => time_ns,
        }
    }

    /// The time in ticks of 4 ms.
    pub fn ticks(self) -> u64 {
        self.now_ns() / (1_000_000_000 / TICKS_PER_SECOND)
    }
}

/// A network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its number, not 0.
    pub ifindex: u32,
    /// Its link address.
    pub address: [u8; 6],
    /// Longest packet that it carries, in bytes without the link header.
    pub mtu: u32,
    /// Whether packets that come from it are forwarded.
    pub forwards: bool,
}

/// A route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// First address of what it is for.
    pub target: IpAddr,
    /// Length of the prefix in bits.
    pub prefix_bits: u8,
    /// Smaller is preferred among prefixes of one length.
    pub metric: u32,
    /// Where packets go.
    pub way: Way,
}

/// Where a route leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Out of a device, to a neighbour who knows further or, without one, to the target itself.
    Out {
        /// The device's number.
        ifindex: u32,
        /// The neighbour.
        gateway: Option<IpAddr>,
    },
    /// To this machine.
    Local,
    /// Nowhere, silently.
    Blackhole,
    /// Nowhere, and the sender is told that it is unreachable.
    Unreachable,
    /// Nowhere, and the sender is told that it is prohibited.
    Prohibited,
}

/// A neighbour on a device's network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The device's number.
    pub ifindex: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its link address.
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
