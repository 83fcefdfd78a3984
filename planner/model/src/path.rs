// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Paths between clients, host and the device's processor, and the operations on them (off-path
//! SmartNIC study, 2.2).

use crate::profile::Profile;
use std::fmt::{self, Display};
use std::str::FromStr;

/// A communication path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Path {
    /// From a client to the host over a plain RDMA NIC: the baseline.
    Rnic,
    /// From a client to the host: path 1 of the study.
    Host,
    /// From a client to the device's processor: path 2.
    Soc,
    /// From the device's processor to the host, through the NIC cores: path 3, S2H.
    SocToHost,
    /// From the host to the device's processor, through the NIC cores: path 3, H2S.
    HostToSoc,
    /// From the device's processor to the host by the DMA engine: path 3*.
    DmaToHost,
    /// From the host to the device's processor by the DMA engine: path 3*.
    DmaToSoc,
    /// From the host to another machine with such a device, through the NIC cores.
    HostToPeer,
    /// From the device's processor to another machine with such a device, through the NIC cores.
    SocToPeer,
}

/// A side of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Machines of clients.
    Client,
    /// The host.
    Host,
    /// The device's processor.
    Soc,
    /// Another machine with such a device.
    Peer,
}

/// An operation on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// One-sided read of the target's memory.
    Read,
    /// One-sided write to the target's memory.
    Write,
    /// A message that a core of the target answers.
    Send,
}

/// How often data of a path cross each link of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Crossings {
    /// The link between NIC cores and switch.
    pub pcie1: u32,
    /// The link between switch and host.
    pub pcie0: u32,
    /// The link between switch and the device's processor.
    pub internal: u32,
}

/// Packets on the links of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Packets {
    /// The link between NIC cores and switch.
    pub pcie1: u64,
    /// The link between switch and host.
    pub pcie0: u64,
    /// The link between switch and the device's processor.
    pub internal: u64,
}

impl Path {
    /// All paths; the baseline comes first.
    pub const ALL: [Self; 9] = [
        Self::Rnic,
        Self::Host,
        Self::Soc,
        Self::SocToHost,
        Self::HostToSoc,
        Self::DmaToHost,
        Self::DmaToSoc,
        Self::HostToPeer,
        Self::SocToPeer,
    ];

    /// Returns the name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rnic => "rnic",
            Self::Host => "1",
            Self::Soc => "2",
            Self::SocToHost => "3-s2h",
            Self::HostToSoc => "3-h2s",
            Self::DmaToHost => "dma-s2h",
            Self::DmaToSoc => "dma-h2s",
            Self::HostToPeer => "host-peer",
            Self::SocToPeer => "soc-peer",
        }
    }

    /// Returns the side that posts requests.
    pub fn requester(self) -> Side {
        match self {
            Self::Rnic | Self::Host | Self::Soc => Side::Client,
            Self::HostToSoc | Self::DmaToSoc | Self::HostToPeer => Side::Host,
            Self::SocToHost | Self::DmaToHost | Self::SocToPeer => Side::Soc,
        }
    }

    /// Returns the side whose memory is read or written, or that answers messages.
    pub fn target(self) -> Side {
        match self {
            Self::Rnic | Self::Host | Self::SocToHost | Self::DmaToHost => Side::Host,
            Self::Soc | Self::HostToSoc | Self::DmaToSoc => Side::Soc,
            Self::HostToPeer | Self::SocToPeer => Side::Peer,
        }
    }

    /// Returns the end in the machine whose memory requests use at random addresses: the target,
    /// or the requester if the target is another machine.
    pub fn end(self) -> Side {
        if self.target() == Side::Peer { self.requester() } else { self.target() }
    }

    /// Returns whether the DMA engine carries out the path's operations.
    pub fn is_dma(self) -> bool {
        matches!(self, Self::DmaToHost | Self::DmaToSoc)
    }

    /// Returns whether an operation is possible: the DMA engine has no messages, and other machines
    /// are only written to.
    pub fn has(self, operation: Operation) -> bool {
        match self.target() {
            Side::Peer => operation == Operation::Write,
            _ => !(self.is_dma() && operation == Operation::Send),
        }
    }

    /// Returns how often data cross each link (study, 2.2).
    pub fn crossings(self) -> Crossings {
        let of = |pcie1, pcie0, internal| Crossings { pcie1, pcie0, internal };
        match self {
            Self::Rnic => of(0, 1, 0),
            Self::Host | Self::HostToPeer => of(1, 1, 0),
            Self::Soc | Self::SocToPeer => of(1, 0, 1),
            Self::SocToHost | Self::HostToSoc => of(2, 1, 1),
            Self::DmaToHost | Self::DmaToSoc => of(0, 1, 1),
        }
    }

    /// Returns the packets with data on each link for a payload of `bytes` (study, 3.1): each end
    /// has its longest packet, and the link of the NIC cores sees those of both ends of a path
    /// inside the machine.
    pub fn packets(self, profile: &Profile, bytes: u64) -> Packets {
        let of = |mtu: f64| bytes.div_ceil(mtu as u64);
        let (host, soc) = (of(profile.pcie.mtu_host), of(profile.pcie.mtu_soc));
        let Crossings { pcie1, pcie0, internal } = self.crossings();
        let pcie1 = match (pcie1, self.end()) {
            (0, _) => 0,
            (1, Side::Soc) => soc,
            (1, _) => host,
            _ => host + soc,
        };
        Packets { pcie1, pcie0: u64::from(pcie0) * host, internal: u64::from(internal) * soc }
    }
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Send];

    /// Returns the name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
        }
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|path| path.name() == name);
        found.ok_or_else(|| format!("there is no path {name}; the paths are {names}"))
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == name);
        found.ok_or_else(|| format!("there is no operation {name}; use read, write or send"))
    }
}
