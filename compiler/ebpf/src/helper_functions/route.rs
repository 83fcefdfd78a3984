// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers for routes and device MTUs, from the tables of the environment.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::run::{Environment, Neighbour, Route, Run, Way};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Size of `struct bpf_fib_lookup` in bytes.
const LOOKUP_BYTES: usize = 64;
/// Flags that the kernel knows: direct, output, no neighbour, table, source, mark.
const LOOKUP_FLAGS: u64 = 0x3f;
/// Looks up from the egress side: the given device is the one by which the packet leaves.
const OUTPUT: u64 = 1 << 1;
/// Skips the lookup of the neighbour's link address.
const SKIP_NEIGHBOUR: u64 = 1 << 2;
/// The kernel's numbers of the address families.
const IPV4: u8 = 2;
const IPV6: u8 = 10;
/// Length of a device's link header, in bytes.
const LINK_BYTES: i64 = 14;

/// Result of a lookup that is no error.
#[derive(Clone, Copy)]
enum Found {
    Success = 0,
    Blackhole = 1,
    Unreachable = 2,
    Prohibited = 3,
    NotForwarded = 4,
    ForwardingDisabled = 5,
    NoNeighbour = 7,
    FragmentationNeeded = 8,
}

/// `bpf_fib_lookup`: fills in device, link addresses and next hop for a packet's addresses.
pub fn lookup(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let (address, size, flags) = (run.argument(2), run.argument(3), run.argument(4));
    let size = size as u32 as usize;
    run.write(address, size)?;
    if size < LOOKUP_BYTES || flags & u64::from(u32::MAX) & !LOOKUP_FLAGS != 0 {
        return returned(Err(ErrorNumber::EINVAL));
    }
    let environment = run.environment;
    let bytes = run.write(address, LOOKUP_BYTES)?;
    let mut parameters = Parameters(bytes.try_into().expect("as many as asked for"));
    let found = parameters.look_up(environment, flags);
    bytes.copy_from_slice(&parameters.0);
    returned(found.map(|found| found as u64))
}

/// A `struct bpf_fib_lookup`.
struct Parameters([u8; LOOKUP_BYTES]);

impl Parameters {
    fn look_up(&mut self, environment: &Environment, flags: u64) -> Result<Found, ErrorNumber> {
        let target = match self.0[0] {
            IPV4 => IpAddr::V4(Ipv4Addr::from(self.bytes::<4>(32))),
            IPV6 => IpAddr::V6(Ipv6Addr::from(self.bytes::<16>(32))),
            _ => return Err(ErrorNumber::EAFNOSUPPORT),
        };
        let device = environment.device(u32::from_ne_bytes(self.bytes(8)));
        let device = device.ok_or(ErrorNumber::ENODEV)?;
        if !device.forwards && flags & OUTPUT == 0 {
            return Ok(Found::ForwardingDisabled);
        }
        let Some(route) = best(environment, target) else { return Ok(Found::NotForwarded) };
        let (ifindex, gateway) = match route.way {
            Way::Out { ifindex, gateway } => (ifindex, gateway),
            Way::Local => return Ok(Found::NotForwarded),
            Way::Blackhole => return Ok(Found::Blackhole),
            Way::Unreachable => return Ok(Found::Unreachable),
            Way::Prohibited => return Ok(Found::Prohibited),
        };
        let Some(out) = environment.device(ifindex) else { return Ok(Found::NotForwarded) };
        if u32::from(u16::from_ne_bytes(self.bytes(6))) > out.mtu {
            self.set(6, &(out.mtu as u16).to_ne_bytes());
            return Ok(Found::FragmentationNeeded);
        }
        self.set(8, &ifindex.to_ne_bytes());
        self.set(12, &route.metric.to_ne_bytes());
        self.set_next_hop(gateway);
        if flags & SKIP_NEIGHBOUR == 0 {
            let next = gateway.unwrap_or(target);
            let is_next = |neighbour: &&_| is_neighbour(neighbour, ifindex, next);
            let Some(neighbour) = environment.neighbours.iter().find(is_next) else {
                return Ok(Found::NoNeighbour);
            };
            self.set(52, &out.address);
            self.set(58, &neighbour.link_address);
        }
        self.set(48, &[0; 4]);
        self.set(6, &(out.mtu as u16).to_ne_bytes());
        Ok(Found::Success)
    }

    fn set_next_hop(&mut self, gateway: Option<IpAddr>) {
        match gateway {
            Some(IpAddr::V4(gateway)) => self.set(32, &gateway.octets()),
            Some(IpAddr::V6(gateway)) => {
                self.0[0] = IPV6;
                self.set(32, &gateway.octets());
            }
            None => {}
        }
    }

    fn bytes<const SIZE: usize>(&self, at: usize) -> [u8; SIZE] {
        self.0[at..at + SIZE].try_into().expect("fields lie inside")
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Returns the route with the longest matching prefix; among those, the one with the smallest
/// metric.
fn best(environment: &Environment, target: IpAddr) -> Option<&Route> {
    let fits = |route: &&Route| match (route.target, target) {
        (IpAddr::V4(prefix), IpAddr::V4(target)) => {
            agree(&prefix.octets(), &target.octets(), route.prefix_bits)
        }
        (IpAddr::V6(prefix), IpAddr::V6(target)) => {
            agree(&prefix.octets(), &target.octets(), route.prefix_bits)
        }
        _ => false,
    };
    let better = |route: &&Route| (route.prefix_bits, std::cmp::Reverse(route.metric));
    environment.routes.iter().filter(fits).max_by_key(better)
}

/// Returns whether the first `bits` bits of two addresses are equal.
fn agree(a: &[u8], b: &[u8], bits: u8) -> bool {
    let (whole, rest) = (usize::from(bits / 8), u32::from(bits % 8));
    if usize::from(bits) > 8 * a.len() || a[..whole] != b[..whole] {
        return false;
    }
    rest == 0 || (a[whole] ^ b[whole]).leading_zeros() >= rest
}

fn is_neighbour(neighbour: &Neighbour, ifindex: u32, address: IpAddr) -> bool {
    neighbour.ifindex == ifindex && neighbour.address == address
}

/// `bpf_check_mtu`: checks whether the packet fits a device's MTU after a change of its length.
pub fn check_mtu(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let (ifindex, address) = (run.argument(2) as u32, run.argument(3));
    let length = u32::from_le_bytes(run.write(address, 4)?.try_into().expect("four bytes"));
    if run.argument(5) != 0 {
        return returned(Err(ErrorNumber::EINVAL));
    }
    let ifindex = if ifindex == 0 { run.packet.ingress_ifindex } else { ifindex };
    let Some(device) = run.environment.device(ifindex) else {
        return returned(Err(ErrorNumber::ENODEV));
    };
    let length = match length {
        0 => run.packet.len() as i64,
        length => i64::from(length) + LINK_BYTES,
    };
    let fits = length + i64::from(run.argument_as_i32(4)) <= i64::from(device.mtu) + LINK_BYTES;
    let mtu = device.mtu;
    run.write(address, 4)?.copy_from_slice(&mtu.to_le_bytes());
    Ok(Some(u64::from(!fits)))
}
