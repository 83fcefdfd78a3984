// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One queue for all connections between two threads (SocksDirect 6.6.3).
//!
//! One ring in each direction carries the messages of up to millions of connections, each with a
//! label that names its connection. A connection takes a [`Record`] of 32 bytes on each side, and
//! no ring, page or polling of its own. Its messages arrive whole and in order, independent of
//! other connections.
//!
//! **Writers.** The rings are those of this crate: each side writes the peer's memory, each word
//! has one writer, and the memory orderings are unchanged. A side's records of messages (the next
//! one of a connection, those taken from the middle of the ring) are in memory of its own, which
//! the caller provides, and never in the ring. The paper edits messages in place, which a sender
//! that only writes to remote memory would overwrite or never see.
//!
//! **Reading in any order.** Each entry is scanned once. It is linked to the others of its
//! connection, and its connection is put into the list of ready ones. Reading takes the first
//! message of its connection's list, or scans further. A message taken from the middle is marked;
//! marked messages at the front are given back to the sender.
//!
//! **Unread messages.** A message at the front that is never read would pin everything after it.
//! When the pinned bytes exceed half of the ring, messages from the front move to the side area
//! until a quarter remains. So the sender always gets its half back, as from any receiver, and need
//! not request it. Each message moves at most once.
//!
//! **Windows.** Unread messages of a connection take cells of the side area, or would if they moved
//! there. Each connection may have a limited number of unread cells ([`Limits::window`]); the
//! sender counts them, and gets them back in messages of the other direction, half a window at a
//! time. There are cells for the windows of all connections, so room for received messages never
//! runs out: a side that polls its queue always takes in everything that the peer has sent, and two
//! sides that fill both rings at once make progress as soon as one of them polls. Cells that were
//! never used are not touched, so they only take address space.
//!
//! **Opening and closing** are entries in the queue. A side opens numbers of its own range; a
//! number is reused when both sides have closed it. The peer's Close is the last entry of a
//! connection in its direction, so no entry of an earlier connection ever follows an Open, and the
//! generation in labels is only a check.
//!
//! **Untrusted values.** Labels, numbers, generations, lengths and amounts are checked before use.
//! A peer that breaks the protocol makes this queue unusable, with a permanent [`Fault`]; entries
//! that arrived before are read first.

mod area;
mod end;
mod inbox;
mod label;
mod news;
mod record;

pub use area::Cell;
pub use end::End;
pub use inbox::Slot;
pub use record::Record;

use crate::{Fault, Full, layout};
use inbox::ENTRY_BYTES_MIN;
use label::LABEL_BYTES;

/// Numbers of connections of a queue, and their limit of unread cells. Both sides have to use the
/// same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum numbers of connections that the first and the second side may have opened at once.
    pub connections: [u32; 2],
    /// Maximum number of unread cells of a connection in each direction; a message takes one for
    /// each [52 bytes](Self::message_max), and at least one.
    pub window: u16,
}

/// Maximum number of connections.
pub const CONNECTIONS_MAX: u32 = 1 << 28;

impl Limits {
    /// Returns the number of connections of both sides; `None` if it is 0 or too large.
    pub fn total(&self) -> Option<u32> {
        let [first, second] = self.connections;
        let total = first.checked_add(second).filter(|total| *total <= CONNECTIONS_MAX)?;
        (total > 0 && self.window > 0).then_some(total)
    }

    /// Returns the number of slots that a ring from the peer needs.
    pub const fn slots(capacity: usize) -> usize {
        capacity / ENTRY_BYTES_MIN
    }

    /// Returns the number of cells needed; `None` if they cannot be numbered.
    pub fn cells(&self) -> Option<usize> {
        let cells = u64::from(self.total()?) * u64::from(self.window);
        (cells < u64::from(u32::MAX)).then_some(cells as usize)
    }

    /// Returns the length of the longest message over a ring of that capacity: it fits a window
    /// whose messages are all read, but not all given back.
    pub fn message_max(&self, capacity: usize) -> usize {
        let of_ring = layout::message_max(capacity).saturating_sub(LABEL_BYTES);
        let cells = self.window.saturating_sub(self.given_back_at() - 1);
        of_ring.min(usize::from(cells) * area::CELL_PAYLOAD)
    }

    /// Returns the number of cells that are read before they are given back.
    #[inline]
    fn given_back_at(&self) -> u16 {
        (self.window / 2).max(1)
    }
}

/// Private memory of one side; all default, or zero, when the queue begins.
#[derive(Debug)]
pub struct Notes<'a> {
    /// Records, one for each connection ([`Limits::total`]).
    pub records: &'a mut [Record],
    /// Slots; see [`Limits::slots`].
    pub slots: &'a mut [Slot],
    /// Cells; see [`Limits::cells`].
    pub cells: &'a mut [Cell],
}

/// A connection of a queue. The default value is no connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Connection {
    number: u32,
    generation: u8,
}

impl Connection {
    /// Returns the number, the same for both sides, below the [total](Limits::total), for a
    /// program's own tables. The next connection with the same number is a different one, and is
    /// distinguished from this one unless 255 others were in between.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// A connection with an event.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Event {
    /// The connection.
    pub connection: Connection,
    /// Whether the peer has opened it, and this is its first event.
    pub is_new: bool,
}

/// Result of receiving from a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// A message of that many bytes.
    Message(usize),
    /// The next message has this number of bytes, more than there is room for. It is not taken.
    Longer(usize),
    /// No message has arrived.
    Nothing,
    /// The peer has closed the connection, and everything is read.
    End,
    /// There is no such connection, or this side has closed it.
    Closed,
}

/// Reason why something could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The ring is full: the peer has to read it first.
    Full,
    /// The peer has to read from this connection first. Other connections are not affected.
    Window,
    /// No message of this queue can have that length.
    TooLong,
    /// One of the sides has closed the connection, or it does not exist.
    Closed,
    /// This side has opened the maximum number of connections.
    NoNumber,
    /// The peer broke the protocol.
    Fault(Fault),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Full> for Refused {
    fn from(full: Full) -> Self {
        match full {
            Full::NoCredit => Self::Full,
            Full::TooLong => Self::TooLong,
            Full::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Returns an element of a table by a number from this side's own notes. The element always exists,
/// but this crate never panics.
#[inline]
fn at<T>(table: &mut [T], number: u32) -> Result<&mut T, Fault> {
    table.get_mut(number as usize).ok_or(Fault::Connection(number))
}
