// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts of the generated traffic: addresses and ports that the scenarios also put into maps.

use fastrand::Rng;

/// Number of hosts, each with an IPv4 and an IPv6 address.
pub const HOSTS: u8 = 12;
/// Service ports, to which clients connect.
pub const SERVICES: [u16; 6] = [80, 443, 22, 11211, 53, 8080];
/// Ports for port knocking; four of them in the right order open the door.
pub const KNOCKS: [u16; 6] = [7000, 8000, 9000, 7001, 7000, 8000];
/// VLANs that frames are tagged with.
pub const VLANS: [u16; 5] = [1, 2, 17, 18, 100];
/// Tunnel keys: GRE keys, and VXLAN network identifiers.
pub const TUNNELS: [u32; 3] = [0, 5, 77];

/// Returns the IPv4 address of a host; the last four are virtual addresses of services.
pub const fn ipv4(host: u8) -> [u8; 4] {
    if host < HOSTS - 4 { [10, 0, host % 3, 1 + host] } else { [192, 0, 2, host] }
}

/// Returns the IPv6 address of a host.
pub const fn ipv6(host: u8) -> [u8; 16] {
    let subnet = if host < HOSTS - 4 { host % 3 } else { 9 };
    [0x20, 0x01, 0x0d, 0xb8, 0, subnet, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 + host]
}

/// Returns the Ethernet address of a host.
pub const fn ethernet(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, host]
}

/// Returns the address of a host under the prefix that represents IPv4 (RFC 6052).
pub fn translated(host: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0, 0x64, 0xff, 0x9b]);
    address[12..].copy_from_slice(&ipv4(host));
    address
}

/// A flow between two hosts.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The host that opened the flow, and its peer.
    pub hosts: [u8; 2],
    /// Their ports.
    pub ports: [u16; 2],
    /// Number of steps of the connection so far.
    pub step: u32,
}

impl Flow {
    /// Creates a flow to a service.
    pub fn new(random: &mut Rng) -> Self {
        let first = random.u8(..HOSTS);
        // Half of them go to a virtual address.
        let second = if random.bool() { random.u8(HOSTS - 4..HOSTS) } else { random.u8(..HOSTS) };
        let ports = [random.u16(1024..1064), SERVICES[random.usize(..SERVICES.len())]];
        Self { hosts: [first, second], ports, step: 0 }
    }

    /// Returns the flow in the opposite direction.
    pub fn turned(&self) -> Self {
        let ([a, b], [c, d]) = (self.hosts, self.ports);
        Self { hosts: [b, a], ports: [d, c], step: self.step }
    }
}
