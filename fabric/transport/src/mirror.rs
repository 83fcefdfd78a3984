// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings over a transport that posts writes and reports arrivals by completions, as RDMA does.
//!
//! The ring exists twice: its sender composes entries in a copy of its own, and the changed parts
//! are then written to the peer's ring (SocksDirect 6.3). The last write of a batch carries as its
//! data the position in the ring of the first entry that has not been sent, the *frontier*. The
//! receiver reads its memory only up to the frontier that arrived last, because after it there may
//! be any part of the next batch: a completion is the signal of arrival (6.6).
//!
//! **Adaptive batching** (6.5). With few writes outstanding, published entries are posted at once.
//! Otherwise nothing is posted until a write is done, and then everything accumulated until then,
//! as one write, or as two where the ring wraps to its start. So an idle link adds no delay, and a
//! busy one carries few, long writes.
//!
//! **Order.** A batch begins with the word with which the previous one ended, so two batches must
//! not arrive in the wrong order. A transport that keeps writes in order guarantees this; over one
//! that does not, each write waits until the previous one is done.

use crate::bounds::within;
use crate::endpoint::{Completion, Endpoint, Path, Region, Target, Transfer, WriteOrder};
use crate::error::Error;
use freeport_ring::{Claimed, Local, Remote};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// Number of outstanding writes up to which published entries are posted at once. SocksDirect gives
/// no number; four hide a round trip and still let batches grow.
const WRITES_AT_ONCE: u32 = 4;

/// Number of bits of the data for a ring's frontier, in words; the higher bits are the path's
/// number.
const FRONTIER_BITS: u32 = 20;
/// Value in place of a frontier for a write of notes.
const NOTES: u32 = (1 << FRONTIER_BITS) - 1;
/// First token of mirrors: other users of the same endpoint use lower ones.
pub const TOKENS: u64 = 1 << 63;
/// Size of the largest ring over a mirror, in bytes: the frontier of a larger one would not fit the
/// data.
pub const RING_BYTES_MAX: usize = 1 << 22;
/// Maximum number of paths of one endpoint.
pub const PATHS_MAX: u16 = 1 << (32 - FRONTIER_BITS);

/// The path of rings over such a transport.
#[derive(Debug)]
pub struct Mirror<E: Endpoint> {
    shared: Rc<Shared<E>>,
}

#[derive(Debug)]
struct Shared<E: Endpoint> {
    endpoint: E,
    number: u16,
    /// This side's copy of the peer's memory.
    copy: E::Region,
    there: E::Target,
    here: E::Region,
    state: RefCell<State>,
    arrived: Rc<Cell<usize>>,
    /// Bytes of this side's ring.
    own_ring_bytes: Cell<usize>,
}

/// The written data, and the part that is not sent.
#[derive(Debug, Default)]
struct State {
    /// Offset of the ring in the peer's memory.
    ring_at: usize,
    /// Offset in the ring of the first unsent entry.
    from: usize,
    /// Data written since then, staged entries included.
    written: Extent,
    /// The extent at the last publication.
    published: Option<Extent>,
    /// Remaining writes of a batch.
    posts: VecDeque<Post>,
    /// Offsets of words of notes to be sent.
    words: VecDeque<usize>,
    outstanding: u32,
    failed: Option<Error>,
}

/// Extent of the data written to a ring from some offset on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Extent {
    /// End of the part before the end of the ring.
    end: usize,
    /// End of the part that continues at the start; 0 if there is none.
    end_at_start: usize,
    /// Offset of the next entry.
    frontier: usize,
}

/// A write of a range of the copy to the same range at the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Post {
    range: Range<usize>,
    data: Option<u32>,
}

impl<E: Endpoint> Mirror<E> {
    /// Creates a path between a region of this side and memory of the peer.
    ///
    /// # Errors
    /// The number is too large, or there is no memory for the copy.
    pub fn new(
        endpoint: &E,
        inbound: &E::Region,
        outbound: &E::Target,
        number: u16,
    ) -> Result<Self, Error> {
        within("the paths of an endpoint", usize::from(number), 1, usize::from(PATHS_MAX))?;
        let shared = Shared {
            endpoint: endpoint.clone(),
            number,
            copy: endpoint.register(outbound.bytes())?,
            there: outbound.clone(),
            here: inbound.clone(),
            state: RefCell::default(),
            arrived: Rc::default(),
            own_ring_bytes: Cell::new(0),
        };
        Ok(Self { shared: Rc::new(shared) })
    }

