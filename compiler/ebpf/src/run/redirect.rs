// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Destination of a redirected packet.

/// Destination of a redirected packet. A map is given by its number: those of the object in their
/// order, then those that were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Redirect {
    /// A device.
    Device {
        /// Number of the device.
        ifindex: u32,
    },
    /// The entry of a map.
    Map {
        /// Number of the map.
        map: usize,
        /// Key of the entry.
        key: u32,
        /// First four bytes of its value: a device, a queue's length or a socket.
        target: u32,
    },
    /// All devices of a map.
    Broadcast {
        /// Number of the map.
        map: usize,
        /// Whether the ingress device is excluded.
        excludes_ingress: bool,
    },
}
