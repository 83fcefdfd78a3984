// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of every transport: the trait.
//!
//! An endpoint is one end of a connection to one peer. It *registers* memory that the peer may
//! access, *exports* it as a [`Key`], and *imports* the peer's keys. It posts operations on the
//! peer's memory, each with a token of the caller, and *polls* completions: of its own operations,
//! and of the peer's writes that carry data. The caller passes the first keys to the peer; a
//! transport whose keys need descriptors has a Unix socket for them.
//!
//! Transports differ in their guarantees, and state them in constants. A user is written against
//! the weakest guarantee that suffices, and the compiler removes code for weaker ones. There are no
//! calls through pointers.
//!
//! | constant | RDMA (libfabric) | a PCIe window | shared memory |
//! |---|---|---|---|
//! | [`ARRIVAL`](Endpoint::ARRIVAL) | `Completion` | `Memory` | `Memory` |
//! | [`WRITE_ORDER`](Endpoint::WRITE_ORDER) | `Writes` or `Nothing` | `Words` | `Writes` |
//! | [`READS`](Endpoint::READS) | yes | no | yes |
//! | [`ATOMICS`](Endpoint::ATOMICS) | by provider | no | yes |
//!
//! In the terms of libfabric: arrivals are `FI_REMOTE_CQ_DATA`; writes keep their order with
//! `FI_ORDER_RMA_WAW`, up to `max_order_waw_size`; done is `FI_DELIVERY_COMPLETE`. A PCIe window
//! takes posted writes, which keep their order; a read would wait for the bus, and nothing but
//! memory on the other side can report an arrival.
//!
//! Guarantees of all transports:
//! - A word of 8 bytes at a multiple of 8, written by an operation of its own, arrives whole.
//! - A write reads its source at any time until it is [done](Completion::Done); if the source is
//!   changed before that, the old or the new contents may be written, word by word.
//! - A write is done when it is in place: if a write is posted after another one is done, it
//!   arrives after the other, and so do their data.
//! - Writes that precede [`Arrived`](Completion::Arrived) are in place: the write that carried the
//!   data, and with any [`WRITE_ORDER`](Endpoint::WRITE_ORDER) but `Nothing` all writes before it.
//! - Every posted operation completes or reports an error; none is lost.

use crate::bounds::within;
use crate::error::Error;
use crate::key::Key;
use freeport_ring::{Local, Remote};
use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Condition under which the peer's writes may be read from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// At any time: a reader that polls a word sees it change, and with acquire everything ordered
    /// before it.
    Memory,
    /// Only after a completion: until then, memory may contain any part of a write.
    Completion,
}

/// Order in which successively posted writes arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOrder {
    /// Word by word in the order of posting; within a write by ascending addresses.
    Words,
    /// In the order of posting; within a write in any order.
    Writes,
    /// In any order, unless the caller waits until the first is done.
    Nothing,
}

/// Memory of this side that the peer may access, and that operations read and write.
///
/// It is shared memory: the peer may change it at any time.
pub trait Region: Local + Remote + Clone + Debug {
    /// Returns the number of bytes.
    fn bytes(&self) -> usize;
}

/// Memory of the peer.
pub trait Target: Clone + Debug {
    /// Returns the number of bytes.
    fn bytes(&self) -> usize;
}

/// An operation that moves bytes between memory of this side and of the peer.
#[derive(Debug)]
pub struct Transfer<'a, E: Endpoint> {
    /// Memory of this side.
    pub here: &'a E::Region,
    /// Offset in the memory of this side.
    pub here_at: usize,
    /// Memory of the peer.
    pub there: &'a E::Target,
    /// Offset in the memory of the peer.
    pub there_at: usize,
    /// Number of bytes.
    pub bytes: usize,
    /// Token of the completion.
    pub token: u64,
}

impl<E: Endpoint> Transfer<'_, E> {
    /// Refuses a transfer that is not inside both memories, or is too long for one operation.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], with the violated limit.
    pub fn check(&self) -> Result<(), Error> {
        within("memory of this side", self.here_at, self.bytes, self.here.bytes())?;
        within("memory of the peer", self.there_at, self.bytes, self.there.bytes())?;
        within("one operation", 0, self.bytes, E::WRITE_BYTES_MAX)
    }
}

/// A completed event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// An operation of this side is done: written data are in place, or read data are here.
    Done {
        /// Token of the operation.
        token: u64,
    },
    /// An atomic operation of this side is done.
    Fetched {
        /// Token of the operation.
        token: u64,
        /// Previous value of the word.
        value: u64,
    },
    /// A write of the peer with that data is in place.
    Arrived {
        /// The data.
        data: u32,
    },
}

