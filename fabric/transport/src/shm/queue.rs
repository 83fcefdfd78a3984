// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One queue for all connections between two threads of two processes.

use super::hello::Purpose;
use super::link::{For, Link, Waits};
use super::table::Table;
use super::{Memory, Options, layout};
use crate::error::{Error, HelloError};
use crate::wait::{WaitCounts, Waiting};
use freeport_ring::shared_queue::{
    Came, Cell, Connection, End, Event, Limits, Notes, Record, Refused, Slot,
};
use freeport_ring::{Full, Kind, Receiver, Sender};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Sleep between two checks for the peer's limits.
const LOOK_AGAIN: Duration = Duration::from_micros(20);

/// One side of a [shared queue](freeport_ring::shared_queue). It begins, waits and ends like a
/// [`Connection`](super::Connection). Its rings do not grow.
///
/// ```
/// use freeport_fabric::shm::{Options, SharedQueue};
/// use freeport_ring::shared_queue::{Event, Limits};
///
/// let limits = Limits { connections: [1000, 0], window: 16 };
/// let (mut here, mut there) = SharedQueue::pair(&Options::default(), limits)?;
/// let connection = here.open()?;
/// here.send(connection, b"hello")?;
/// let mut events = [Event::default(); 16];
/// assert_eq!(there.poll(&mut events)?, 1);
/// let mut buffer = [0; 16];
/// assert_eq!(there.receive(events[0].connection, &mut buffer)?, Some(5));
/// # Ok::<(), freeport_fabric::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedQueue {
    /// Uses the tables and the link's segment, so it is dropped before them.
    end: End<'static, Memory, Memory>,
    limits: Limits,
    link: Link,
    _tables: Tables,
}

/// The memory of this side's notes.
#[derive(Debug)]
struct Tables {
    records: Table<Record>,
    slots: Table<Slot>,
    cells: Table<Cell>,
}

/// A side that has not received the peer's limits.
struct Begun {
    link: Link,
    ends: layout::Ends,
    limits: Limits,
}

impl SharedQueue {
    /// Creates both sides in one process.
    ///
    /// # Errors
    /// The sizes or limits are invalid, or the system refuses an operation.
    pub fn pair(options: &Options, limits: Limits) -> Result<(Self, Self), Error> {
        let [first, second] = Link::pair(Purpose::Queue, &fixed(options))?;
        let (first, second) = (Begun::new(first, limits)?, Begun::new(second, limits)?);
        Ok((first.agree(options.patience)?, second.agree(options.patience)?))
    }

    /// Creates the first side, whose options determine the sizes of the rings.
    ///
    /// # Errors
    /// The sizes or limits are invalid, the system refuses an operation, or the peer's hello is
    /// refused, or it has other limits.
    pub fn connect(stream: UnixStream, options: &Options, limits: Limits) -> Result<Self, Error> {
        let link = Link::connect(stream, Purpose::Queue, &fixed(options))?;
        Begun::new(link, limits)?.agree(options.patience)
    }

