// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that is weaker than any machine's, and the window through which a ring accesses it.
//!
//! The writes of a side are initially invisible to the other. A load of the other side may return
//! the old word, or the word after any of these writes; that write is visible from then on, with
//! - all earlier writes of the same side, if the memory keeps the order of stores, as x86 with its
//!   store buffers ([`Order::Total`]),
//! - otherwise only the earlier writes of that word, unless the write is a `store`, which makes all
//!   earlier ones visible, as on Arm or from a card that writes in pieces ([`Order::Weak`]).
//!
//! So only the results of loads have to be explored: a write that was not loaded is equivalent to
//! one that has not arrived.
//!
//! An operation of a ring is rerun from its beginning each time: the results of its earlier calls
//! to the memory are in a log, and the first call beyond the log is its next step. From there on
//! the calls return zeros, and the outcome is discarded, so that the real code runs without a
//! thread that can be paused.

use freeport_ring::{Claimed, Local, Remote};
use std::cell::{Cell, RefCell};

/// Order in which the writes of a side become visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The order in which they were made.
    Total,
    /// Any order, except for the guarantee of a `store`.
    Weak,
}

/// A broken rule, to show that the rule is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// No zero word is written after an entry.
    NoTerminator,
    /// Headers are written like payload.
    PlainHeader,
    /// Headers are written before the payload.
    HeaderFirst,
    /// `barrier` does nothing, not even to the compiler.
    NoBarrier,
    /// The sleeper does not make the other side execute a barrier.
    NoMembarrier,
    /// A side that finds the other sleeping lightly does not execute a fence.
    NoFence,
    /// The sleeper does not check once more.
    NoSecondLook,
    /// The receiver gives back one word more than it has read.
    CreditsTooHigh,
    /// The receiver takes an entry before it reads it.
    TakenFirst,
    /// A sleeping side announces that it sleeps, but does not count its sleeps.
    SleepsNotCounted,
}

/// A write of a part of a word.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Write {
    at: usize,
    value: u64,
    mask: u64,
    is_store: bool,
    /// Whether the processor has issued it, so that a barrier makes it visible.
    is_issued: bool,
}

/// The memory that both sides write to: each word is written by one side only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Memory {
    words: Vec<u64>,
    /// Writes of each side that the other may not see yet.
    pending: [Vec<Write>; 2],
}

impl Memory {
    /// Creates memory of zeros.
    pub fn new(words: usize) -> Self {
        Self { words: vec![0; words], pending: [vec![], vec![]] }
    }

    /// Returns the possible results of a load of the side, each with the memory after it.
    pub fn load(&self, side: usize, at: usize, order: Order) -> Vec<(u64, Self)> {
        let mut found = vec![(self.words[at], self.clone())];
        for (last, write) in self.pending[1 - side].iter().enumerate() {
            if write.at == at {
                let mut memory = self.clone();
                memory.show(1 - side, last, order);
                found.push((memory.words[at], memory));
            }
        }
        found
    }

    /// Returns whether the other side has written the word by other means than a store: a
    /// concurrent read may then return anything.
    pub fn has_race(&self, side: usize, at: usize) -> bool {
        self.pending[1 - side].iter().any(|write| write.at == at && !write.is_store)
    }

    /// Makes a write visible, with those that have to be visible before it.
    fn show(&mut self, writer: usize, last: usize, order: Order) {
        let writes = std::mem::take(&mut self.pending[writer]);
        let at = writes[last].at;
        let store =
            (0..=last).rev().find(|&place| writes[place].at == at && writes[place].is_store);
        for (place, write) in writes.into_iter().enumerate() {
            let is_shown = place <= last
                && (order == Order::Total
                    || write.at == at
                    || store.is_some_and(|store| place < store));
            match is_shown {
                true => self.apply(&write),
                false => self.pending[writer].push(write),
            }
        }
    }

    fn apply(&mut self, write: &Write) {
        let word = &mut self.words[write.at];
        *word = *word & !write.mask | write.value & write.mask;
    }

    /// Adds the writes of a side.
    pub fn write(&mut self, side: usize, writes: Vec<Write>) {
        self.pending[side].extend(writes);
    }

    /// Marks everything that the side wrote as issued: the compiler has kept it before later
    /// accesses.
    pub fn issue(&mut self, side: usize) {
        self.pending[side].iter_mut().for_each(|write| write.is_issued = true);
    }

    /// Executes a barrier of the side: its writes are visible.
    pub fn fence(&mut self, side: usize) {
        for write in std::mem::take(&mut self.pending[side]) {
            self.apply(&write);
        }
    }

    /// Executes a barrier of both sides, wherever the other one is.
    pub fn membarrier(&mut self, side: usize) {
        self.fence(side);
        for write in std::mem::take(&mut self.pending[1 - side]) {
            match write.is_issued {
                true => self.apply(&write),
                false => self.pending[1 - side].push(write),
            }
        }
    }
}

/// A call of a ring to its memory.
#[derive(Clone, Debug)]
pub enum Call {
    /// A load of a word.
    Load(usize),
    /// A read of the bytes of a word that the mask names.
    Read(usize, u64),
    /// A write of a word that becomes visible after all others.
    Store(Write),
    /// Writes that become visible independently.
    Write(Vec<Write>),
    /// The writes have to be issued, or visible.
    Barrier,
    /// The writes have to be visible.
    Fence,
}

