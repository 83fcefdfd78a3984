// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places of a study, and memory in them.

use std::fmt::{self, Display};
use std::str::FromStr;

/// A place with cores and memory of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// A machine of clients.
    Client(u16),
    /// The host of the machine with the device.
    Host,
    /// The device's processor.
    Soc,
    /// Another machine with such a device.
    Peer(u16),
}

/// Memory of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// The place.
    pub place: Place,
    /// First byte in its memory.
    pub at: u64,
}

/// The engine that carries out operations between host and device's processor. All other places
/// are reached through the NIC cores, whatever is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Way {
    /// The NIC cores: path 3 of the off-path SmartNIC study.
    #[default]
    Nic,
    /// The DMA engine: path 3*.
    Dma,
}

impl Place {
    /// Returns the address of a byte in the place's memory.
    pub fn at(self, at: u64) -> Address {
        Address { place: self, at }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(number) => write!(f, "client-{number}"),
            Self::Host => f.write_str("host"),
            Self::Soc => f.write_str("soc"),
            Self::Peer(number) => write!(f, "peer-{number}"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let number = |prefix| name.strip_prefix(prefix)?.parse().ok();
        match name {
            "host" => Ok(Self::Host),
            "soc" => Ok(Self::Soc),
            _ => None
                .or_else(|| number("client-").map(Self::Client))
                .or_else(|| number("peer-").map(Self::Peer))
                .ok_or_else(|| format!("{name} is no place: host, soc, client-N or peer-N")),
        }
    }
}