    /// Creates the second side.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn accept(stream: UnixStream, options: &Options, limits: Limits) -> Result<Self, Error> {
        let link = Link::accept(stream, Purpose::Queue, &fixed(options))?;
        Begun::new(link, limits)?.agree(options.patience)
    }

    /// Opens a connection; waits while the ring is full.
    ///
    /// # Errors
    /// This side has opened the maximum number of connections; the peer has closed, died, or broken
    /// the protocol; or the time-out has expired.
    pub fn open(&mut self) -> Result<Connection, Error> {
        self.until(For::Room, |this| this.attempt(0, End::open))
    }

    /// Sends a message; waits while the ring is full, or while the connection's window of unread
    /// messages is used up.
    ///
    /// # Errors
    /// The message is too long; one of the sides has closed the connection; or the errors of
    /// [`open`](Self::open).
    #[inline]
    pub fn send(&mut self, connection: Connection, message: &[u8]) -> Result<(), Error> {
        let send = |end: &mut End<'_, _, _>| end.send(connection, message);
        self.until(For::Room, |this| this.attempt(message.len(), send))
    }

    /// Announces that a message will be sent on a connection soon, after a few others. This is only
    /// a hint, which speeds up the send if there are many thousands of connections.
    #[inline]
    pub fn will_send(&self, connection: Connection) {
        self.end.will_send(connection);
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`send`](Self::send).
    #[inline]
    pub fn try_send(&mut self, connection: Connection, message: &[u8]) -> Result<(), Error> {
        let send = |end: &mut End<'_, _, _>| end.send(connection, message);
        self.attempt(message.len(), send)?.ok_or(Error::WouldBlock)
    }

    /// Receives the next message of a connection and returns its length, or `None` when the peer
    /// has closed it, and all earlier messages are received.
    ///
    /// # Errors
    /// The message is longer than the buffer; this side has closed the connection; the peer has
    /// died or broken the protocol; or the time-out has expired.
    #[inline]
    pub fn receive(
        &mut self,
        connection: Connection,
        into: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        self.until(For::Data, |this| this.receive_one(connection, into))
    }

    /// Receives the next message of a connection without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`receive`](Self::receive).
    #[inline]
    pub fn try_receive(
        &mut self,
        connection: Connection,
        into: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        self.receive_one(connection, into)?.ok_or(Error::WouldBlock)
    }

    /// Waits until a connection has an event, fills in the connections with events, and returns
    /// their number, which is 0 if the peer has ended or `into` is empty.
    ///
    /// # Errors
    /// The peer has died or broken the protocol, and all earlier events are reported; or the
    /// time-out has expired.
    #[inline]
    pub fn poll(&mut self, into: &mut [Event]) -> Result<usize, Error> {
        self.until(For::Data, |this| this.poll_once(into))
    }

    /// Reports connections with events without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], or the errors of [`poll`](Self::poll).
    #[inline]
    pub fn try_poll(&mut self, into: &mut [Event]) -> Result<usize, Error> {
        self.poll_once(into)?.ok_or(Error::WouldBlock)
    }

    /// Closes a connection: this side sends and receives nothing more on it.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn close(&mut self, connection: Connection) -> Result<(), Error> {
        self.disarm();
        let closed = self.end.close(connection);
        self.wake_peer()?;
        Ok(closed?)
    }

    /// Returns the length of the longest message that can be sent.
    pub fn message_max(&self) -> usize {
        self.end.message_max()
    }

    /// Returns whether the peer still exists.
    ///
    /// # Errors
    /// The system refuses the check.
    pub fn peer_is_alive(&mut self) -> Result<bool, Error> {
        Ok(!self.link.peer.is_gone()?)
    }

    /// Changes the waiting policy of this side.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.link.waiting = waiting;
    }

    /// Returns the counters of this side's waiting.
    pub fn wait_counts(&self) -> WaitCounts {
        self.link.counts
    }

    /// Prepares for waiting on the [descriptor](Self::as_fd) in an event loop. True means that
    /// [`poll`](Self::poll) would report nothing, and that the descriptor will become readable when
    /// it would, or when the peer is gone.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn arm(&mut self) -> Result<bool, Error> {
        let found = self.prepare_sleep(For::Data, |this| {
            let has_news = this.end.look();
            this.wake_peer()?;
            Ok(has_news?.then_some(()))
        })?;
        self.link.armed = found.is_none();
        Ok(found.is_none())
    }

    /// Attempts an operation that needs room; if there is none, processes received entries, which
    /// may provide room for this side or for the peer.
    #[inline]
    fn attempt<T>(
        &mut self,
        length: usize,
        operation: impl Fn(&mut End<'static, Memory, Memory>) -> Result<T, Refused>,
    ) -> Result<Option<T>, Error> {
        self.link.check_writing()?;
        self.disarm();
        let mut done = operation(&mut self.end);
        if matches!(done, Err(Refused::Full | Refused::Window | Refused::NoNumber)) {
            done = match self.end.look() {
                Ok(_) => operation(&mut self.end),
                Err(fault) => Err(fault.into()),
            };
        }
        // After a fault as well: earlier sends and reads are valid.
        self.wake_peer()?;
        match done {
            Ok(done) => Ok(Some(done)),
            Err(Refused::Full | Refused::Window) => Ok(None),
            Err(Refused::TooLong) => Err(Error::TooLong { length, longest: self.message_max() }),
            Err(Refused::Closed) => Err(Error::NoConnection),
            Err(Refused::NoNumber) => {
                Err(Error::TooMany { most: self.limits.connections[self.link.side() as usize] })
            }
            Err(Refused::Fault(fault)) => Err(fault.into()),
        }
    }

    #[inline]
    fn receive_one(
        &mut self,
        connection: Connection,
        into: &mut [u8],
    ) -> Result<Option<Option<usize>>, Error> {
        self.disarm();
        // Before the ring is checked: everything sent before the end is then in the ring.
        let ended = self.link.peer_has_ended();
        let came = self.end.receive(connection, into);
        self.wake_peer()?;
        match came? {
            Came::Message(length) => Ok(Some(Some(length))),
            Came::Longer(length) => Err(Error::Longer { length, room: into.len() }),
            Came::Nothing => Ok(ended.then_some(None)),
            Came::End => Ok(Some(None)),
            Came::Closed => Err(Error::NoConnection),
        }
    }

    #[inline]
    fn poll_once(&mut self, into: &mut [Event]) -> Result<Option<usize>, Error> {
        self.disarm();
        let ended = self.link.peer_has_ended();
        let reported = self.end.poll(into);
        self.wake_peer()?;
        let count = reported?;
        Ok((count > 0 || ended || into.is_empty()).then_some(count))
    }

    #[inline]
    fn wake_peer(&mut self) -> Result<(), Error> {
        let wake = self.end.take_wake();
        self.link.wake(wake)
    }
}

