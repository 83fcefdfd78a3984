// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of a request: the stages that it passes, each with its resource and time.
//!
//! Payloads that are larger than a segment pass in segments, so that links work on several parts of
//! one request at the same time.

mod bus;
mod client;
mod inside;
mod peer;
mod step;

pub use step::Step;

use crate::path::{Operation, Path, Side};
use crate::profile::Profile;

/// Simulated time in picoseconds.
pub type Time = u64;

/// Converts nanoseconds.
pub fn ns(time: f64) -> Time {
    (time * 1000.0).round() as Time
}

/// A resource that serves one request at a time with each of its servers, in order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// The port towards the device.
    NetworkIn,
    /// The port towards clients.
    NetworkOut,
    /// The link from the NIC cores to the switch.
    Pcie1Down,
    /// The link from the switch to the NIC cores.
    Pcie1Up,
    /// The link to the host.
    Pcie0Down,
    /// The link from the host.
    Pcie0Up,
    /// The link to the processor.
    InternalDown,
    /// The link from the processor.
    InternalUp,
    /// Data between two ends of the machine in the NIC cores.
    Loopback,
    /// Tracking of reads from the processor's memory.
    Tracking,
    /// Fetches of requests after a doorbell.
    Fetch,
    /// Cores of the host that answer messages.
    HostCores,
    /// Cores of the processor that answer messages.
    SocCores,
    /// The DMA engines.
    Dma,
    /// The data rate of the DMA engines.
    DmaRate,
    /// Memory channels of the host.
    HostChannels,
    /// Memory channels of the processor.
    SocChannels,
}

impl Resource {
    /// All of them, by their numbers.
    pub const ALL: [Self; 17] = [
        Self::NetworkIn,
        Self::NetworkOut,
        Self::Pcie1Down,
        Self::Pcie1Up,
        Self::Pcie0Down,
        Self::Pcie0Up,
        Self::InternalDown,
        Self::InternalUp,
        Self::Loopback,
        Self::Tracking,
        Self::Fetch,
        Self::HostCores,
        Self::SocCores,
        Self::Dma,
        Self::DmaRate,
        Self::HostChannels,
        Self::SocChannels,
    ];

    /// Returns the number of servers.
    pub fn servers(self, profile: &Profile) -> u32 {
        let servers = match self {
            Self::Fetch => profile.nic.fetches,
            Self::HostCores => profile.host.cores,
            Self::SocCores => profile.soc.cores,
            Self::Dma => profile.dma.engines,
            Self::HostChannels => profile.host.channels,
            Self::SocChannels => profile.soc.channels,
            _ => 1.0,
        };
        servers as u32
    }

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetworkIn => "network to the device",
            Self::NetworkOut => "network to clients",
            Self::Pcie1Down => "PCIe1 from the NIC cores",
            Self::Pcie1Up => "PCIe1 to the NIC cores",
            Self::Pcie0Down => "PCIe0 to the host",
            Self::Pcie0Up => "PCIe0 from the host",
            Self::InternalDown => "internal link to the SoC",
            Self::InternalUp => "internal link from the SoC",
            Self::Loopback => "loopback in the NIC cores",
            Self::Tracking => "tracking of reads in the NIC",
            Self::Fetch => "fetches of requests",
            Self::HostCores => "cores of the host",
            Self::SocCores => "cores of the SoC",
            Self::Dma => "DMA engines",
            Self::DmaRate => "data rate of DMA",
            Self::HostChannels => "memory channels of the host",
            Self::SocChannels => "memory channels of the SoC",
        }
    }
}

/// A pool of credits, which requests hold over several stages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pool {
    /// Reads of the host's memory.
    HostReads,
    /// Writes to the host's memory.
    HostWrites,
    /// Reads of the processor's memory.
    SocReads,
    /// Writes to the processor's memory.
    SocWrites,
}

impl Pool {
    /// All of them, by their numbers.
    pub const ALL: [Self; 4] = [Self::HostReads, Self::HostWrites, Self::SocReads, Self::SocWrites];

    /// Returns the number of credits.
    pub fn credits(self, profile: &Profile) -> u32 {
        let credits = match self {
            Self::HostReads => profile.host.reads,
            Self::HostWrites => profile.host.writes,
            Self::SocReads => profile.soc.reads,
            Self::SocWrites => profile.soc.writes,
        };
        credits as u32
    }

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostReads => "reads in flight to the host",
            Self::HostWrites => "writes in flight to the host",
            Self::SocReads => "reads in flight to the SoC",
            Self::SocWrites => "writes in flight to the SoC",
        }
    }
}

/// NIC cores that a request may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cores {
    /// Those for the host, and shared ones.
    Host,
    /// Those for the processor, and shared ones.
    Soc,
}