    fn window(&self, at: usize, bytes: usize, is_ring: bool) -> Result<Window<E>, Error> {
        within("memory of the peer", at, bytes, self.shared.there.bytes())?;
        let copy = self.shared.copy.clone();
        Ok(Window { shared: Rc::clone(&self.shared), copy, at, is_ring })
    }

    fn inbox(&self, at: usize, bytes: usize, is_ring: bool) -> Result<Inbox<E>, Error> {
        within("memory of this side", at, bytes, self.shared.here.bytes())?;
        let arrived = is_ring.then(|| Rc::clone(&self.shared.arrived));
        Ok(Inbox { region: self.shared.here.clone(), at, arrived })
    }
}

impl<E: Endpoint> Path for Mirror<E> {
    type Window = Window<E>;
    type Inbox = Inbox<E>;

    fn notes(&self, at: usize, bytes: usize) -> Result<Window<E>, Error> {
        self.window(at, bytes, false)
    }

    fn ring(&self, at: usize, bytes: usize) -> Result<Window<E>, Error> {
        within("a ring that is mirrored", 0, bytes, RING_BYTES_MAX)?;
        self.shared.state.borrow_mut().ring_at = at;
        self.window(at, bytes, true)
    }

    fn own_notes(&self, at: usize, bytes: usize) -> Result<Inbox<E>, Error> {
        self.inbox(at, bytes, false)
    }

    fn own_ring(&self, at: usize, bytes: usize) -> Result<Inbox<E>, Error> {
        within("a ring that is mirrored", 0, bytes, RING_BYTES_MAX)?;
        self.shared.own_ring_bytes.set(bytes);
        self.inbox(at, bytes, true)
    }

    fn completed(&self, completion: Completion) -> Result<Option<Completion>, Error> {
        let number = u32::from(self.shared.number);
        match completion {
            Completion::Done { token } if token == self.shared.token() => {
                let outstanding = &mut self.shared.state.borrow_mut().outstanding;
                *outstanding = outstanding.saturating_sub(1);
            }
            Completion::Arrived { data } if data >> FRONTIER_BITS == number => {
                let frontier = data & NOTES;
                if frontier != NOTES {
                    let at = frontier as usize * 8;
                    within("the ring", at, 8, self.shared.own_ring_bytes.get())?;
                    self.shared.arrived.set(at);
                }
            }
            other => return Ok(Some(other)),
        }
        self.progress()?;
        Ok(None)
    }

    fn progress(&self) -> Result<(), Error> {
        self.shared.post();
        match self.shared.state.borrow_mut().failed.take() {
            Some(failed) => Err(failed),
            None => Ok(()),
        }
    }

    fn is_idle(&self) -> bool {
        let state = self.shared.state.borrow();
        let waits = state.published.is_some() || !state.posts.is_empty() || !state.words.is_empty();
        !waits && state.outstanding == 0
    }
}

impl<E: Endpoint> Shared<E> {
    fn token(&self) -> u64 {
        TOKENS | u64::from(self.number)
    }

    /// Posts pending writes, as far as they may be posted now.
    fn post(&self) {
        let state = &mut *self.state.borrow_mut();
        let at_once = if E::WRITE_ORDER == WriteOrder::Nothing { 1 } else { WRITES_AT_ONCE };
        while state.outstanding < at_once && state.failed.is_none() {
            let Some(post) = state.next_post(self.number, E::WRITE_BYTES_MAX) else { return };
            let transfer = Transfer {
                here: &self.copy,
                here_at: post.range.start,
                there: &self.there,
                there_at: post.range.start,
                bytes: post.range.len(),
                token: self.token(),
            };
            let posted = match post.data {
                Some(data) => self.endpoint.write_with_data(transfer, data),
                None => self.endpoint.write(transfer),
            };
            match posted {
                Ok(()) => state.outstanding += 1,
                // It is retried after a completion.
                Err(Error::QueueFull { .. }) => return state.posts.push_front(post),
                Err(error) => state.failed = Some(error),
            }
        }
    }
}

