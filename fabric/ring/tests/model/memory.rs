// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that is weaker than any machine's, and the window through which a ring sees it.
//!
//! What a side writes is at first seen by nobody. A load of the other side may find the word as it
//! was or as any of those writes leaves it, and that write is seen from then on, with
//! - all that the same side wrote before, if the memory keeps the order of stores, as x86 with its
//!   store buffers ([`Order::Total`]),
//! - otherwise the earlier writes of that word only, unless the write is a `store`, before which
//!   all earlier ones are seen, as on Arm or from a card that writes in pieces ([`Order::Weak`]).
//!
//! So nothing has to be explored but what loads find: a write that nobody has looked at may as well
//! not have come yet.
//!
//! An operation of a ring runs from its beginning each time: what its calls to the memory gave is
//! in a log, and the first call that is not is what it does next. What it makes of the zeros that
//! it gets from there on is thrown away, so the real code needs no thread to be stopped in.

use freeport_ring::{Claimed, Local, Remote};
use std::cell::{Cell, RefCell};

/// In which order the writes of a side are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As they were made.
    Total,
    /// Any, but for what a `store` says.
    Weak,
}

/// A rule that is broken, to show that it is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// No zero word is written behind an entry.
    NoTerminator,
    /// Headers are written like payload.
    PlainHeader,
    /// Headers are written before the payload.
    HeaderFirst,
    /// `barrier` does nothing, not even to the compiler.
    NoBarrier,
    /// The sleeper does not make the other side pass a barrier.
    NoMembarrier,
    /// Who finds that the other side sleeps lightly does not pass a fence.
    NoFence,
    /// The sleeper does not look once more.
    NoSecondLook,
    /// The receiver gives back a word more than it has read.
    CreditsTooHigh,
    /// The receiver takes an entry before it reads it.
    TakenFirst,
    /// Who sleeps says so, but not for which time.
    SleepsNotCounted,
}

/// A write of a part of a word.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Write {
    at: usize,
    value: u64,
    mask: u64,
    is_store: bool,
    /// Whether the processor has it, so that a barrier that it passes makes it seen.
    is_issued: bool,
}

/// What both sides write to: a word is written by one side only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Memory {
    words: Vec<u64>,
    /// What each side has written and the other may not see yet.
    pending: [Vec<Write>; 2],
}

impl Memory {
    /// That many words of zero.
    pub fn new(words: usize) -> Self {
        Self { words: vec![0; words], pending: [vec![], vec![]] }
    }

    /// What a load of the side may find, and the memory once it has.
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

    /// Whether the other side has written the word without saying so by a store: who reads it now
    /// may find anything.
    pub fn has_race(&self, side: usize, at: usize) -> bool {
        self.pending[1 - side].iter().any(|write| write.at == at && !write.is_store)
    }

    /// Makes a write seen, with those that have to be seen before.
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

    /// What a side writes.
    pub fn write(&mut self, side: usize, writes: Vec<Write>) {
        self.pending[side].extend(writes);
    }

    /// The compiler has put all that the side wrote before what comes next.
    pub fn issue(&mut self, side: usize) {
        self.pending[side].iter_mut().for_each(|write| write.is_issued = true);
    }

    /// A barrier that the side passes: what it wrote is seen.
    pub fn fence(&mut self, side: usize) {
        for write in std::mem::take(&mut self.pending[side]) {
            self.apply(&write);
        }
    }

    /// A barrier that both sides pass, wherever the other one is.
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
    /// A write of a word that is seen behind all others.
    Store(Write),
    /// Writes, none of them seen with another.
    Write(Vec<Write>),
    /// What is written has to be issued, or seen.
    Barrier,
    /// What is written has to be seen.
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
    /// A run whose first calls gave what the log has.
    pub fn new(log: &'a [u64], mutation: Option<Mutation>) -> Self {
        let (at, next) = (Cell::new(0), RefCell::new(None));
        Self { log, at, next, late: RefCell::new(vec![]), mutation }
    }

    /// The call that the operation does next; `None` if it has ended.
    pub fn next(self) -> Option<Call> {
        self.next.into_inner()
    }

    /// The words from `start` on, as many as there are bytes for.
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

    /// The words that such bytes are in: for each its number and the bits of it.
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
