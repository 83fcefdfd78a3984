// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong between two sides.

use std::io;
use std::time::Duration;

/// Why something could not be done. After [`Fault`](Self::Fault), [`PeerDied`](Self::PeerDied) and
/// [`Closed`](Self::Closed) the connection is of no more use.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The peer did not begin as a peer does.
    #[error("the peer's hello: {0}")]
    Hello(#[from] HelloError),
    /// What the peer wrote breaks the protocol of rings.
    #[error("the peer broke the protocol: {0}")]
    Fault(#[from] freeport_ring::Fault),
    /// The peer moved its ring where there is none.
    #[error("the peer moved its ring to area {area}, behind area {current} of {areas}")]
    Moved {
        /// Where it says that it has moved.
        area: u64,
        /// Where it was.
        current: u32,
        /// How many there are.
        areas: u32,
    },
    /// The peer is gone without having closed: it was killed, or it crashed.
    #[error("the peer died (process {pid})")]
    PeerDied {
        /// Its process; 0 if that is not known here.
        pid: i32,
    },
    /// The peer has closed: nobody will read what is written.
    #[error("the peer has closed (process {pid})")]
    Closed {
        /// Its process; 0 if that is not known here.
        pid: i32,
    },
    /// This side has said that it writes nothing more.
    #[error("written after the end: this side has shut down its writing")]
    ShutDown,
    /// It took longer than the caller wants to wait.
    #[error("nothing happened for {0:?}")]
    TimedOut(Duration),
    /// It cannot be done now without waiting.
    #[error("it would have to wait")]
    WouldBlock,
    /// No message can be as long.
    #[error("a message of {length} bytes where {longest} is the longest")]
    TooLong {
        /// How long it is.
        length: usize,
        /// How long it may be.
        longest: usize,
    },
    /// There is a message that does not fit into the buffer. It can still be received.
    #[error("a message of {length} bytes for a buffer of {room}")]
    Longer {
        /// How long it is.
        length: usize,
        /// The room there is.
        room: usize,
    },
    /// A shared queue has no such connection, or one of the sides has closed it.
    #[error("the connection is closed")]
    NoConnection,
    /// As many connections of a shared queue are open as this side may open.
    #[error("{most} connections are open, and this side may open no more")]
    TooMany {
        /// How many it may open.
        most: u32,
    },
    /// Limits that a shared queue cannot have.
    #[error("a shared queue of {connections:?} connections with windows of {window}")]
    Limits {
        /// Those that each side may open.
        connections: [u32; 2],
        /// The cells that each may have unread.
        window: u16,
    },
    /// Something is not inside what it should be inside of.
    #[error("{bytes} bytes from {at} on in {what}, which has {size}")]
    OutOfRange {
        /// What that is.
        what: &'static str,
        /// Where it would begin.
        at: usize,
        /// How long it would be.
        bytes: usize,
        /// How much there is.
        size: usize,
    },
    /// Completions have to be polled before more can be posted.
    #[error("{outstanding} operations are outstanding, and the queue has no room for more")]
    QueueFull {
        /// How many there are.
        outstanding: usize,
    },
    /// The transport cannot do that.
    #[error("{transport} has no {what}")]
    Unsupported {
        /// Which one.
        transport: &'static str,
        /// What it cannot do.
        what: &'static str,
    },
    /// A region that cannot be.
    #[error("a region of {bytes} bytes: there has to be a multiple of 8, and at most {most}")]
    RegionBytes {
        /// How large it should be.
        bytes: usize,
        /// How large it may be.
        most: usize,
    },
    /// It is no key of this transport.
    #[error("a key that is none of {transport}: {what}")]
    Key {
        /// Which one.
        transport: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The data of a write have another length than data have.
    #[error("data of {length} bytes with a write, and data are 4")]
    Data {
        /// How long they are.
        length: usize,
    },
    /// A capacity that a ring cannot have.
    #[error(
        "a ring of {capacity} bytes that may grow to {capacity_max}: both are powers of two, \
             from {least} on, and the second at most {most}"
    )]
    Capacity {
        /// What it begins with.
        capacity: u64,
        /// What it may grow to.
        capacity_max: u64,
        /// The smallest there is.
        least: usize,
        /// The largest that is allowed here.
        most: usize,
    },
}

