// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams and messages behave like a queue under any order of operations. A failure names its
//! seed; `FREEPORT_SEED=<seed>` starts there.

use crate::memory::Memory;
use fastrand::Rng;
use freeport_ring::bytes::{ByteReceiver, ByteSender, JOINED_MAX, Read};
use freeport_ring::layout::{HEADER_BYTES, message_max};
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use freeport_ring::{Full, Kind, Mapped, ReceiverCursor, SenderCursor};
use freeport_testbed::seed;
use std::collections::VecDeque;
use std::panic::catch_unwind;

const SEEDS: u64 = 300;
const OPERATIONS: usize = 1_500;

/// Runs a test with many seeds.
fn with_seeds(test: fn(Rng)) {
    let first = seed();
    for seed in first..first + SEEDS {
        let result = catch_unwind(|| test(Rng::with_seed(seed)));
        assert!(result.is_ok(), "FREEPORT_SEED={seed}");
    }
}

fn capacities(random: &mut Rng) -> Vec<usize> {
    let largest = if random.bool() { 3 } else { 10 };
    (0..3).map(|_| 64 << random.u32(0..=largest)).collect()
}

/// Draws a length that is mostly small, and sometimes exceeds the ring.
fn length(random: &mut Rng, capacity: usize) -> usize {
    match random.u8(..8) {
        0 => random.usize(0..2 * capacity),
        1..4 => random.usize(0..=capacity / 2),
        _ => random.usize(0..=capacity.min(70)),
    }
}

/// Whether a side sleeps, and whether the other side was told to wake it.
#[derive(Clone, Copy, Default)]
struct Sleep {
    sleeps: bool,
    is_woken: bool,
}

impl Sleep {
    /// Records an operation of the other side that this one may wait for, which reported whether to
    /// wake it.
    fn heard(&mut self, wake: bool, is_sure: bool) {
        let has_to = self.sleeps && !self.is_woken;
        assert!(if is_sure { wake == has_to } else { has_to || !wake }, "woken once for a sleep");
        self.is_woken |= wake;
    }
}

struct Stream {
    memory: Memory,
    sender: ByteSender<Mapped, Mapped>,
    receiver: ByteReceiver<Mapped, Mapped>,
    /// The ring that each side is in.
    rings: [usize; 2],
    /// Bytes sent and not received, for each ring that the sender was in.
    queues: VecDeque<VecDeque<u8>>,
    has_ended: bool,
    sleeps: [Sleep; 2],
    random: Rng,
}

#[test]
fn streams_are_queues() {
    with_seeds(|mut random| {
        let mut memory = Memory::new(&capacities(&mut random));
        let mut stream = Stream {
            sender: ByteSender::new(memory.sender(0, Default::default())),
            receiver: ByteReceiver::new(memory.receiver(0, Default::default())),
            memory,
            rings: [0; 2],
            queues: [VecDeque::new()].into(),
            has_ended: false,
            sleeps: Default::default(),
            random,
        };
        for _ in 0..OPERATIONS {
            stream.step();
        }
        stream.end();
    });
}

impl Stream {
    fn step(&mut self) {
        match self.random.u8(..20) {
            0..5 => self.write(),
            5 => self.write_parts(),
            6..11 => self.read(),
            11 | 12 => self.look(),
            13 => self.take_up(),
            14 => self.move_on(),
            15 => self.sleep_or_wake(),
            16 => self.ask(),
            17 if self.random.u8(..) == 0 => self.say_end(),
            _ => {}
        }
    }

    fn write(&mut self) {
        if self.has_ended {
            return;
        }
        let capacity = self.sender.ring().capacity();
        let bytes: Vec<u8> =
            (0..length(&mut self.random, capacity)).map(|_| self.random.u8(..)).collect();
        let room = self.sender.ring().room(bytes.len()).expect("an honest receiver");
        let done = self.sender.write(&bytes).expect("an honest receiver");
        let written = done.outcome;
        // A long write may be split into several entries, each of which has a header.
        let is_short = bytes.len() <= capacity / 8;
        assert!(written <= bytes.len() && (!is_short || written >= room.min(bytes.len())));
        assert!(written > 0 || room.min(bytes.len()) == 0);
        let is_read = self.queues.len() == 1 && self.queues[0].is_empty();
        assert!(written > 0 || bytes.is_empty() || !is_read, "what is read makes room");
        self.sleeps[1].heard(done.wake, written > 0);
        self.queues.back_mut().expect("a queue").extend(&bytes[..written]);
    }