/// A stage of a request's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Time that nothing limits.
    Delay(Time),
    /// A NIC core.
    Nic(Cores, Time),
    /// A server of a resource.
    Serve(Resource, Time),
    /// A link, with what is counted on it.
    Transfer {
        /// The link.
        link: Resource,
        /// Time on it, headers included.
        time: Time,
        /// Bytes of payload.
        bytes: u64,
        /// Packets with payload.
        packets: u64,
    },
    /// The port of the client's machine.
    ClientPort {
        /// Whether data arrive at the machine.
        inbound: bool,
        /// Time of the port.
        time: Time,
    },
    /// A bank of a side's memory, at a random address.
    Bank(Side, Time),
    /// Takes credits.
    Take(Pool, u32),
    /// Gives credits back.
    Give(Pool, u32),
    /// Tracking of a read by the NIC.
    Track {
        /// Time of a segment that it tracks.
        tracked: Time,
        /// Time of a segment beyond those.
        untracked: Time,
    },
}

/// Requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// The path.
    pub path: Path,
    /// The operation.
    pub operation: Operation,
    /// Payload in bytes.
    pub bytes: u64,
    /// Requests that are posted with one doorbell.
    pub batch: u32,
    /// Range of addresses in bytes, over which requests are spread at random.
    pub range: u64,
}

impl Request {
    /// Describes requests that are posted one by one to addresses in 10 GB, as the study's are.
    pub fn new(path: Path, operation: Operation, bytes: u64) -> Self {
        Self { path, operation, bytes, batch: 1, range: 10_000_000_000 }
    }
}

/// The way of requests of one kind.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Route {
    /// Stages of the whole request.
    pub before: Vec<Stage>,
    /// Stages of each segment but the last.
    pub each: Vec<Stage>,
    /// Stages of the last segment, which may be shorter.
    pub last: Vec<Stage>,
    /// Stages of the whole request after its last segment.
    pub after: Vec<Stage>,
    /// Number of segments: at least one.
    pub segments: u32,
    /// Segments from this one on are not tracked by the NIC.
    pub tracked: u32,
    /// Time of a thread until its batch is posted.
    pub post: Time,
    /// Time of the thread for the doorbell, while the batch is already on its way.
    pub doorbell: Time,
    /// Cores that post, if they also answer messages.
    pub poster: Option<Resource>,
    /// The end whose banks the addresses lie in.
    pub banked: Option<Side>,
    /// Number of those banks; zero if a cache holds all of the addresses.
    pub banks: u32,
    /// Whether the NIC is the plain one.
    pub is_plain: bool,
}

/// Number of segments that a payload has at most, and their least size in bytes.
const SEGMENTS_MAX: u64 = 64;
const SEGMENT_BYTES: u64 = 1024;

impl Route {
    /// Returns the way of such requests, or none if the path has no such operation.
    pub fn of(profile: &Profile, request: &Request) -> Option<Self> {
        if !request.path.has(request.operation) {
            return None;
        }
        let segment = request.bytes.div_ceil(SEGMENTS_MAX).max(SEGMENT_BYTES);
        let segment = segment.next_multiple_of(SEGMENT_BYTES).min(request.bytes.max(1));
        let segments = request.bytes.div_ceil(segment).max(1);
        let tracked = (profile.nic.tracked * 1e6) as u64 / segment;
        let banks = bus::banks(profile, request.path.end(), request.range);
        let mut route = Self {
            segments: segments as u32,
            tracked: tracked.min(segments) as u32,
            banked: Some(request.path.end()),
            banks,
            is_plain: request.path == Path::Rnic,
            ..Self::default()
        };
        let bytes = request.bytes - segment * (segments - 1);
        let way = Way { profile, request, bytes };
        way.lay_out(&mut route);
        route.last = std::mem::take(&mut route.each);
        if segments > 1 {
            let mut longer = Self::default();
            Way { bytes: segment, ..way }.lay_out(&mut longer);
            route.each = longer.each;
        }
        Some(route)
    }

    /// Returns the NIC cores that the request uses, if it uses any.
    pub fn nic_cores(&self) -> Option<Cores> {
        self.stages().find_map(|(stage, _)| match stage {
            Stage::Nic(cores, _) => Some(cores),
            _ => None,
        })
    }

    /// Returns all stages, with the number of times that a request passes them.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, u32)> {
        let whole = self.before.iter().chain(&self.after).map(|stage| (*stage, 1));
        let each = self.each.iter().map(|stage| (*stage, self.segments - 1));
        whole.chain(each).chain(self.last.iter().map(|stage| (*stage, 1)))
    }
}

impl Way<'_> {
    fn lay_out(&self, route: &mut Route) {
        match self.request.path.requester() {
            Side::Client => self.of_client(route),
            _ if self.request.path.is_dma() => self.by_dma(route),
            _ if self.request.path.target() == Side::Peer => self.to_peer(route),
            _ => self.inside(route),
        }
    }
}

/// A way that is being laid out.
struct Way<'a> {
    profile: &'a Profile,
    request: &'a Request,
    /// Bytes of a segment.
    bytes: u64,
}
