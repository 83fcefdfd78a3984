// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors between two sides.

use std::io;
use std::time::Duration;

/// Error of an operation. After [`Fault`](Self::Fault), [`PeerDied`](Self::PeerDied) and
/// [`Closed`](Self::Closed) the connection is unusable.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The peer's hello is invalid.
    #[error("the peer's hello: {0}")]
    Hello(#[from] HelloError),
    /// Data that the peer wrote violate the protocol of rings.
    #[error("the peer broke the protocol: {0}")]
    Fault(#[from] freeport_ring::Fault),
    /// The peer moved its ring to an area that does not exist.
    #[error("the peer moved its ring to area {area}, after area {current} of {areas}")]
    Moved {
        /// Area that it claims to have moved to.
        area: u64,
        /// Area of the ring before.
        current: u32,
        /// Number of areas.
        areas: u32,
    },
    /// The peer has exited without closing: it was killed, or it crashed.
    #[error("the peer died (process {pid})")]
    PeerDied {
        /// Its process; 0 if unknown.
        pid: i32,
    },
    /// The peer has closed: written data will not be read.
    #[error("the peer has closed (process {pid})")]
    Closed {
        /// Its process; 0 if unknown.
        pid: i32,
    },
    /// This side has shut down its writing.
    #[error("written after the end: this side has shut down its writing")]
    ShutDown,
    /// The operation took longer than the caller's time-out.
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
    /// The operation would block.
    #[error("the operation would block")]
    WouldBlock,
    /// The message is too long for the ring.
    #[error("a message of {length} bytes exceeds the maximum of {longest}")]
    TooLong {
        /// Length of the message.
        length: usize,
        /// Maximum length.
        longest: usize,
    },
    /// A message does not fit the buffer. It can still be received.
    #[error("a message of {length} bytes does not fit a buffer of {room}")]
    Longer {
        /// Length of the message.
        length: usize,
        /// Length of the buffer.
        room: usize,
    },
    /// A shared queue does not have the connection, or one of the sides has closed it.
    #[error("the connection is closed")]
    NoConnection,
    /// This side has opened the maximum number of connections of a shared queue.
    #[error("{most} connections are open, the maximum of this side")]
    TooMany {
        /// Maximum number of connections.
        most: u32,
    },
    /// Invalid limits of a shared queue.
    #[error(
        "invalid limits of a shared queue: {connections:?} connections with windows of {window}"
    )]
    Limits {
        /// Maximum numbers of connections of both sides.
        connections: [u32; 2],
        /// Maximum number of unread cells of each.
        window: u16,
    },
    /// A range is not inside the memory or limit it refers to.
    #[error("{bytes} bytes at offset {at} are out of range: {what} has {size}")]
    OutOfRange {
        /// Name of the memory or limit.
        what: &'static str,
        /// Start of the range.
        at: usize,
        /// Length of the range.
        bytes: usize,
        /// Size of the memory.
        size: usize,
    },
    /// Completions have to be polled before more can be posted.
    #[error("{outstanding} operations are outstanding, and the queue has no room for more")]
    QueueFull {
        /// Number of outstanding operations.
        outstanding: usize,
    },
    /// The transport does not support the operation.
    #[error("{transport} has no {what}")]
    Unsupported {
        /// Name of the transport.
        transport: &'static str,
        /// The unsupported operation.
        what: &'static str,
    },
    /// Invalid size of a region.
    #[error("a region of {bytes} bytes: the size has to be a multiple of 8, and at most {most}")]
    RegionBytes {
        /// Requested size.
        bytes: usize,
        /// Maximum size.
        most: usize,
    },
    /// The key does not belong to this transport.
    #[error("not a key of {transport}: {what}")]
    Key {
        /// Name of the transport.
        transport: &'static str,
        /// Description of the mismatch.
        what: &'static str,
    },
    /// The data of a write do not have the required length.
    #[error("data of {length} bytes with a write, which has to have 4")]
    Data {
        /// Length of the data.
        length: usize,
    },
    /// Invalid capacity of a ring.
    #[error(
        "a ring of {capacity} bytes that may grow to {capacity_max}: both are powers of two, \
             from {least} on, and the second at most {most}"
    )]
    Capacity {
        /// Initial capacity.
        capacity: u64,
        /// Capacity up to which it may grow.
        capacity_max: u64,
        /// Minimum capacity.
        least: usize,
        /// Maximum capacity permitted here.
        most: usize,
    },
}

/// Reason why a peer's hello is refused.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HelloError {
    /// The peer hung up.
    #[error("it hung up before sending anything")]
    HungUp,
    /// The peer sent nothing within the time limit.
    #[error("it sent nothing for {0:?}")]
    Silent(Duration),
    /// The hello has a wrong length.
    #[error("{found} bytes where {expected} were expected")]
    Length {
        /// Length of a hello.
        expected: usize,
        /// Length received.
        found: usize,
    },
    /// The hello does not begin with the mark of this protocol.
    #[error("it is not a hello of Freeport")]
    Mark,
    /// The versions differ.
    #[error("version {theirs}, and this is version {ours}: use the same release on both sides")]
    Version {
        /// Version of this side.
        ours: u32,
        /// Version of the peer.
        theirs: u32,
    },
    /// The peer requests another purpose than this side.
    #[error("it requests {theirs}, but this side {ours}")]
    Purpose {
        /// Purpose of this side.
        ours: &'static str,
        /// Purpose of the peer.
        theirs: String,
    },
    /// The sizes are not permitted.
    #[error("a ring of {capacity} bytes that may grow to {capacity_max}, but the limit is {most}")]
    Capacity {
        /// Initial capacity.
        capacity: u64,
        /// Capacity up to which it may grow.
        capacity_max: u64,
        /// Maximum capacity that this side permits.
        most: usize,
    },
    /// The peer's shared queue has other limits than this side's.
    #[error("its shared queue has other limits")]
    Limits,
    /// Descriptors are missing, or there are too many.
    #[error("{found} descriptors where {expected} were expected")]
    Descriptors {
        /// Number of descriptors of a hello.
        expected: usize,
        /// Number of descriptors received.
        found: usize,
    },
    /// The descriptor for the memory is not one of memory.
    #[error("the descriptor for the segment is not a memfd of ordinary pages")]
    NotMemory,
    /// The memory could be truncated during use, which would kill every process that accesses it.
    #[error(
        "the segment has the seals {found:#x} and has to have {expected:#x}: no shrinking, \
             no growing, no more seals"
    )]
    Seals {
        /// Required seals.
        expected: i32,
        /// Seals of the memory.
        found: i32,
    },
    /// The memory has a wrong size.
    #[error("a segment of {found} bytes where {expected} were expected")]
    SegmentBytes {
        /// Size that follows from the sizes of the rings.
        expected: u64,
        /// Size of the memory.
        found: u64,
    },
    /// The descriptor for the doorbell is not a doorbell.
    #[error("the descriptor for the doorbell is not an eventfd that does not block")]
    NotDoorbell,
}

impl Error {
    /// Creates an error from the system's last error.
    pub(crate) fn system(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }

    /// Returns whether the operation would only block.
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