/// Fixes the size of the rings.
fn fixed(options: &Options) -> Options {
    Options { capacity_max: options.capacity, ..*options }
}

impl Begun {
    /// Sends this side's limits to the peer, in the first entry of the ring.
    fn new((link, ends): (Link, layout::Ends), limits: Limits) -> Result<Self, Error> {
        let mut begun = Self { link, ends, limits };
        match begun.ends.0.send(Kind::Data, &[&limits_to_bytes(limits)]) {
            Ok(wake) => begun.link.wake(wake)?,
            Err(Full::Fault(fault)) => return Err(fault.into()),
            Err(Full::NoCredit | Full::TooLong) => return Err(refused(limits)),
        }
        Ok(begun)
    }

    /// Waits for the peer's limits, which have to be the same.
    fn agree(mut self, patience: Duration) -> Result<SharedQueue, Error> {
        let begin = Instant::now();
        let (_, receiver) = &mut self.ends;
        let entry = loop {
            let ended = self.link.peer_has_ended();
            match receiver.peek()? {
                Some(entry) => break entry,
                None if ended => return Err(HelloError::HungUp.into()),
                None if begin.elapsed() > patience => {
                    return Err(HelloError::Silent(patience).into());
                }
                None => thread::sleep(LOOK_AGAIN),
            }
        };
        let ours = limits_to_bytes(self.limits);
        let mut theirs = [0; LIMITS_BYTES + 1];
        let length = receiver.read(&entry, 0, &mut theirs);
        if entry.kind != Kind::Data || theirs.get(..length) != Some(&ours[..]) {
            return Err(HelloError::Limits.into());
        }
        let wake = receiver.take(&entry);
        self.link.wake(wake)?;
        self.finish()
    }

    fn finish(self) -> Result<SharedQueue, Error> {
        let Self { link, ends: (sender, receiver), limits } = self;
        let (total, cells) = limits.total().zip(limits.cells()).ok_or(refused(limits))?;
        let tables = Tables {
            records: Table::new(total as usize)?,
            slots: Table::new(Limits::slots(receiver.capacity()))?,
            cells: Table::new(cells)?,
        };
        tables.records.prefer_huge_pages();
        let notes = Notes {
            // SAFETY: the only call for this table. The queue owns the table and the end, which is
            // not used after the queue is dropped.
            records: unsafe { tables.records.elements() },
            // SAFETY: as above.
            slots: unsafe { tables.slots.elements() },
            // SAFETY: as above.
            cells: unsafe { tables.cells.elements() },
        };
        let end = End::new(sender, receiver, limits, link.side() as usize, notes);
        Ok(SharedQueue { end: end.ok_or(refused(limits))?, limits, link, _tables: tables })
    }
}

const LIMITS_BYTES: usize = 12;

fn limits_to_bytes(limits: Limits) -> [u8; LIMITS_BYTES] {
    let mut bytes = [0; LIMITS_BYTES];
    let numbers = [limits.connections[0], limits.connections[1], u32::from(limits.window)];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn refused(limits: Limits) -> Error {
    Error::Limits { connections: limits.connections, window: limits.window }
}

impl Waits for SharedQueue {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn rings(&mut self) -> (&mut Sender<Memory, Memory>, &mut Receiver<Memory, Memory>) {
        self.end.rings()
    }

    /// Announces a sleep. A side that waits for room may get it by received entries, and a side
    /// that waits for entries may have a pending message to the peer, for which there is no room.
    fn announce_sleep(&mut self, what: For) -> bool {
        if what == For::Room || self.end.owes() {
            self.rings().0.announce_sleep();
        }
        self.rings().1.announce_sleep()
    }

    fn announce_awake(&mut self, _what: For) {
        let (sender, receiver) = self.rings();
        sender.announce_awake();
        receiver.announce_awake();
    }
}

impl AsFd for SharedQueue {
    /// Returns a descriptor that is readable when the peer has rung or is gone, after
    /// [`arm`](Self::arm).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.peer.descriptor()
    }
}
