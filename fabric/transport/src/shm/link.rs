// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What connections of bytes and of messages have in common: the segment, the peer, ends and
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

/// In a side's word: it writes nothing more.
const ENDED: u64 = 1;
/// In a side's word: it reads nothing more either.
const CLOSED: u64 = 2;

/// Where in a side's state the core is on which it waited last, counted from 1.
const CORE: usize = 8;

/// One side of a connection, beside its rings.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) peer: Peer,
    pub(crate) waiting: Waiting,
    pub(crate) counts: WaitCounts,
    side: Side,
    layout: Layout,
    fenced: bool,
    /// What this side will do no more, in words of this side and of the peer.
    said: u64,
    /// The core that the peer was told.
    core: u64,
    mine: Memory,
    theirs: Memory,
    /// The areas in which the rings are.
    sending_area: u32,
    receiving_area: u32,
    /// Whether the ring was full since it moved last.
    pub(crate) was_full: bool,
    /// Whether a sleep was announced that nobody has taken back.
    pub(crate) armed: bool,
    segment: Segment,
}

/// What a side waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum For {
    /// Something to read.
    Data,
    /// Room to write.
    Room,
}

/// A connection, for who waits on it.
pub(crate) trait Waits {
    /// What it has in common with others.
    fn link(&mut self) -> &mut Link;
    /// The ring to the peer and the one from it.
    fn rings(&mut self) -> (&mut Sender<Memory, Memory>, &mut Receiver<Memory, Memory>);

    /// Announces that this side sleeps; true: the peer has to be woken.
    fn announce_sleep(&mut self, what: For) -> bool {
        match (what, self.rings()) {
            (For::Data, (_, receiver)) => receiver.announce_sleep(),
            (For::Room, (sender, _)) => {
                sender.announce_sleep();
                false
            }
        }
    }

    /// Takes that back.
    fn announce_awake(&mut self, what: For) {
        match (what, self.rings()) {
            (For::Data, (_, receiver)) => receiver.announce_awake(),
            (For::Room, (sender, _)) => sender.announce_awake(),
        }
    }

    /// Tries until something comes of it, waiting in between as the policy says.
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

