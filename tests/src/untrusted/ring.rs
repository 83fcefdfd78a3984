// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An end of a ring with a hostile peer. The input determines the actions of both: the peer works
//! correctly, but also writes arbitrary values into the words it may write, between the operations
//! of this end and before each of its loads. This end may at most detect a fault.

use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::layout::{NOTES_BYTES, is_capacity, payload_max};
use freeport_ring::messages::{MessageReceiver, Received};
use freeport_ring::{Claimed, Entry, Fault, Full, Kind, Local, Receiver, Remote, Sender};
use std::cell::Cell;
use std::ops::Range;

/// Offsets in words of the receiver's notes, the sender's notes, and the rings.
const TO_SENDER: usize = 0;
const TO_RECEIVER: usize = NOTES_BYTES / 8;
const RINGS: usize = 2 * NOTES_BYTES / 8;

/// Interprets the bytes as the actions of both ends.
pub fn ring(bytes: &[u8]) {
    let [size, kind, ref script @ ..] = *bytes else { return };
    let (capacity, kind) = (64 << (size % 4), kind % 3);
    let world = World::new(capacity, kind == 2, script);
    match kind {
        0 => read_stream(&world),
        1 => receive_messages(&world),
        _ => send(&world),
    }
}

pub(super) struct World {
    words: Vec<Cell<u64>>,
    script: Vec<u8>,
    /// Number of bytes of the script used so far.
    at: Cell<usize>,
    /// Words that the peer may write.
    theirs: Range<usize>,
    is_meddled_with: Cell<bool>,
    /// Word that this end loaded last.
    loaded: Cell<usize>,
    /// Number of memory accesses after which this end's operation must have ended.
    calls_left: Cell<usize>,
    capacity: usize,
}

impl World {
    /// Makes a ring of which this end is the sender or the receiver.
    pub(super) fn new(capacity: usize, is_sender: bool, script: &[u8]) -> Self {
        let words = RINGS + 2 * capacity / 8;
        Self {
            words: vec![Cell::new(0); words],
            script: script.to_vec(),
            at: Cell::new(0),
            theirs: if is_sender { TO_SENDER..TO_RECEIVER } else { TO_RECEIVER..words },
            is_meddled_with: Cell::new(false),
            loaded: Cell::new(if is_sender { TO_SENDER } else { RINGS }),
            calls_left: Cell::new(0),
            capacity,
        }
    }

    pub(super) fn is_meddled_with(&self) -> bool {
        self.is_meddled_with.get()
    }

    /// Returns the next byte of the script.
    pub(super) fn byte(&self) -> u8 {
        let at = self.at.get();
        self.at.set(at + 1);
        self.script.get(at).copied().unwrap_or(0)
    }

    pub(super) fn is_over(&self) -> bool {
        self.at.get() >= self.script.len()
    }

    fn number(&self) -> usize {
        usize::from(self.byte()) * (1 + self.capacity / 256)
    }

    /// Writes a word that the peer should not write: mostly the one that this end loaded last.
    fn meddle(&self) {
        self.is_meddled_with.set(true);
        let place = match self.byte() % 4 {
            0 => self.theirs.start + self.number() % self.theirs.len(),
            _ => self.loaded.get(),
        };
        let word = self.words[place].get();
        let by = u64::from(self.byte());
        self.words[place].set(match self.byte() % 16 {
            0 => 0,
            1 => word ^ 1 << (by % 64),
            2 => word & !(0xff << 32) | (by % 12) << 32,
            3 => self.words[by as usize % self.words.len()].get(),
            4 => u64::from_ne_bytes([(); 8].map(|()| self.byte())),
            // In a header, this changes the length.
            5..9 => word & !0xff | by,
            9..13 => word & !0xff | (by % 16),
            13 => word.wrapping_add(by),
            _ => word.wrapping_sub(by),
        });
    }

    /// Starts an operation of this end that handles this many bytes.
    pub(super) fn begin(&self, bytes: usize) {
        // The worst case is a ring full of headers, each read several times.
        self.calls_left.set(16 + self.capacity + 8 * bytes);
        if self.byte() % 8 == 1 {
            self.meddle();
        }
    }

