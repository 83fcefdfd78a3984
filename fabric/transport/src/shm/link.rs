// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Common parts of connections of bytes and of messages: the segment, the peer, the ends and
//! waiting.

use super::hello::{self, Agreed, Offer, Purpose};
use super::layout::{Ends, Layout, Side};
use super::peer::{Peer, Woken};
use super::segment::Segment;
use super::{Memory, Options, barrier};
use crate::error::Error;
use crate::wait::{Next, Wait, WaitCounts, Waiting};
use freeport_ring::{Entry, Full, Local, Receiver, Remote, Sender};
use std::os::unix::net::UnixStream;

/// Flag in a side's word: it writes nothing more.
const ENDED: u64 = 1;
/// Flag in a side's word: it reads nothing more either.
const CLOSED: u64 = 2;

/// Offset in a side's state of the core on which it waited last, counted from 1.
const CORE: usize = 8;

/// One side of a connection, without its rings.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) peer: Peer,
    pub(crate) waiting: Waiting,
    pub(crate) counts: WaitCounts,
    side: Side,
    layout: Layout,
    fenced: bool,
    /// Flags of the ends that this side has closed, as stored in its word.
    said: u64,
    /// The core that was last stored for the peer.
    core: u64,
    mine: Memory,
    theirs: Memory,
    /// The areas that the rings are in.
    sending_area: u32,
    receiving_area: u32,
    /// Whether the ring was full since its last move.
    pub(crate) was_full: bool,
    /// Whether a sleep was announced and not revoked.
    pub(crate) armed: bool,
    segment: Segment,
}

/// Condition that a side waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum For {
    /// Data to read.
    Data,
    /// Room to write.
    Room,
}

/// A connection on which a thread can wait.
pub(crate) trait Waits {
    /// Returns the common part.
    fn link(&mut self) -> &mut Link;
    /// Returns the ring to the peer and the one from it.
    fn rings(&mut self) -> (&mut Sender<Memory, Memory>, &mut Receiver<Memory, Memory>);

    /// Announces that this side sleeps; true means that the peer has to be woken.
    fn announce_sleep(&mut self, what: For) -> bool {
        match (what, self.rings()) {
            (For::Data, (_, receiver)) => receiver.announce_sleep(),
            (For::Room, (sender, _)) => {
                sender.announce_sleep();
                false
            }
        }
    }

    /// Revokes the announcement.
    fn announce_awake(&mut self, what: For) {
        match (what, self.rings()) {
            (For::Data, (_, receiver)) => receiver.announce_awake(),
            (For::Room, (sender, _)) => sender.announce_awake(),
        }
    }

    /// Repeats an attempt until it succeeds, waiting in between according to the policy.
    #[inline]
    fn until<T>(
        &mut self,
        what: For,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        if let Some(found) = attempt(self)? {
            return Ok(found);
        }
        self.wait_until(what, attempt)
    }

