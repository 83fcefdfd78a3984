// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One queue for all connections between two threads (SocksDirect 6.6.3).
//!
//! A ring each way carries the messages of up to millions of connections, each with a label that
//! says whose it is. A connection costs a [`Record`] of 32 bytes on each side and no ring, no page
//! and no look of its own. Its messages arrive whole and in order, whatever others do.
//!
//! **Who writes what.** The rings are those of this crate: each side writes the peer's memory, each
//! word has one writer, and all that orders them is as it was. What a side notes of messages (which
//! is the next one of a connection, what was taken from the middle of the ring) is in memory of its
//! own, which is handed in, and never in the ring. The source edits messages where they lie, which
//! a sender that only writes to remote memory would overwrite or never see.
//!
//! **Reading in any order.** Each entry is scanned once. It is linked behind the others of its
//! connection, and its connection put into the list of those that are ready. Reading takes the
//! first of that list of messages, or scans on. A message taken from the middle is marked; what is
//! marked at the front goes back to the sender.
//!
//! **Who is never read.** A message at the front that nobody reads would pin all behind it. When
//! what is pinned is more than half of the ring, messages from the front move to the side area
//! until it is a quarter. So the sender always gets its half back, as from any receiver, and need
//! not ask for that. Each message moves once at most.
//!
//! **Windows.** What a connection has unread takes cells of the side area, or would, if it moved
//! there. Each connection may have so many cells ([`Limits::window`]); the sender counts them, and
//! gets them back in messages of the other direction, half a window at a time. There are cells for
//! the windows of all connections, so room for what has come never runs out: whoever looks at his
//! queue always takes in all that the peer has sent, and two sides that fill both rings at once get
//! on as soon as one of them looks. Cells that were never used are not touched, so what that costs
//! is address space.
//!
//! **Beginning and ending.** Opening and closing are entries in the queue. A side opens numbers of
//! its own range; a number is used again when both sides have closed it. The peer's Close is the
//! last entry of a connection in its direction, so nothing of an earlier one is ever behind an
//! Open, and the generation in labels is a check, not what keeps them apart.
//!
//! **What is not believed.** Labels, numbers, generations, lengths and amounts are checked before
//! use. Whoever breaks the protocol spoils this queue, with a [`Fault`] that stays; what had come
//! before is read first.

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

/// How many connections a queue has, and how much they may have unread. Both sides say the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most that the first and the second side may have opened at once.
    pub connections: [u32; 2],
    /// Cells that a connection may have unread in each direction; a message takes one for each
    /// [52 bytes](Self::message_max), and one at least.
    pub window: u16,
}

/// The most connections that there can be.
pub const CONNECTIONS_MAX: u32 = 1 << 28;

impl Limits {
    /// All connections of both sides; `None` if those are none, or more than there can be.
    pub fn total(&self) -> Option<u32> {
        let [first, second] = self.connections;
        let total = first.checked_add(second).filter(|total| *total <= CONNECTIONS_MAX)?;
        (total > 0 && self.window > 0).then_some(total)
    }

    /// The slots that are needed for a ring from the peer.
    pub const fn slots(capacity: usize) -> usize {
        capacity / ENTRY_BYTES_MIN
    }

    /// The cells that are needed; `None` if those are more than can be numbered.
    pub fn cells(&self) -> Option<usize> {
        let cells = u64::from(self.total()?) * u64::from(self.window);
        (cells < u64::from(u32::MAX)).then_some(cells as usize)
    }

    /// The longest message over a ring of that capacity: it fits in a window of which everything is
    /// read, though not everything given back.
    pub fn message_max(&self, capacity: usize) -> usize {
        let of_ring = layout::message_max(capacity).saturating_sub(LABEL_BYTES);
        let cells = self.window.saturating_sub(self.given_back_at() - 1);
        of_ring.min(usize::from(cells) * area::CELL_PAYLOAD)
    }

    /// How many cells are read before they are given back.
    #[inline]
    fn given_back_at(&self) -> u16 {
        (self.window / 2).max(1)
    }
}

/// Memory of one side, which nobody else sees; all default, or zero, when the queue begins.
#[derive(Debug)]
pub struct Notes<'a> {
    /// One for each connection ([`Limits::total`]).
    pub records: &'a mut [Record],
    /// See [`Limits::slots`].
    pub slots: &'a mut [Slot],
    /// See [`Limits::cells`].
    pub cells: &'a mut [Cell],
}

/// A connection of a queue. The default is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Connection {
    number: u32,
    generation: u8,
}

impl Connection {
    /// Its number, the same for both sides, below the [total](Limits::total): for a program's own
    /// tables. The next connection with that number is another one, and is told apart from it
    /// unless 255 others were between.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// A connection of which there is something to be told.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Event {
    /// Which one.
    pub connection: Connection,
    /// The peer has opened it, and this is the first that is told of it.
    pub is_new: bool,
}

/// What there is for who receives from a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// A message of that many bytes.
    Message(usize),
    /// The next message has that many bytes, more than there is room for. It is still there.
    Longer(usize),
    /// Nothing has come.
    Nothing,
    /// The peer has closed the connection, and everything is read.
    End,
    /// There is no such connection, or this side has closed it.
    Closed,
}

/// Why something could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The ring is full: the peer has to look at it first.
    Full,
    /// The peer has to read from this connection first. Others can be sent on.
    Window,
    /// No message of this queue can be as long.
    TooLong,
    /// One of the sides has closed the connection, or there is none.
    Closed,
    /// As many connections are open as this side may open.
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

/// An element of a table that a number of this side's own notes leads to. There always is one; but
/// nothing here may panic.
#[inline]
fn at<T>(table: &mut [T], number: u32) -> Result<&mut T, Fault> {
    table.get_mut(number as usize).ok_or(Fault::Connection(number))
}
