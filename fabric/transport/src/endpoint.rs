// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every transport can do: the trait.
//!
//! An endpoint is one end of a connection to one peer. It *registers* memory that the peer may
//! reach, *exports* it as a [`Key`], and *imports* the peer's keys. It posts operations on the
//! peer's memory, each with a token of the caller's, and *polls* completions: of its own
//! operations, and of the peer's writes that carry data. How the first keys get to the peer is the
//! caller's business; a transport that needs descriptors for them has a Unix socket anyway.
//!
//! Transports differ in what they promise, and say so in constants; who uses them writes against
//! the weakest promise that he needs, and the compiler leaves out what is not needed. Nothing is
//! called through a pointer.
//!
//! | constant | RDMA (libfabric) | a PCIe window | shared memory |
//! |---|---|---|---|
//! | [`ARRIVAL`](Endpoint::ARRIVAL) | `Completion` | `Memory` | `Memory` |
//! | [`WRITE_ORDER`](Endpoint::WRITE_ORDER) | `Writes` or `Nothing` | `Words` | `Writes` |
//! | [`READS`](Endpoint::READS) | yes | no | yes |
//! | [`ATOMICS`](Endpoint::ATOMICS) | by provider | no | yes |
//!
//! In the words of libfabric: arrivals are `FI_REMOTE_CQ_DATA`; writes keep their order with
//! `FI_ORDER_RMA_WAW`, as far as `max_order_waw_size`; being done is `FI_DELIVERY_COMPLETE`. A
//! window takes posted writes, which keep their order; a read would wait for the bus, and there is
//! nothing on the other side that could be told of an arrival but memory.
//!
//! What holds for all of them:
//! - A word of 8 bytes at a multiple of 8, written by an operation of its own, arrives whole.
//! - A write reads its source at any time until it is [done](Completion::Done); who changes it
//!   before that may have written the old or the new, word by word.
//! - A write is done when it is in place: of two writes, of which the second was posted when the
//!   first was done, the second arrives behind the first, and so do their data.
//! - What is behind [`Arrived`](Completion::Arrived) is in place: the write that carried the data,
//!   and with any [`WRITE_ORDER`](Endpoint::WRITE_ORDER) but `Nothing` all writes before it.
//! - What is posted is done, or an error; it is not lost.

use crate::bounds::within;
use crate::error::Error;
use crate::key::Key;
use freeport_ring::{Local, Remote};
use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// When the peer's writes may be looked for in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// At any time: who polls a word sees it change, and with acquire what is ordered before it.
    Memory,
    /// Only behind a completion: until then, memory may have any part of a write.
    Completion,
}

/// In which order writes arrive that were posted one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteOrder {
    /// Word by word as they were posted, within a write by rising addresses.
    Words,
    /// One after the other; within a write in any order.
    Writes,
    /// In any order, unless one waits until the first is done.
    Nothing,
}

/// Memory of this side that the peer may reach, and that operations take from and put into.
///
/// It is shared memory: the peer may change it at any time.
pub trait Region: Local + Remote + Clone + Debug {
    /// How many bytes it has.
    fn bytes(&self) -> usize;
}

/// Memory of the peer.
pub trait Target: Clone + Debug {
    /// How many bytes it has.
    fn bytes(&self) -> usize;
}

/// An operation that moves bytes between memory of this side and of the other.
#[derive(Debug)]
pub struct Transfer<'a, E: Endpoint> {
    /// Memory of this side.
    pub here: &'a E::Region,
    /// From where on.
    pub here_at: usize,
    /// Memory of the peer.
    pub there: &'a E::Target,
    /// From where on.
    pub there_at: usize,
    /// How many bytes.
    pub bytes: usize,
    /// What the completion will have.
    pub token: u64,
}

impl<E: Endpoint> Transfer<'_, E> {
    /// Refuses what is not inside both memories, or is too long for one operation.
    ///
    /// # Errors
    /// It says which of them.
    pub fn check(&self) -> Result<(), Error> {
        within("memory of this side", self.here_at, self.bytes, self.here.bytes())?;
        within("memory of the peer", self.there_at, self.bytes, self.there.bytes())?;
        within("one operation", 0, self.bytes, E::WRITE_BYTES_MAX)
    }
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// An operation of this side is done: a write is in place, what was read is here.
    Done {
        /// What it was posted with.
        token: u64,
    },
    /// An atomic operation of this side is done.
    Fetched {
        /// What it was posted with.
        token: u64,
        /// What was there before.
        value: u64,
    },
    /// A write of the peer with that data is in place.
    Arrived {
        /// The data.
        data: u32,
    },
}