/// One end of a connection; a clone refers to the same end.
pub trait Endpoint: Clone + Debug + 'static {
    /// Name of the transport.
    const NAME: &'static str;
    /// Condition under which the peer's writes may be read from memory.
    const ARRIVAL: Arrival;
    /// Order in which writes arrive.
    const WRITE_ORDER: WriteOrder;
    /// Whether the peer's memory can be [read](Self::read).
    const READS: bool;
    /// Whether there are atomic operations, which are atomic for this side, the peer, and others.
    const ATOMICS: bool;
    /// Maximum length of an operation, in bytes.
    const WRITE_BYTES_MAX: usize;
    /// Maximum size of a region, in bytes.
    const REGION_BYTES_MAX: usize;

    /// Memory of this side.
    type Region: Region;
    /// Memory of the peer.
    type Target: Target;
    /// The path of rings to the peer's memory and this side's; see [`Path`].
    type Path: Path;

    /// Registers new memory of this number of bytes, all zero.
    ///
    /// # Errors
    /// The number is 0, too large, or not a multiple of 8; or the system does not have enough
    /// memory.
    fn register(&self, bytes: usize) -> Result<Self::Region, Error>;

    /// Exports a region as a key for the peer.
    ///
    /// # Errors
    /// The system refuses to duplicate the descriptor.
    fn export(&self, region: &Self::Region) -> Result<Key, Error>;

    /// Imports memory of the peer by its key, which is not trusted.
    ///
    /// # Errors
    /// The key does not belong to this transport, or its contents contradict it.
    fn import(&self, key: Key) -> Result<Self::Target, Error>;

    /// Posts a write.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::QueueFull`] if completions have to be polled first; the peer
    /// is gone. Then nothing is written.
    fn write(&self, transfer: Transfer<'_, Self>) -> Result<(), Error>;

    /// Posts a write that is reported to the peer, with data. It may have no bytes.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    fn write_with_data(&self, transfer: Transfer<'_, Self>, data: u32) -> Result<(), Error>;

    /// Posts a read.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write); [`Error::Unsupported`] without [`READS`](Self::READS).
    fn read(&self, transfer: Transfer<'_, Self>) -> Result<(), Error>;

    /// Posts an addition to a word of the peer's memory.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write); [`Error::Unsupported`] without
    /// [`ATOMICS`](Self::ATOMICS).
    fn fetch_add(
        &self,
        there: &Self::Target,
        at: usize,
        addend: u64,
        token: u64,
    ) -> Result<(), Error>;

    /// Posts an exchange of a word of the peer's memory, if it has the expected value.
    ///
    /// # Errors
    /// The errors of [`fetch_add`](Self::fetch_add).
    fn compare_swap(
        &self,
        there: &Self::Target,
        at: usize,
        expected: u64,
        new: u64,
        token: u64,
    ) -> Result<(), Error>;

    /// Returns the next completion, if there is one.
    ///
    /// # Errors
    /// The peer broke the protocol, or an operation failed. A peer that is gone is no error: its
    /// completed operations are returned first, and then none.
    fn poll(&self) -> Result<Option<Completion>, Error>;

    /// Prepares this side to sleep. True means that nothing is left to poll, that the
    /// [descriptor](Self::descriptor) will become readable when something is, when the peer has
    /// called [`wake`](Self::wake), or when it is gone, and that earlier writes of this side, such
    /// as the announcement of its [sleep](freeport_ring::sleep), are visible to a peer that has not
    /// woken it. False means that the caller has to poll again; a transport without a way to wake
    /// always returns false.
    ///
    /// # Errors
    /// The errors of [`poll`](Self::poll).
    fn arm(&self) -> Result<bool, Error>;

    /// Returns the descriptor that becomes readable after [`arm`](Self::arm), for an event loop.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Sleeps after [`arm`](Self::arm), until there may be something, or for at most `longest`.
    ///
    /// # Errors
    /// [`Error::PeerDied`] or [`Error::Closed`]: the peer is gone.
    fn sleep(&self, longest: Duration) -> Result<(), Error>;

    /// Wakes the peer from its sleep. Not needed for writes with data.
    ///
    /// # Errors
    /// The peer made its doorbell unusable.
    fn wake(&self) -> Result<(), Error>;

    /// Returns whether the peer still exists.
    ///
    /// # Errors
    /// The system refuses the check.
    fn peer_is_alive(&self) -> Result<bool, Error>;

    /// Creates a path for rings between a region of this side and memory of the peer. `number`
    /// distinguishes the paths of one endpoint.
    ///
    /// # Errors
    /// There is no memory for the path.
    fn path(
        &self,
        inbound: &Self::Region,
        outbound: &Self::Target,
        number: u16,
    ) -> Result<Self::Path, Error>;
}

/// Access of rings to memory over a transport: their writes go into the peer's memory, and their
/// reads find what has arrived.
///
/// If the peer's memory is mapped, it is written directly; otherwise, and if memory may be read
/// only after completions, [`Mirror`](crate::mirror::Mirror) provides the path.
pub trait Path {
    /// Memory of the peer.
    type Window: Remote;
    /// Memory of this side.
    type Inbox: Local;

    /// Returns a part of the peer's memory for single words.
    ///
    /// # Errors
    /// The part is not inside.
    fn notes(&self, at: usize, bytes: usize) -> Result<Self::Window, Error>;

    /// Returns a part of the peer's memory for a ring; one for each path.
    ///
    /// # Errors
    /// The part is not inside.
    fn ring(&self, at: usize, bytes: usize) -> Result<Self::Window, Error>;

    /// Returns a part of this side's memory in which the peer writes single words.
    ///
    /// # Errors
    /// The part is not inside.
    fn own_notes(&self, at: usize, bytes: usize) -> Result<Self::Inbox, Error>;

    /// Returns a part of this side's memory in which the peer has a ring; one for each path.
    ///
    /// # Errors
    /// The part is not inside.
    fn own_ring(&self, at: usize, bytes: usize) -> Result<Self::Inbox, Error>;

    /// Processes a completion if it belongs to this path, and returns it otherwise.
    ///
    /// # Errors
    /// The peer broke the protocol, or a write was refused.
    fn completed(&self, completion: Completion) -> Result<Option<Completion>, Error>;

    /// Posts writes that could not be posted before.
    ///
    /// # Errors
    /// The errors of [`completed`](Self::completed).
    fn progress(&self) -> Result<(), Error>;

    /// Returns whether everything that was written has been posted and is done.
    fn is_idle(&self) -> bool;
}
