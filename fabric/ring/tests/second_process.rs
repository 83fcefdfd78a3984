// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A side is taken up by another process of that side, which knows no more than its cursor.

use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::layout::NOTES_BYTES;
use freeport_ring::{Mapped, Receiver, ReceiverCursor, Sender, SenderCursor};

/// The memory of a ring in one direction.
struct Ring {
    capacity: usize,
    memory: Vec<u64>,
}

impl Ring {
    fn new(capacity: usize) -> Self {
        Self { capacity, memory: vec![0; (2 * NOTES_BYTES + capacity) / 8] }
    }

    /// The receiver's notes, the sender's, and the ring itself.
    fn parts(&mut self) -> [Mapped; 3] {
        // SAFETY: as large as all three together; the tests end before it does.
        unsafe {
            let start = Mapped::new(self.memory.as_mut_ptr().cast());
            [start, start.behind(NOTES_BYTES), start.behind(2 * NOTES_BYTES)]
        }
    }

    fn sender(&mut self, cursor: SenderCursor) -> ByteSender<Mapped, Mapped> {
        let [to_sender, to_receiver, ring] = self.parts();
        // SAFETY: all three are as large as they have to be, and were zero.
        let sender = unsafe { Sender::new(ring, to_receiver, to_sender, self.capacity, cursor) };
        ByteSender::new(sender.expect("a capacity"))
    }

    fn receiver(&mut self, cursor: ReceiverCursor) -> ByteReceiver<Mapped, Mapped> {
        let [to_sender, to_receiver, ring] = self.parts();
        // SAFETY: all three are as large as they have to be, and were zero.
        let receiver =
            unsafe { Receiver::new(ring, to_sender, to_receiver, self.capacity, cursor) };
        ByteReceiver::new(receiver.expect("a capacity"))
    }
}

#[test]
fn each_receiver_that_sleeps_is_woken_whoever_slept_before() {
    let mut ring = Ring::new(64);
    let mut sender = ring.sender(SenderCursor::default());
    let mut cursor = ReceiverCursor::default();
    for wakes_up in [true, false, true] {
        let mut receiver = ring.receiver(cursor);
        assert!(!receiver.ring().announce_sleep());
        assert!(sender.write(&[1]).expect("an honest receiver").wake, "it sleeps");
        if wakes_up {
            receiver.ring().announce_awake();
        }
        let read = receiver.read(&mut [0]).expect("an honest sender");
        assert_eq!(read.outcome, Read::Bytes(1));
        cursor = receiver.ring().cursor();
    }
}

#[test]
fn each_sender_that_sleeps_is_woken_whoever_slept_before() {
    let mut ring = Ring::new(64);
    let mut receiver = ring.receiver(ReceiverCursor::default());
    let mut cursor = SenderCursor::default();
    for wakes_up in [true, false, true] {
        let mut sender = ring.sender(cursor);
        while sender.write(&[1; 40]).expect("an honest receiver").outcome > 0 {}
        sender.ring().announce_sleep();
        assert!(receiver.read(&mut [0; 80]).expect("an honest sender").wake, "it sleeps");
        if wakes_up {
            sender.ring().announce_awake();
        }
        cursor = sender.ring().cursor();
    }
}