    fn window(&self, start: usize, bytes: usize, is_ours: bool) -> Window<'_> {
        Window { world: self, start, bytes, is_ours }
    }

    fn ring(&self, number: usize, is_ours: bool) -> Window<'_> {
        self.window(RINGS + number * self.capacity / 8, self.capacity, is_ours)
    }

    pub(super) fn sender(&self, is_ours: bool) -> Sender<Window<'_>, Window<'_>> {
        let notes = self.window(TO_RECEIVER, NOTES_BYTES, is_ours);
        let theirs = self.window(TO_SENDER, NOTES_BYTES, is_ours);
        let (ring, cursor) = (self.ring(0, is_ours), Default::default());
        // SAFETY: windows check all accesses.
        let sender = unsafe { Sender::new(ring, notes, theirs, self.capacity, cursor) };
        sender.expect("a capacity")
    }

    pub(super) fn receiver(&self, is_ours: bool) -> Receiver<Window<'_>, Window<'_>> {
        let notes = self.window(TO_SENDER, NOTES_BYTES, is_ours);
        let theirs = self.window(TO_RECEIVER, NOTES_BYTES, is_ours);
        let (ring, cursor) = (self.ring(0, is_ours), Default::default());
        // SAFETY: windows check all accesses.
        let receiver = unsafe { Receiver::new(ring, notes, theirs, self.capacity, cursor) };
        receiver.expect("a capacity")
    }
}

/// A part of the memory, with checked accesses.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    world: &'a World,
    start: usize,
    bytes: usize,
    /// Whether this end uses it: then the peer may write before each access.
    is_ours: bool,
}

impl Window<'_> {
    fn use_it(&self, offset: usize, bytes: usize) {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "{bytes} bytes at {offset}");
        if self.is_ours {
            let left = self.world.calls_left.get().checked_sub(1);
            self.world.calls_left.set(left.expect("an operation ends"));
        }
    }

    fn word(&self, offset: usize) -> &Cell<u64> {
        &self.world.words[self.start + offset / 8]
    }
}

impl Local for Window<'_> {
    unsafe fn load(&self, offset: usize) -> Claimed {
        self.use_it(offset, 8);
        assert!(offset.is_multiple_of(8));
        if self.is_ours {
            self.world.loaded.set(self.start + offset / 8);
            if self.world.byte() % 16 == 15 {
                self.world.meddle();
            }
        }
        Claimed::new(self.word(offset).get())
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        self.use_it(offset, into.len());
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = self.word(offset + at).get().to_ne_bytes()[(offset + at) % 8];
        }
    }
}

impl Remote for Window<'_> {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.use_it(offset, bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            let word = self.word(offset + at);
            let mut bytes = word.get().to_ne_bytes();
            bytes[(offset + at) % 8] = *byte;
            word.set(u64::from_ne_bytes(bytes));
        }
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        self.use_it(offset, 8);
        assert!(offset.is_multiple_of(8));
        self.word(offset).set(word);
    }
}

/// The fault that an end has detected; it never changes.
#[derive(Default)]
struct Found(Option<Fault>);

impl Found {
    fn check<T>(&mut self, world: &World, result: Result<T, Fault>) -> Option<T> {
        let fault = result.as_ref().err().copied();
        assert!(fault.is_none() || world.is_meddled_with.get(), "{fault:?} of an honest end");
        assert!(self.0.is_none() || self.0 == fault, "{:?} is forgotten: {fault:?}", self.0);
        self.0 = fault;
        result.ok()
    }
}

/// Makes the peer send something correctly.
fn send_honestly(world: &World, sender: &mut Sender<Window<'_>, Window<'_>>, sent: &mut usize) {
    let length = 1 + world.number() % payload_max(world.capacity);
    let payload: Vec<u8> = (*sent..*sent + length).map(|at| at as u8).collect();
    if sender.stage(Kind::Data, &[&payload]).is_ok() {
        *sent += length;
    }
    if !world.byte().is_multiple_of(3) {
        _ = sender.publish();
    }
}

fn read_stream(world: &World) {
    let mut sender = world.sender(false);
    let mut receiver = ByteReceiver::new(world.receiver(true));
    let (mut sent, mut received, mut rings) = (0, 0, 0);
    let mut found = Found::default();
    while !world.is_over() {
        send_some(world, &mut sender, &mut sent, &mut rings);
        let mut into = vec![0; world.number()];
        world.begin(into.len());
        let outcome = match world.byte() % 8 {
            0 => {
                let available = found.check(world, receiver.available());
                // All but the last entry are within one lap of the ring.
                assert!(available.is_none_or(|bytes| bytes < 2 * world.capacity));
                continue;
            }
            1 => {
                let peeked = found.check(world, receiver.peek(&mut into));
                peeked.filter(|what| !matches!(what, Read::Moved { .. }))
            }
            2 => {
                _ = receiver.ring().announce_sleep();
                receiver.ring().announce_awake();
                continue;
            }
            // With an empty buffer, nothing is read.
            _ if into.is_empty() => continue,
            _ => found.check(world, receiver.read(&mut into)).map(|done| {
                if let (Read::Bytes(count), false) = (done.outcome, world.is_meddled_with.get()) {
                    received += count;
                    assert!(received <= sent);
                }
                done.outcome
            }),
        };
        match outcome {
            Some(Read::Bytes(count)) => assert!(count > 0 && count <= into.len()),
            Some(Read::Moved { name, entry }) => follow(world, receiver.ring(), name, &entry),
            Some(Read::Nothing | Read::End) | None => {}
        }
    }
}

