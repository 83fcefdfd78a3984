// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who sends packets to whom: addresses and ports that the scenarios put into maps as well.

use fastrand::Rng;

/// Hosts there are, each with an address of IPv4 and one of IPv6.
pub const HOSTS: u8 = 12;
/// Ports of services: what clients connect to.
pub const SERVICES: [u16; 6] = [80, 443, 22, 11211, 53, 8080];
/// Ports to knock at, and in the right order four of them open a door.
pub const KNOCKS: [u16; 6] = [7000, 8000, 9000, 7001, 7000, 8000];
/// VLANs that frames are tagged with.
pub const VLANS: [u16; 5] = [1, 2, 17, 18, 100];
/// Keys of tunnels: of GRE as they are, of VXLAN as network.
pub const TUNNELS: [u32; 3] = [0, 5, 77];

/// The IPv4 address of a host; the last four are virtual addresses of services.
pub const fn ipv4(host: u8) -> [u8; 4] {
    if host < HOSTS - 4 { [10, 0, host % 3, 1 + host] } else { [192, 0, 2, host] }
}

/// The IPv6 address of a host.
pub const fn ipv6(host: u8) -> [u8; 16] {
    let subnet = if host < HOSTS - 4 { host % 3 } else { 9 };
    [0x20, 0x01, 0x0d, 0xb8, 0, subnet, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 + host]
}

/// The Ethernet address of a host.
pub const fn ethernet(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, host]
}

/// The address of a host under the prefix that stands for IPv4 (RFC 6052).
pub fn translated(host: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0, 0x64, 0xff, 0x9b]);
    address[12..].copy_from_slice(&ipv4(host));
    address
}

/// A flow between two hosts.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Who began it, and with whom.
    pub hosts: [u8; 2],
    /// Their ports.
    pub ports: [u16; 2],
    /// How far a connection has come.
    pub step: u32,
}

impl Flow {
    /// One to a service.
    pub fn new(random: &mut Rng) -> Self {
        let first = random.u8(..HOSTS);
        // Half of them to a virtual address.
        let second = if random.bool() { random.u8(HOSTS - 4..HOSTS) } else { random.u8(..HOSTS) };
        let ports = [random.u16(1024..1064), SERVICES[random.usize(..SERVICES.len())]];
        Self { hosts: [first, second], ports, step: 0 }
    }

    /// The flow as the other side sends it.
    pub fn turned(&self) -> Self {
        let ([a, b], [c, d]) = (self.hosts, self.ports);
        Self { hosts: [b, a], ports: [d, c], step: self.step }
    }
}