    /// The slow part of [`until`](Self::until).
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
            // What a peer wrote before it died is there.
            if let Some(found) = attempt(self)? {
                return Ok(found);
            }
            match slept {
                Some(Woken::Gone) => return Err(self.link().gone()),
                // Whatever woke it: a peer that rings for nothing does not stop the clock.
                Some(_) if wait.left().is_some_and(|left| left.is_zero()) => {
                    return Err(Error::TimedOut(self.link().waiting.timeout.unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    /// Takes back what was announced for an event loop.
    #[inline]
    fn disarm(&mut self) {
        if self.link().armed {
            self.link().armed = false;
            self.announce_awake(For::Data);
            self.announce_awake(For::Room);
        }
    }

    /// Announces the sleep and tries for the last time. `None`: it may sleep now.
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
    /// Both sides of a connection in one process.
    pub(crate) fn pair(purpose: Purpose, options: &Options) -> Result<[(Self, Ends); 2], Error> {
        let (first, second) = UnixStream::pair()
            .map_err(|source| Error::System { what: "a pair of sockets", source })?;
        let offer = Offer::send(first, purpose, options)?;
        let second = hello::accept(second, purpose, options)?;
        Ok([Self::new(offer.finish()?, options)?, Self::new(second, options)?])
    }

    /// The first side of a connection with the peer at the other end of a socket.
    pub(crate) fn connect(
        stream: UnixStream,
        purpose: Purpose,
        options: &Options,
    ) -> Result<(Self, Ends), Error> {
        Self::new(Offer::send(stream, purpose, options)?.finish()?, options)
    }

    /// The second side.
    pub(crate) fn accept(
        stream: UnixStream,
        purpose: Purpose,
        options: &Options,
    ) -> Result<(Self, Ends), Error> {
        Self::new(hello::accept(stream, purpose, options)?, options)
    }

    fn new(agreed: Agreed, options: &Options) -> Result<(Self, Ends), Error> {
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

    /// Wakes the peer if it has to be.
    #[inline]
    pub(crate) fn wake(&mut self, wake: bool) -> Result<(), Error> {
        if wake { self.ring() } else { Ok(()) }
    }

    #[cold]
    fn ring(&mut self) -> Result<(), Error> {
        self.counts.wakes += 1;
        self.peer.wake()
    }

    /// Tells the peer on which core this side waits; gives whether the peer did on the same one.
    /// A peer that says what is not so only makes this side wait in the worse way.
    fn shares_core(&mut self) -> bool {
        // SAFETY: a plain number; where there is none, it is below 0.
        let core = u64::try_from(unsafe { libc::sched_getcpu() } + 1).unwrap_or_default();
        if core != self.core {
            self.core = core;
            // SAFETY: a word of the segment.
            unsafe { self.mine.store(CORE, core) };
        }
        // SAFETY: a word of the segment.
        core != 0 && unsafe { self.theirs.load(CORE) }.is(core)
    }

    /// Before the last look of who goes to sleep.
    fn after_announcing(&mut self, wake: bool) -> Result<(), Error> {
        self.wake(wake)?;
        if self.fenced || barrier::pass_everywhere() {
            Ok(())
        } else {
            Err(Error::system("membarrier"))
        }
    }

    /// Whether the peer will write nothing more. What it wrote before that is there.
    pub(crate) fn peer_has_ended(&self) -> bool {
        self.peer_said() & ENDED != 0
    }

    /// An error if nothing may be written.
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

    /// The error when the peer is gone and there is nothing left to do.
    pub(crate) fn gone(&self) -> Error {
        match self.peer_said() & CLOSED {
            0 => Error::PeerDied { pid: self.peer.pid() },
            _ => self.closed(),
        }
    }

    #[inline]
    fn peer_said(&self) -> u64 {
        // SAFETY: a word of the segment.
        unsafe { self.theirs.load(0) }.bits(ENDED | CLOSED)
    }

    /// Says that this side writes nothing more.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        self.say(ENDED)
    }

    fn say(&mut self, what: u64) -> Result<(), Error> {
        self.said |= what;
        // SAFETY: a word of the segment.
        unsafe { self.mine.store(0, self.said) };
        // Once or twice for each connection: not worth finding out whether the peer sleeps.
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

    /// Whether the sending ring can move to a larger area.
    pub(crate) fn may_grow(&self) -> bool {
        self.sending_area + 1 < self.layout.areas()
    }

    /// The bytes that the sending ring can grow to.
    pub(crate) fn capacity_max(&self) -> usize {
        self.layout.capacity(self.layout.areas() - 1)
    }

    #[cold]
    fn move_sender(&mut self, ring: &mut Sender<Memory, Memory>) -> Result<(), Error> {
        let area = self.sending_area + 1;
        let (memory, capacity) = self.area(self.side.other(), area)?;
        // SAFETY: as large as that; an area is used once, and a segment is zero when it is made.
        match unsafe { ring.move_to(memory, capacity, u64::from(area)) } {
            Ok(wake) => {
                self.sending_area = area;
                self.was_full = false;
                self.wake(wake)
            }
            Err(Full::Fault(fault)) => Err(fault.into()),
            // There is no credit for saying so: later, then.
            Err(Full::NoCredit | Full::TooLong) => Ok(()),
        }
    }

    /// Follows the sender to the area to which it says that it has moved.
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
        // SAFETY: as large as that. If the peer did not leave it zero, it gets a fault for it.
        let moved = unsafe { ring.move_to(entry, memory, capacity) };
        let wake = moved.ok_or(Error::Moved { area: name, current, areas })?;
        self.receiving_area = area;
        // Nobody will use it again.
        let left = self.layout.area(self.side, current);
        self.segment.release(left, self.layout.capacity(current));
        self.wake(wake)
    }

    fn area(&self, to: Side, area: u32) -> Result<(Memory, usize), Error> {
        let (at, capacity) = (self.layout.area(to, area), self.layout.capacity(area));
        let memory = self.layout.memory(&self.segment, at, capacity, self.fenced)?;
        Ok((memory, capacity))
    }

    /// Which side this is.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// Whether both sides use fences.
    pub(crate) fn is_fenced(&self) -> bool {
        self.fenced
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A peer that is gone, or that spoilt its doorbell, need not know.
        _ = self.say(ENDED | CLOSED);
    }
}