/// Makes the peer send, end or move correctly.
fn send_some<'a>(
    world: &'a World,
    sender: &mut Sender<Window<'a>, Window<'a>>,
    sent: &mut usize,
    ring: &mut usize,
) {
    match world.byte() % 16 {
        0 => _ = sender.send(Kind::Shutdown, &[]),
        1 if *ring == 0 => {
            let memory = world.ring(1, false);
            // SAFETY: windows check all accesses.
            let moved = unsafe { sender.move_to(memory, world.capacity, 1) };
            *ring += usize::from(moved.is_ok());
        }
        2..9 => send_honestly(world, sender, sent),
        _ => {}
    }
}

/// Continues in the ring of that name, if there is one.
fn follow<'a>(
    world: &'a World,
    receiver: &mut Receiver<Window<'a>, Window<'a>>,
    name: u64,
    entry: &Entry,
) {
    assert!(world.is_meddled_with.get() || name == 1);
    if name < 2 {
        let capacity = if world.byte().is_multiple_of(8) { 100 } else { world.capacity };
        // SAFETY: windows check all accesses.
        let moved = unsafe { receiver.move_to(entry, world.ring(name as usize, true), capacity) };
        assert_eq!(moved.is_some(), is_capacity(capacity));
    }
}

fn receive_messages(world: &World) {
    let mut sender = world.sender(false);
    let mut receiver = MessageReceiver::new(world.receiver(true));
    let (mut sent, mut received, mut rings) = (0, 0, 0);
    let mut found = Found::default();
    while !world.is_over() {
        send_some(world, &mut sender, &mut sent, &mut rings);
        let mut into = vec![0; world.number()];
        world.begin(into.len());
        match found.check(world, receiver.receive(&mut into)).map(|done| done.outcome) {
            Some(Received::Message(length)) => {
                assert!(length <= into.len());
                if !world.is_meddled_with.get() {
                    let expected = (received..received + length).map(|at| at as u8);
                    assert!(expected.eq(into[..length].iter().copied()));
                    received += length;
                }
            }
            Some(Received::Longer(length)) => assert!(length <= payload_max(world.capacity)),
            Some(Received::Moved { name, entry }) => follow(world, receiver.ring(), name, &entry),
            Some(Received::Nothing | Received::End) | None => {}
        }
    }
}

fn send(world: &World) {
    let mut receiver = ByteReceiver::new(world.receiver(false));
    let mut sender = ByteSender::new(world.sender(true));
    let mut found = Found::default();
    let mut moves = 0;
    while !world.is_over() {
        if world.byte().is_multiple_of(2) {
            let read = receiver.read(&mut vec![0; world.number()]).map(|done| done.outcome);
            if let Ok(Read::Moved { entry, .. }) = read {
                // SAFETY: windows check all accesses.
                _ = unsafe {
                    receiver.ring().move_to(&entry, world.ring(1, false), world.capacity)
                };
            }
        }
        let bytes = vec![7; world.number()];
        world.begin(bytes.len());
        let fault = |full| match full {
            Full::Fault(fault) => Some(fault),
            Full::NoCredit | Full::TooLong => None,
        };
        let result = match world.byte() % 8 {
            0 => sender.end().map(|_| ()),
            1 => sender.ring().room(world.number()).and_then(|room| {
                assert!(room <= payload_max(world.capacity));
                sender.ring().has_room(room).map(|_| ())
            }),
            2 => sender.ring().has_left().map(|_| ()),
            3 => sender.ring().is_drained().map(|_| ()),
            4 if moves == 0 => {
                // SAFETY: windows check all accesses.
                let moved =
                    unsafe { sender.ring().move_to(world.ring(1, true), world.capacity, 1) };
                moves += usize::from(moved.is_ok());
                moved.map(|_| ()).or_else(|full| fault(full).map_or(Ok(()), Err))
            }
            5 => {
                sender.ring().announce_sleep();
                sender.ring().announce_awake();
                continue;
            }
            _ if bytes.is_empty() => continue,
            _ => sender.write(&bytes).map(|done| assert!(done.outcome <= bytes.len())),
        };
        found.check(world, result);
    }
}