    /// Writes bytes in several places: what fits is written, with one header for many places.
    fn write_parts(&mut self) {
        if self.has_ended {
            return;
        }
        let capacity = self.sender.ring().capacity();
        let bytes: Vec<u8> =
            (0..length(&mut self.random, capacity)).map(|_| self.random.u8(..)).collect();
        let (mut parts, mut rest) = (vec![], bytes.as_slice());
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(self.random.usize(0..=rest.len().min(9)));
            parts.push(part);
            rest = behind;
        }
        let entries = parts.len().div_ceil(JOINED_MAX) + 1;
        let room = self.sender.ring().free(usize::MAX).expect("an honest receiver");
        let written = self.sender.put_parts(&parts).expect("an honest receiver");
        let wake = self.sender.ring().publish();
        let has_room = bytes.len() + (entries + 1) * 2 * HEADER_BYTES <= room;
        assert!(written <= bytes.len() && (!has_room || written == bytes.len()));
        self.sleeps[1].heard(wake, written > 0);
        self.queues.back_mut().expect("a queue").extend(&bytes[..written]);
    }

    fn read(&mut self) {
        let capacity = self.receiver.ring().capacity();
        let mut into = vec![0; length(&mut self.random, capacity)];
        let done = self.receiver.read(&mut into).expect("an honest sender");
        self.sleeps[0].heard(done.wake, false);
        let queue = self.queues.front_mut().expect("a queue");
        let there = queue.len().min(into.len());
        match done.outcome {
            Read::Bytes(count) => {
                assert_eq!(count, there, "all that fits of what is there");
                assert!(queue.drain(..count).eq(into[..count].iter().copied()));
            }
            Read::Nothing => {
                let is_last = self.queues.len() == 1 && !self.has_ended;
                assert!(there == 0 && (is_last || into.is_empty()));
            }
            Read::End => assert!(there == 0 && self.queues.len() == 1 && self.has_ended),
            Read::Moved { name, entry } => {
                assert!(there == 0 && self.queues.len() > 1);
                self.queues.pop_front();
                self.rings[1] = name as usize;
                let (ring, capacity) = self.memory.ring(name as usize);
                // SAFETY: it was cleared before.
                let wake = unsafe { self.receiver.ring().move_to(&entry, ring, capacity) };
                self.sleeps[0].heard(wake.expect("a capacity"), true);
            }
        }
    }

    fn look(&mut self) {
        let queue = &self.queues[0];
        assert_eq!(self.receiver.available(), Ok(queue.len()));
        let mut into = vec![0; length(&mut self.random, self.receiver.ring().capacity())];
        let there = queue.len().min(into.len());
        let peeked = self.receiver.peek(&mut into).expect("an honest sender");
        match peeked {
            Read::Bytes(count) => {
                assert_eq!(count, there);
                assert!(queue.iter().take(count).eq(&into[..count]));
            }
            _ => assert_eq!(there, 0),
        }
    }

    /// Reconstructs one side from its cursor, as another process would.
    fn take_up(&mut self) {
        if self.random.bool() {
            let sender = self.memory.sender(self.rings[0], self.sender.ring().cursor());
            self.sender = ByteSender::new(sender);
            self.sleeps[0].sleeps = false;
            self.sender.ring().announce_awake();
        } else {
            let receiver = self.memory.receiver(self.rings[1], self.receiver.ring().cursor());
            self.receiver = ByteReceiver::new(receiver);
            self.sleeps[1].sleeps = false;
            self.receiver.ring().announce_awake();
        }
    }

    fn move_on(&mut self) {
        let has_left = self.sender.ring().has_left();
        assert_eq!(has_left, Ok(self.queues.len() == 1));
        if self.has_ended || self.queues.len() > 1 {
            return;
        }
        let next = (self.rings[0] + self.random.usize(1..3)) % 3;
        let (ring, capacity) = self.memory.ring(next);
        // SAFETY: the ring has that capacity, and neither side is in it any more.
        unsafe { ring.start().write_bytes(0, capacity) };
        // SAFETY: the ring has that capacity and is zero now.
        let moved = unsafe { self.sender.ring().move_to(ring, capacity, next as u64) };
        match moved {
            Ok(wake) => {
                self.sleeps[1].heard(wake, true);
                self.rings[0] = next;
                self.queues.push_back(VecDeque::new());
            }
            Err(full) => {
                assert_eq!(full, Full::NoCredit);
                assert!(!self.queues[0].is_empty(), "what is read makes room");
            }
        }
    }

    fn sleep_or_wake(&mut self) {
        let side = self.random.usize(..2);
        let sleeps = !self.sleeps[side].sleeps;
        self.sleeps[side] = Sleep { sleeps, is_woken: false };
        match (side, sleeps) {
            (0, true) => self.sender.ring().announce_sleep(),
            (0, false) => self.sender.ring().announce_awake(),
            (_, true) => {
                let wake = self.receiver.ring().announce_sleep();
                self.sleeps[0].heard(wake, false);
                if self.queues.len() == 1 && self.queues[0].is_empty() && !self.has_ended {
                    assert_eq!(self.sender.ring().is_drained(), Ok(true), "all is given back");
                }
            }
            (_, false) => self.receiver.ring().announce_awake(),
        }
    }

    fn ask(&mut self) {
        let is_drained = self.sender.ring().is_drained().expect("an honest receiver");
        let is_read = self.queues.len() == 1 && self.queues[0].is_empty();
        assert!(is_read || !is_drained, "what is given back was read");
    }

    fn say_end(&mut self) {
        if let (false, Some(done)) = (self.has_ended, self.sender.end().expect("honest")) {
            self.sleeps[1].heard(done.wake, true);
            self.has_ended = true;
        }
    }

    /// Everything that was sent can be read, and then the end arrives.
    fn end(&mut self) {
        for _ in 0..OPERATIONS {
            self.read();
            self.say_end();
        }
        assert!(self.has_ended && self.queues.len() == 1 && self.queues[0].is_empty());
        assert_eq!(self.receiver.read(&mut [0]).map(|done| done.outcome), Ok(Read::End));
    }
}