/// A run of an operation.
pub struct Run<'a> {
    log: &'a [u64],
    at: Cell<usize>,
    next: RefCell<Option<Call>>,
    late: RefCell<Vec<Write>>,
    mutation: Option<Mutation>,
}

impl<'a> Run<'a> {
    /// Creates a run whose first calls returned the values in the log.
    pub fn new(log: &'a [u64], mutation: Option<Mutation>) -> Self {
        let (at, next) = (Cell::new(0), RefCell::new(None));
        Self { log, at, next, late: RefCell::new(vec![]), mutation }
    }

    /// Returns the next call of the operation; `None` if it has ended.
    pub fn next(self) -> Option<Call> {
        self.next.into_inner()
    }

    /// Returns a window on the words from `start` on, with this number of bytes.
    pub fn window(&'a self, start: usize, bytes: usize, is_ring: bool) -> Window<'a> {
        Window { run: self, start, bytes, is_ring }
    }

    fn call(&self, call: impl FnOnce() -> Call) -> u64 {
        let at = self.at.get();
        if let Some(&given) = self.log.get(at) {
            self.at.set(at + 1);
            return given;
        }
        let mut next = self.next.borrow_mut();
        if next.is_none() {
            *next = Some(call());
        }
        0
    }
}

/// A part of the memory, as a ring sees it.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    run: &'a Run<'a>,
    start: usize,
    bytes: usize,
    is_ring: bool,
}

impl Window<'_> {
    fn is(&self, mutation: Mutation) -> bool {
        self.run.mutation == Some(mutation)
    }

    /// Returns the words that contain these bytes: for each its number and a mask of its bits.
    fn words(&self, offset: usize, length: usize) -> impl Iterator<Item = (usize, u64)> + use<> {
        assert!(offset + length <= self.bytes, "{length} bytes at {offset} are outside");
        let (start, end) = (self.start, offset + length);
        (offset / 8..end.div_ceil(8)).map(move |word| {
            let before = offset.saturating_sub(8 * word);
            let behind = (8 * word + 8).saturating_sub(end);
            let mask = u64::MAX << (8 * before) & u64::MAX >> (8 * behind);
            (start + word, mask)
        })
    }

    fn writes(&self, offset: usize, bytes: &[u8], is_store: bool) -> Vec<Write> {
        let words = self.words(offset, bytes.len());
        let write = |(at, mask): (usize, u64)| {
            let first = 8 * (at - self.start);
            let byte = |place: usize| (first + place).checked_sub(offset);
            let value = std::array::from_fn(|place| {
                byte(place).and_then(|byte| bytes.get(byte)).copied().unwrap_or(0)
            });
            let value = u64::from_le_bytes(value);
            Write { at, value, mask, is_store, is_issued: false }
        };
        words.map(write).collect()
    }
}

impl Local for Window<'_> {
    unsafe fn load(&self, offset: usize) -> Claimed {
        assert!(offset.is_multiple_of(8));
        let (at, _) = self.words(offset, 8).next().expect("a word");
        Claimed::new(self.run.call(|| Call::Load(at)))
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        let first = self.start + offset / 8;
        for (at, mask) in self.words(offset, into.len()) {
            let word = self.run.call(|| Call::Read(at, mask)).to_le_bytes();
            for (place, byte) in word.into_iter().enumerate() {
                let place = (8 * (at - first) + place).checked_sub(offset % 8);
                if let Some(into) = place.and_then(|place| into.get_mut(place)) {
                    *into = byte;
                }
            }
        }
    }
}

impl Remote for Window<'_> {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        let writes = self.writes(offset, bytes, false);
        if self.is_ring && self.is(Mutation::HeaderFirst) {
            self.run.late.borrow_mut().extend(writes);
        } else if !bytes.is_empty() {
            self.run.call(|| Call::Write(writes));
        }
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        assert!(offset.is_multiple_of(8));
        let word = match (self.is_ring, offset) {
            (false, 0) if self.is(Mutation::CreditsTooHigh) => word + 8,
            (false, 8) if self.is(Mutation::SleepsNotCounted) => word & 3,
            _ => word,
        };
        let bytes = word.to_le_bytes();
        self.run.call(|| match self.is_ring && self.is(Mutation::PlainHeader) {
            true => Call::Write(self.writes(offset, &bytes, false)),
            false => Call::Store(self.writes(offset, &bytes, true).remove(0)),
        });
        let late = self.run.late.take();
        if !late.is_empty() {
            self.run.call(|| Call::Write(late));
        }
    }

    unsafe fn set(&mut self, offset: usize, word: u64) {
        assert!(offset.is_multiple_of(8));
        if word != 0 || !self.is(Mutation::NoTerminator) {
            self.run.call(|| Call::Write(self.writes(offset, &word.to_le_bytes(), false)));
        }
    }

    fn barrier(&self) {
        if !self.is(Mutation::NoBarrier) {
            self.run.call(|| Call::Barrier);
        }
    }

    fn fence(&self) {
        if !self.is(Mutation::NoFence) {
            self.run.call(|| Call::Fence);
        }
    }
}
