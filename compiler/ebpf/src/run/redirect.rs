// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a packet goes that its program redirects.

/// Where a packet is sent. A map is its number: those of the object in their
/// order, then those that were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Redirect {
    /// To a device.
    Device {
        /// Its number.
        ifindex: u32,
    },
    /// To what a map has for a key.
    Map {
        /// Which map.
        map: usize,
        /// The key.
        key: u32,
        /// The first four bytes of its value: a device, a queue's length or a socket.
        target: u32,
    },
    /// To all devices of a map.
    Broadcast {
        /// Which map.
        map: usize,
        /// Without the one that the packet came from.
        excludes_ingress: bool,
    },
}