    /// Implements the slow path of [`until`](Self::until).
    #[cold]
    fn wait_until<T>(
        &mut self,
        what: For,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let link = self.link();
        let mut wait = Wait::new(link.waiting, link.shares_core());
        loop {
            let link = self.link();
            let slept = match wait.step(&mut link.counts) {
                Next::Look => None,
                Next::Check if link.peer.is_gone()? => Some(Woken::Gone),
                Next::Check => Some(Woken::Neither),
                Next::Sleep => {
                    if let Some(found) = self.prepare_sleep(what, &mut attempt)? {
                        return Ok(found);
                    }
                    let link = self.link();
                    link.counts.sleeps += 1;
                    let left = wait.left();
                    let woken = link.peer.sleep(left);
                    self.announce_awake(what);
                    wait.slept();
                    Some(woken?)
                }
            };
            // Everything that a peer wrote before it died is in the ring.
            if let Some(found) = attempt(self)? {
                return Ok(found);
            }
            match slept {
                Some(Woken::Gone) => return Err(self.link().gone()),
                // For every cause of the wake-up: a peer that rings without reason does not extend
                // the time-out.
                Some(_) if wait.left().is_some_and(|left| left.is_zero()) => {
                    return Err(Error::TimedOut(self.link().waiting.timeout.unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    /// Revokes the announcement made for an event loop.
    #[inline]
    fn disarm(&mut self) {
        if self.link().armed {
            self.link().armed = false;
            self.announce_awake(For::Data);
            self.announce_awake(For::Room);
        }
    }

    /// Announces the sleep and makes a last attempt. `None` means that the caller may sleep now.
    fn prepare_sleep<T>(
        &mut self,
        what: For,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let wake = self.announce_sleep(what);
        let prepared = self.link().after_announcing(wake).and_then(|()| attempt(self));
        if !matches!(prepared, Ok(None)) {
            self.announce_awake(what);
        }
        prepared
    }
}

impl Link {
    /// Creates both sides of a connection in one process.
    pub(crate) fn pair(purpose: Purpose, options: &Options) -> Result<[(Self, Ends); 2], Error> {
        let (first, second) = UnixStream::pair()
            .map_err(|source| Error::System { what: "a pair of sockets", source })?;
        let offer = Offer::send(first, purpose, options)?;
        let second = hello::accept(second, purpose, options)?;
        Ok([Self::new(offer.finish()?, options)?, Self::new(second, options)?])
    }

    /// Creates the first side of a connection, with the peer connected by a socket.
    pub(crate) fn connect(
        stream: UnixStream,
        purpose: Purpose,
        options: &Options,
    ) -> Result<(Self, Ends), Error> {
        Self::new(Offer::send(stream, purpose, options)?.finish()?, options)
    }

    /// Creates the second side.
    pub(crate) fn accept(
        stream: UnixStream,
        purpose: Purpose,
        options: &Options,
    ) -> Result<(Self, Ends), Error> {
        Self::new(hello::accept(stream, purpose, options)?, options)
    }

    /// Creates a side after the handshake.
    pub(crate) fn new(agreed: Agreed, options: &Options) -> Result<(Self, Ends), Error> {
        let Agreed { side, segment, layout, fenced, peer } = agreed;
        let ends = layout.ends(&segment, side, fenced)?;
        let link = Self {
            peer,
            waiting: options.waiting,
            counts: WaitCounts::default(),
            side,
            layout,
            fenced,
            said: 0,
            core: 0,
            mine: layout.state(&segment, side, fenced)?,
            theirs: layout.state(&segment, side.other(), fenced)?,
            sending_area: 0,
            receiving_area: 0,
            was_full: false,
            armed: false,
            segment,
        };
        Ok((link, ends))
    }

    /// Wakes the peer if necessary.
    #[inline]
    pub(crate) fn wake(&mut self, wake: bool) -> Result<(), Error> {
        if wake { self.ring() } else { Ok(()) }
    }

    #[cold]
    fn ring(&mut self) -> Result<(), Error> {
        self.counts.wakes += 1;
        self.peer.wake()
    }

    /// Stores for the peer on which core this side waits; returns whether the peer waited on the
    /// same one. A false value from the peer only makes this side wait in the slower way.
    fn shares_core(&mut self) -> bool {
        // SAFETY: the call takes no arguments; on failure it returns a negative number.
        let core = u64::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or_default();
        if core != self.core {
            self.core = core;
            // SAFETY: the offset is that of a word of this side's state in the segment.
            unsafe { self.mine.store(CORE, core) };
        }
        // SAFETY: the offset is that of a word of the peer's state in the segment.
        core != 0 && unsafe { self.theirs.load(CORE) }.is(core)
    }

    /// Completes the announcement of a sleep, before the last attempt.
    fn after_announcing(&mut self, wake: bool) -> Result<(), Error> {
        self.wake(wake)?;
        if self.fenced || barrier::pass_everywhere() {
            Ok(())
        } else {
            Err(Error::system("membarrier"))
        }
    }

    /// Returns whether the peer will write nothing more. Everything it wrote before is in the ring.
    pub(crate) fn peer_has_ended(&self) -> bool {
        self.peer_said() & ENDED != 0
    }

    /// Returns an error if nothing may be written.
    #[inline]
    pub(crate) fn check_writing(&self) -> Result<(), Error> {
        if self.said == 0 && self.peer_said() & CLOSED == 0 {
            return Ok(());
        }
        Err(if self.said == 0 { self.closed() } else { Error::ShutDown })
    }

    fn closed(&self) -> Error {
        Error::Closed { pid: self.peer.pid() }
    }

    /// Returns the error for a peer that is gone, when nothing is left to read.
    pub(crate) fn gone(&self) -> Error {
        match self.peer_said() & CLOSED {
            0 => Error::PeerDied { pid: self.peer.pid() },
            _ => self.closed(),
        }
    }

    #[inline]
    fn peer_said(&self) -> u64 {
        // SAFETY: the offset is that of a word of the peer's state in the segment.
        unsafe { self.theirs.load(0) }.bits(ENDED | CLOSED)
    }

    /// Announces that this side writes nothing more.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        self.say(ENDED)
    }

    fn say(&mut self, what: u64) -> Result<(), Error> {
        self.said |= what;
        // SAFETY: the offset is that of a word of this side's state in the segment.
        unsafe { self.mine.store(0, self.said) };
        // This happens once or twice for each connection: checking whether the peer sleeps is not
        // worthwhile.
        self.ring()
    }

    /// Moves the sending ring to the next area, if it was full and there is one.
    #[inline]
    pub(crate) fn grow(&mut self, ring: &mut Sender<Memory, Memory>) -> Result<(), Error> {
        if self.was_full && self.may_grow() {
            self.move_sender(ring)?;
        }
        Ok(())
    }

    /// Returns whether the sending ring can move to a larger area.
    pub(crate) fn may_grow(&self) -> bool {
        self.sending_area + 1 < self.layout.areas()
    }

    /// Returns the capacity that the sending ring can grow to, in bytes.
    pub(crate) fn capacity_max(&self) -> usize {
        self.layout.capacity(self.layout.areas() - 1)
    }

    #[cold]
    fn move_sender(&mut self, ring: &mut Sender<Memory, Memory>) -> Result<(), Error> {
        let area = self.sending_area + 1;
        let (memory, capacity) = self.area(self.side.other(), area)?;
        // SAFETY: the area has that capacity; an area is used once, and a segment is zero when it
        // is created.
        match unsafe { ring.move_to(memory, capacity, u64::from(area)) } {
            Ok(wake) => {
                self.sending_area = area;
                self.was_full = false;
                self.wake(wake)
            }
            Err(Full::Fault(fault)) => Err(fault.into()),
            // There is no credit for the announcement: it is retried later.
            Err(Full::NoCredit | Full::TooLong) => Ok(()),
        }
    }

    /// Follows the sender to the area that it claims to have moved to.
    pub(crate) fn follow(
        &mut self,
        ring: &mut Receiver<Memory, Memory>,
        name: u64,
        entry: &Entry,
    ) -> Result<(), Error> {
        let (current, areas) = (self.receiving_area, self.layout.areas());
        let area = u32::try_from(name).ok().filter(|area| *area > current && *area < areas);
        let area = area.ok_or(Error::Moved { area: name, current, areas })?;
        let (memory, capacity) = self.area(self.side, area)?;
        // SAFETY: the area has that capacity. If the peer did not leave it zero, this side reports
        // a fault.
        let moved = unsafe { ring.move_to(entry, memory, capacity) };
        let wake = moved.ok_or(Error::Moved { area: name, current, areas })?;
        self.receiving_area = area;
        // No side will use the previous area again.
        let left = self.layout.area(self.side, current);
        self.segment.release(left, self.layout.capacity(current));
        self.wake(wake)
    }

    fn area(&self, to: Side, area: u32) -> Result<(Memory, usize), Error> {
        let (at, capacity) = (self.layout.area(to, area), self.layout.capacity(area));
        let memory = self.layout.memory(&self.segment, at, capacity, self.fenced)?;
        Ok((memory, capacity))
    }

    /// Returns the side.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// Returns whether both sides use fences.
    pub(crate) fn is_fenced(&self) -> bool {
        self.fenced
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A peer that is gone, or that made its doorbell unusable, need not be notified.
        _ = self.say(ENDED | CLOSED);
    }
}