impl State {
    /// Returns the next write: the rest of a batch, then notes, then a new batch.
    fn next_post(&mut self, number: u16, longest: usize) -> Option<Post> {
        if let Some(post) = self.posts.pop_front() {
            return Some(post);
        }
        let number = u32::from(number) << FRONTIER_BITS;
        if let Some(at) = self.words.pop_front() {
            return Some(Post { range: at..at + 8, data: Some(number | NOTES) });
        }
        let batch = self.published.take()?;
        let frontier = (batch.frontier / 8) as u32;
        for part in [self.from..batch.end, 0..batch.end_at_start] {
            self.cut(part, longest);
        }
        if let Some(last) = self.posts.back_mut() {
            last.data = Some(number | frontier);
        }
        self.sent(batch);
        self.posts.pop_front()
    }

    /// Divides a part of the ring into writes.
    fn cut(&mut self, part: Range<usize>, longest: usize) {
        let mut start = part.start;
        while start < part.end {
            let end = part.end.min(start.saturating_add(longest & !7));
            let range = self.ring_at + start..self.ring_at + end;
            self.posts.push_back(Post { range, data: None });
            start = end;
        }
    }

    /// Continues after a batch. Entries staged after it remain.
    fn sent(&mut self, batch: Extent) {
        self.from = batch.frontier;
        if batch.end_at_start > 0 {
            self.written.end = self.written.end_at_start;
            self.written.end_at_start = 0;
        }
    }

    /// Records that a part of the ring was written.
    fn wrote(&mut self, at: usize, bytes: usize) {
        let Extent { end, end_at_start, .. } = &mut self.written;
        let end = if at >= self.from { end } else { end_at_start };
        *end = (*end).max(at + bytes);
    }
}

/// A part of the peer's memory, accessed through the copy.
#[derive(Debug)]
pub struct Window<E: Endpoint> {
    shared: Rc<Shared<E>>,
    copy: E::Region,
    at: usize,
    is_ring: bool,
}

impl<E: Endpoint> Remote for Window<E> {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller guarantees that it is inside the window; the copy is as large as the
        // peer's memory.
        unsafe { self.copy.write(self.at + offset, bytes) };
        if self.is_ring {
            self.shared.state.borrow_mut().wrote(offset, bytes.len());
        }
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: as above.
        unsafe { self.copy.store(self.at + offset, word) };
        let mut state = self.shared.state.borrow_mut();
        if self.is_ring {
            state.wrote(offset, 8);
            state.published = Some(state.written);
        } else if !state.words.contains(&(self.at + offset)) {
            state.words.push_back(self.at + offset);
        }
        drop(state);
        self.shared.post();
    }

    unsafe fn set(&mut self, offset: usize, word: u64) {
        // SAFETY: as above.
        unsafe { self.write(offset, &word.to_ne_bytes()) };
        // A ring ends its writes with a zero word, which the next header overwrites.
        if self.is_ring && word == 0 {
            self.shared.state.borrow_mut().written.frontier = offset;
        }
    }
}

/// A part of this side's memory, up to what has arrived.
#[derive(Debug)]
pub struct Inbox<E: Endpoint> {
    region: E::Region,
    at: usize,
    /// Offset in a ring where nothing has arrived yet.
    arrived: Option<Rc<Cell<usize>>>,
}

impl<E: Endpoint> Local for Inbox<E> {
    unsafe fn load(&self, offset: usize) -> Claimed {
        if self.arrived.as_ref().is_some_and(|arrived| arrived.get() == offset) {
            return Claimed::new(0);
        }
        // SAFETY: the caller guarantees that it is inside.
        unsafe { self.region.load(self.at + offset) }
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the caller guarantees that it is inside.
        unsafe { self.region.read(self.at + offset, into) }
    }
}
