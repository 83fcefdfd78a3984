// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Links: pairs of virtual Ethernet interfaces, one end on each host.

use super::Host;
use anyhow::Result;

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Host of this end.
    pub host: &'a Host,
    /// Name of the interface on the host.
    pub interface: &'a str,
    /// Ethernet address.
    pub mac: &'a str,
}

/// Joins two hosts by a link that is up and carries IP packets of up to `mtu` bytes.
///
/// Both ends compute checksums and segment frames before sending. Between two stacks the kernel
/// omits both, since neither stack needs them; but a program that takes frames from the interface
/// does.
///
/// # Errors
/// The name is in use, or there is no right to create interfaces.
pub fn join(one: End<'_>, other: End<'_>, mtu: u32) -> Result<()> {
    let there = other.host.path();
    let (here, name) = (one.interface, other.interface);
    let (mac, other_mac) = (one.mac, other.mac);
    one.host.ip(&format!(
        "link add {here} mtu {mtu} address {mac} type veth \
         peer name {name} mtu {mtu} address {other_mac} netns {there}\n"
    ))?;
    for end in [one, other] {
        end.host.finish_in_software(end.interface)?;
        end.host.ip(&format!("link set {} up\n", end.interface))?;
    }
    Ok(())
}