/// One end of a connection; a clone is the same one.
pub trait Endpoint: Clone + Debug + 'static {
    /// What the transport is called.
    const NAME: &'static str;
    /// When the peer's writes may be looked for in memory.
    const ARRIVAL: Arrival;
    /// In which order writes arrive.
    const WRITE_ORDER: WriteOrder;
    /// Whether the peer's memory can be [read](Self::read), as it is then.
    const READS: bool;
    /// Whether there are atomic operations, which are so for this side, the peer, and others.
    const ATOMICS: bool;
    /// The longest operation.
    const WRITE_BYTES_MAX: usize;
    /// The largest region.
    const REGION_BYTES_MAX: usize;

    /// Memory of this side.
    type Region: Region;
    /// Memory of the peer.
    type Target: Target;
    /// How rings reach the peer's memory and this side's; see [`Path`].
    type Path: Path;

    /// Makes memory of that many bytes, all zero.
    ///
    /// # Errors
    /// It is none, or too much, or no multiple of 8; or the system has not as much.
    fn register(&self, bytes: usize) -> Result<Self::Region, Error>;

    /// What the peer needs to reach a region.
    ///
    /// # Errors
    /// The system refuses another descriptor.
    fn export(&self, region: &Self::Region) -> Result<Key, Error>;

    /// Memory of the peer by its key, which is not believed.
    ///
    /// # Errors
    /// It is no key of this transport, or of something else than it says.
    fn import(&self, key: Key) -> Result<Self::Target, Error>;

    /// Posts a write.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::QueueFull`] before completions have been polled; the peer
    /// is gone. Nothing is written then.
    fn write(&self, transfer: Transfer<'_, Self>) -> Result<(), Error>;

    /// Posts a write that the peer is told of, with data. It may have no bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_with_data(&self, transfer: Transfer<'_, Self>, data: u32) -> Result<(), Error>;

    /// Posts a read.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`Error::Unsupported`] without [`READS`](Self::READS).
    fn read(&self, transfer: Transfer<'_, Self>) -> Result<(), Error>;

    /// Posts an addition to a word of the peer's.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`Error::Unsupported`] without [`ATOMICS`](Self::ATOMICS).
    fn fetch_add(
        &self,
        there: &Self::Target,
        at: usize,
        addend: u64,
        token: u64,
    ) -> Result<(), Error>;

    /// Posts an exchange of a word of the peer's, if it is what is expected.
    ///
    /// # Errors
    /// As [`fetch_add`](Self::fetch_add).
    fn compare_swap(
        &self,
        there: &Self::Target,
        at: usize,
        expected: u64,
        new: u64,
        token: u64,
    ) -> Result<(), Error>;

    /// The next completion, if there is one.
    ///
    /// # Errors
    /// The peer broke the protocol, or an operation failed. Not that it is gone: what it had done
    /// before is given first, and then nothing.
    fn poll(&self) -> Result<Option<Completion>, Error>;

    /// Before this side sleeps. True: nothing is left to poll, and the
    /// [descriptor](Self::descriptor) will be readable when something is, when the peer has called
    /// [`wake`](Self::wake), or when it is gone; and what this side wrote before, such as the
    /// announcement of its [sleep](freeport_ring::sleep), is seen by a peer that has not woken it.
    /// False: poll again; a transport that cannot wake anybody always says so.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    fn arm(&self) -> Result<bool, Error>;

    /// What an event loop waits for, to be readable, after [`arm`](Self::arm).
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Sleeps after [`arm`](Self::arm), until there may be something, or for as long as that.
    ///
    /// # Errors
    /// [`Error::PeerDied`] or [`Error::Closed`]: it is gone.
    fn sleep(&self, longest: Duration) -> Result<(), Error>;

    /// Wakes the peer out of its sleep. Not needed for writes with data.
    ///
    /// # Errors
    /// The peer spoilt its doorbell.
    fn wake(&self) -> Result<(), Error>;

    /// Whether the peer still is there.
    ///
    /// # Errors
    /// The system refuses to look.
    fn peer_is_alive(&self) -> Result<bool, Error>;

    /// A way for rings between a region of this side and memory of the peer. `number` tells the
    /// paths of one endpoint apart.
    ///
    /// # Errors
    /// It cannot have the memory that it needs.
    fn path(
        &self,
        inbound: &Self::Region,
        outbound: &Self::Target,
        number: u16,
    ) -> Result<Self::Path, Error>;
}

/// How rings see memory over a transport: what they write goes into the peer's memory, what they
/// read is there once it has arrived.
///
/// Where the peer's memory is mapped it is written where it is; elsewhere, and where memory may be
/// read only behind completions, [`Mirror`](crate::mirror::Mirror) does what is needed.
pub trait Path {
    /// Memory of the peer.
    type Window: Remote;
    /// Memory of this side.
    type Inbox: Local;

    /// A part of the peer's memory for single words.
    ///
    /// # Errors
    /// It is not inside.
    fn notes(&self, at: usize, bytes: usize) -> Result<Self::Window, Error>;

    /// A part of the peer's memory for a ring; one for each path.
    ///
    /// # Errors
    /// It is not inside.
    fn ring(&self, at: usize, bytes: usize) -> Result<Self::Window, Error>;

    /// A part of this side's memory in which the peer writes single words.
    ///
    /// # Errors
    /// It is not inside.
    fn own_notes(&self, at: usize, bytes: usize) -> Result<Self::Inbox, Error>;

    /// A part of this side's memory in which the peer has a ring; one for each path.
    ///
    /// # Errors
    /// It is not inside.
    fn own_ring(&self, at: usize, bytes: usize) -> Result<Self::Inbox, Error>;

    /// Takes a completion if it belongs to this path, and gives it back if not.
    ///
    /// # Errors
    /// The peer broke the protocol, or what had to be posted was refused.
    fn completed(&self, completion: Completion) -> Result<Option<Completion>, Error>;

    /// Posts what could not be posted before.
    ///
    /// # Errors
    /// As [`completed`](Self::completed).
    fn progress(&self) -> Result<(), Error>;

    /// Whether everything that was written has been posted and is done.
    fn is_idle(&self) -> bool;
}
