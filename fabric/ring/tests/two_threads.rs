// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams and messages between two threads on real memory arrive as they were sent, for all sizes
//! of the ring, of the writes and of the reads.

use fastrand::Rng;
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::layout::{NOTES_BYTES, message_max};
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use freeport_ring::{Full, Mapped, Receiver, Sender};
use std::thread;

/// Creates the memory of a ring in one direction, and its two ends.
fn ring(capacity: usize) -> (Sender<Mapped, Mapped>, Receiver<Mapped, Mapped>) {
    let words = (2 * NOTES_BYTES + capacity) / 8;
    let memory = Box::leak(vec![0_u64; words].into_boxed_slice());
    // SAFETY: the memory is leaked, and nothing else uses it.
    let to_sender = unsafe { Mapped::new(memory.as_mut_ptr().cast()) };
    // SAFETY: the memory has room for both notes and the ring; notes are multiples of 8.
    let to_receiver = unsafe { to_sender.behind(NOTES_BYTES) };
    // SAFETY: as above.
    let ring = unsafe { to_receiver.behind(NOTES_BYTES) };
    let cursor = Default::default();
    // SAFETY: each part has its size and is zero.
    let sender = unsafe { Sender::new(ring, to_receiver, to_sender, capacity, cursor) };
    let cursor = Default::default();
    // SAFETY: as above; the sender has written nothing yet.
    let receiver = unsafe { Receiver::new(ring, to_sender, to_receiver, capacity, cursor) };
    (sender.expect("a capacity"), receiver.expect("a capacity"))
}

/// Returns the byte at a position of the stream that all tests send.
fn byte(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]
}

#[test]
fn a_stream_arrives_byte_by_byte_as_it_was_written() {
    for (seed, capacity) in [64, 128, 1024, 4096, 65_536].into_iter().enumerate() {
        let (sender, receiver) = ring(capacity);
        let total = 400_000;
        let writer = thread::spawn(move || write_stream(sender, total, seed as u64));
        read_stream(receiver, total, 100 + seed as u64);
        writer.join().expect("the writer is content");
    }
}

/// Long enough that both kinds of stores are tried for long writes.
#[test]
fn a_long_stream_arrives_by_whatever_stores_it_goes() {
    for (seed, capacity) in [16_384, 65_536].into_iter().enumerate() {
        let (sender, receiver) = ring(capacity);
        let total = 200 * capacity;
        let writer = thread::spawn(move || write_stream(sender, total, seed as u64));
        read_stream(receiver, total, 100 + seed as u64);
        writer.join().expect("the writer is content");
    }
}

fn write_stream(sender: Sender<Mapped, Mapped>, total: usize, seed: u64) {
    let (mut sender, mut random) = (ByteSender::new(sender), Rng::with_seed(seed));
    let mut sent = 0;
    while sent < total {
        let length = random.usize(1..3 * sender.ring().capacity()).min(total - sent);
        let piece: Vec<u8> = (sent..sent + length).map(byte).collect();
        let written = sender.write(&piece).expect("an honest receiver");
        assert!(!written.wake, "the peer is awake");
        sent += written.outcome;
        if written.outcome == 0 {
            thread::yield_now();
        }
    }
    while sender.end().expect("an honest receiver").is_none() {
        thread::yield_now();
    }
}

fn read_stream(receiver: Receiver<Mapped, Mapped>, total: usize, seed: u64) {
    let (mut receiver, mut random) = (ByteReceiver::new(receiver), Rng::with_seed(seed));
    let mut got = 0;
    let mut buffer = vec![0; 3 * receiver.ring().capacity()];
    loop {
        let room = random.usize(1..buffer.len());
        let peeked = random.bool().then(|| {
            let available = receiver.available().expect("an honest sender");
            let peeked = receiver.peek(&mut buffer[..room]).expect("an honest sender");
            assert!(peeked != Read::Bytes(0));
            (available, peeked, buffer[..room].to_vec())
        });
        let outcome = receiver.read(&mut buffer[..room]).expect("an honest sender").outcome;
        if let Some((available, Read::Bytes(peeked), bytes)) = peeked {
            let Read::Bytes(read) = outcome else { panic!("{peeked} bytes are gone") };
            assert!(read >= peeked.min(room) && read >= available.min(room));
            assert_eq!(bytes[..peeked], buffer[..peeked]);
        }
        match outcome {
            Read::Bytes(count) => {
                let expected: Vec<u8> = (got..got + count).map(byte).collect();
                assert_eq!(buffer[..count], expected);
                got += count;
            }
            Read::Nothing => thread::yield_now(),
            Read::End => break,
            Read::Moved { .. } => panic!("the stream never moves"),
        }
    }
    assert_eq!(got, total);
    assert_eq!(receiver.read(&mut buffer).map(|done| done.outcome), Ok(Read::End));
}

#[test]
fn messages_arrive_one_by_one_as_they_were_sent() {
    for (seed, capacity) in [64, 256, 4096, 16_384].into_iter().enumerate() {
        let (sender, receiver) = ring(capacity);
        let count = 30_000;
        let writer = thread::spawn(move || send_messages(sender, count, seed as u64));
        receive_messages(receiver, count);
        writer.join().expect("the writer is content");
    }
}

/// Makes message `number`: its length and bytes follow from the number.
fn message(number: usize, capacity: usize) -> Vec<u8> {
    let length = Rng::with_seed(number as u64).usize(0..=message_max(capacity));
    (number..number + length).map(byte).collect()
}

fn send_messages(sender: Sender<Mapped, Mapped>, count: usize, seed: u64) {
    let (mut sender, mut random) = (MessageSender::new(sender), Rng::with_seed(seed));
    let capacity = sender.ring().capacity();
    let too_long = vec![0; message_max(capacity) + 1];
    assert_eq!(sender.stage(&[&too_long]), Err(Full::TooLong));
    for number in 0..count {
        let bytes = message(number, capacity);
        let (front, back) = bytes.split_at(random.usize(0..=bytes.len()));
        while let Err(full) = sender.stage(&[front, back]) {
            assert_eq!(full, Full::NoCredit);
            _ = sender.publish();
            thread::yield_now();
        }
        if random.u8(..4) == 0 || number + 1 == count {
            assert!(!sender.publish(), "the peer is awake");
        }
    }
    while sender.end() == Err(Full::NoCredit) {
        thread::yield_now();
    }
}

fn receive_messages(receiver: Receiver<Mapped, Mapped>, count: usize) {
    let mut receiver = MessageReceiver::new(receiver);
    let capacity = receiver.ring().capacity();
    let mut buffer = vec![0; capacity];
    let mut number = 0;
    loop {
        let expected = message(number, capacity);
        let room = if number % 3 == 0 { expected.len().saturating_sub(1) } else { capacity };
        let mut outcome = receiver.receive(&mut buffer[..room]).expect("honest").outcome;
        if let Received::Longer(length) = outcome {
            assert_eq!(length, expected.len());
            outcome = receiver.receive(&mut buffer).expect("honest").outcome;
        }
        match outcome {
            Received::Message(length) => {
                assert_eq!(buffer[..length], expected, "message {number}");
                number += 1;
            }
            Received::Nothing => thread::yield_now(),
            Received::End => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(number, count);
}