/// What is wrong with how a peer begins.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HelloError {
    /// It hung up.
    #[error("it hung up before it said anything")]
    HungUp,
    /// It said nothing for too long.
    #[error("it said nothing for {0:?}")]
    Silent(Duration),
    /// Another length.
    #[error("{found} bytes where {expected} were expected")]
    Length {
        /// What a hello has.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// It does not begin with the mark of this protocol.
    #[error("it is not a hello of Freeport")]
    Mark,
    /// Another version.
    #[error("version {theirs}, and this is version {ours}: use the same release on both sides")]
    Version {
        /// Of this side.
        ours: u32,
        /// Of the peer.
        theirs: u32,
    },
    /// It wants something else than this side.
    #[error("it wants {theirs}, and this side {ours}")]
    Purpose {
        /// Of this side.
        ours: &'static str,
        /// Of the peer.
        theirs: String,
    },
    /// Sizes that are not allowed.
    #[error("a ring of {capacity} bytes that may grow to {capacity_max}, and {most} is the limit")]
    Capacity {
        /// What it begins with.
        capacity: u64,
        /// What it may grow to.
        capacity_max: u64,
        /// The largest that this side allows.
        most: usize,
    },
    /// Other limits of a shared queue than this side's.
    #[error("its shared queue has other limits")]
    Limits,
    /// Descriptors are missing, or there are too many.
    #[error("{found} descriptors where {expected} were expected")]
    Descriptors {
        /// How many belong to it.
        expected: usize,
        /// How many came.
        found: usize,
    },
    /// What should be memory is something else.
    #[error("the descriptor for the segment is not a memfd of ordinary pages")]
    NotMemory,
    /// The memory could be cut while it is used, which would kill whoever touches it.
    #[error(
        "the segment has the seals {found:#x} and has to have {expected:#x}: no shrinking, \
             no growing, no more seals"
    )]
    Seals {
        /// What it has to have.
        expected: i32,
        /// What it has.
        found: i32,
    },
    /// The memory has another size than it should.
    #[error("a segment of {found} bytes where {expected} were expected")]
    SegmentBytes {
        /// What follows from the sizes of the rings.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// What should be a doorbell is something else.
    #[error("the descriptor for the doorbell is not an eventfd that does not block")]
    NotDoorbell,
}

impl Error {
    /// The last error of the system.
    pub(crate) fn system(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }

    /// Whether it is only that it would have to wait.
    pub fn is_would_block(&self) -> bool {
        matches!(self, Self::WouldBlock)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::System { source, .. } => source.kind(),
            Error::PeerDied { .. } => io::ErrorKind::ConnectionReset,
            Error::Closed { .. } | Error::ShutDown | Error::NoConnection => {
                io::ErrorKind::BrokenPipe
            }
            Error::TimedOut(_) => io::ErrorKind::TimedOut,
            Error::WouldBlock => io::ErrorKind::WouldBlock,
            Error::QueueFull { .. } => io::ErrorKind::WouldBlock,
            Error::Unsupported { .. } => io::ErrorKind::Unsupported,
            Error::TooLong { .. }
            | Error::Longer { .. }
            | Error::TooMany { .. }
            | Error::Limits { .. }
            | Error::OutOfRange { .. }
            | Error::RegionBytes { .. }
            | Error::Key { .. }
            | Error::Capacity { .. } => io::ErrorKind::InvalidInput,
            Error::Hello(_) | Error::Fault(_) | Error::Moved { .. } | Error::Data { .. } => {
                io::ErrorKind::InvalidData
            }
        };
        Self::new(kind, error)
    }
}