#[test]
fn messages_are_queues() {
    with_seeds(|mut random| {
        let capacity = 64 << random.u32(0..=10);
        let mut memory = Memory::new(&[capacity]);
        let mut sender = MessageSender::new(memory.sender(0, Default::default()));
        let mut receiver = MessageReceiver::new(memory.receiver(0, Default::default()));
        let (mut staged, mut sent) = (VecDeque::new(), VecDeque::<Vec<u8>>::new());
        let mut into = vec![0; capacity];
        for _ in 0..OPERATIONS {
            match random.u8(..10) {
                0..4 => {
                    let length = length(&mut random, capacity / 2);
                    let message: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                    let [one, other] = [0; 2].map(|_| random.usize(..=length));
                    let (front, rest) = message.split_at(one.min(other));
                    let (middle, back) = rest.split_at(one.max(other) - one.min(other));
                    let is_read = sent.is_empty() && staged.is_empty();
                    let has_room = sender.ring().has_room(length).expect("an honest receiver");
                    assert!(has_room || !is_read || length > message_max(capacity));
                    match sender.stage(&[front, middle, back]) {
                        Ok(()) => {
                            assert!(has_room);
                            staged.push_back(message);
                        }
                        Err(Full::TooLong) => assert!(length > message_max(capacity)),
                        Err(full) => assert!(full == Full::NoCredit && !has_room, "{full:?}"),
                    }
                }
                4 | 5 => {
                    assert!(!sender.publish(), "the peer is awake");
                    sent.append(&mut staged);
                }
                6 => {
                    staged.clear();
                    let cursor = sender.ring().cursor();
                    sender = MessageSender::new(memory.sender(0, cursor));
                }
                7 => {
                    let cursor = receiver.ring().cursor();
                    receiver = MessageReceiver::new(memory.receiver(0, cursor));
                }
                _ => {
                    let room = length(&mut random, capacity / 2);
                    let got = receiver.receive(&mut into[..room]).map(|done| done.outcome);
                    match got.expect("an honest sender") {
                        Received::Message(length) => {
                            assert_eq!(Some(&into[..length]), sent.pop_front().as_deref());
                        }
                        Received::Longer(length) => {
                            assert!(length > room && length == sent[0].len());
                        }
                        Received::Nothing => assert!(sent.is_empty(), "what is published came"),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    });
}

/// A dialogue of short messages stays in one half of a ring, apart from messages in flight.
#[test]
fn a_ring_that_is_emptied_begins_anew() {
    let capacity = 1 << 16;
    let mut memory = Memory::new(&[capacity]);
    let mut sender = MessageSender::new(memory.sender(0, Default::default()));
    let mut receiver = MessageReceiver::new(memory.receiver(0, Default::default()));
    let mut into = [0; 100];
    for number in 0..20_000_usize {
        let length = number % 100;
        assert_eq!(sender.send(&[&[7; 100][..length]]), Ok(false));
        let received = receiver.receive(&mut into).map(|done| done.outcome);
        assert_eq!(received, Ok(Received::Message(length)));
        let nothing = receiver.receive(&mut into).map(|done| done.outcome);
        assert_eq!(nothing, Ok(Received::Nothing));
    }
    let (ring, _) = memory.ring(0);
    // SAFETY: inside the memory, and no side writes to it now.
    let bytes = unsafe { std::slice::from_raw_parts(ring.start(), capacity) };
    let used = bytes.iter().rposition(|&byte| byte != 0).expect("something was sent");
    assert!(used < capacity / 2 + 4096, "{used} bytes were used of {capacity}");
}

/// A receiver that has given back everything can be sent half of a ring, at any position.
#[test]
fn half_of_an_empty_ring_can_be_written_without_its_reader() {
    let capacity = 1 << 14;
    for before in (8..capacity / 2).step_by(104).map(|written| 2 * written) {
        let mut memory = Memory::new(&[capacity]);
        let mut sender = ByteSender::new(memory.sender(0, Default::default()));
        let mut receiver = ByteReceiver::new(memory.receiver(0, Default::default()));
        let mut into = vec![0; capacity];
        let mut read = 0;
        while read < before {
            let _ = sender.write(&[7; 16]).expect("an honest receiver");
            match receiver.read(&mut into).expect("an honest sender").outcome {
                Read::Bytes(count) => read += count,
                other => panic!("{other:?}"),
            }
        }
        assert!(!receiver.ring().announce_sleep(), "it gives back everything");
        let written = sender.write(&vec![7; capacity]).expect("an honest receiver").outcome;
        assert!(written > capacity / 2 - 100, "{written} of {capacity} behind {before}");
    }
}

/// All lengths of six entries in a row, in a ring full of words that look like their headers. If
/// there is room for a whole write when it begins, a ring that restarts leaves room for it: a
/// sender that writes up to half of the ring before it waits for an answer never blocks earlier.
#[test]
fn a_write_of_half_a_ring_is_never_cut_in_a_dialogue() {
    for capacity in [1 << 10, 16 << 10, 64 << 10, 1 << 20] {
        for length in [capacity / 2, capacity / 2 - 100, capacity / 3, capacity / 4 + 8] {
            let mut memory = Memory::new(&[capacity]);
            let mut sender = ByteSender::new(memory.sender(0, SenderCursor::default()));
            let mut receiver = ByteReceiver::new(memory.receiver(0, ReceiverCursor::default()));
            let (bytes, mut into) = (vec![7; length], vec![0; length]);
            for round in 0..100 {
                let written = sender.write(&bytes).expect("an honest peer");
                assert_eq!(written.outcome, length, "of {capacity}, round {round}");
                let read = receiver.read(&mut into).expect("an honest peer");
                assert_eq!(read.outcome, Read::Bytes(length));
            }
        }
    }
}

#[test]
fn what_an_earlier_lap_left_is_never_a_header() {
    let lengths = [0, 1, 8, 9, 17, 24];
    for number in 0..lengths.len().pow(6) {
        let mut memory = Memory::new(&[64]);
        let (ring, capacity) = memory.ring(0);
        for place in 1..capacity / 8 {
            // The most likely number of an entry there, if each before it had one word.
            let sequence = (place / 2 + number % 3) as u16;
            let header = freeport_ring::Header { kind: Kind::Data, length: 8, sequence };
            // SAFETY: the ring has more words than `place`.
            let word = unsafe { ring.start().cast::<u64>().add(place) };
            // SAFETY: an aligned word of the ring, which neither side uses yet.
            unsafe { word.write(header.word()) };
        }
        let mut sender = memory.sender(0, Default::default());
        let mut receiver = ByteReceiver::new(memory.receiver(0, Default::default()));
        let mut queue = VecDeque::new();
        for depth in 0..6 {
            let length = lengths[number / lengths.len().pow(depth) % lengths.len()].max(1);
            let bytes: Vec<u8> = (0..length).map(|at| (number + 7 * at) as u8 | 1).collect();
            if sender.send(Kind::Data, &[&bytes]) == Ok(false) {
                queue.extend(bytes);
            }
            assert_eq!(receiver.available(), Ok(queue.len()));
            if depth % 2 == 1 {
                let mut into = [0; 64];
                let read = receiver.read(&mut into).map(|done| done.outcome);
                let expected = match queue.len() {
                    0 => Read::Nothing,
                    length => Read::Bytes(length),
                };
                assert_eq!(read, Ok(expected));
                assert!(queue.drain(..).eq(into.into_iter().take_while(|&byte| byte != 0)));
            }
        }
    }
}
