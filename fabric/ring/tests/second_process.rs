// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A side is continued by another process of that side, which knows only its cursor.

use crate::memory::Memory;
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::{Kind, ReceiverCursor, SenderCursor};

#[test]
fn each_receiver_that_sleeps_is_woken_whoever_slept_before() {
    let mut ring = Memory::new(&[64]);
    let mut sender = ByteSender::new(ring.sender(0, SenderCursor::default()));
    let mut cursor = ReceiverCursor::default();
    for wakes_up in [true, false, true] {
        let mut receiver = ByteReceiver::new(ring.receiver(0, cursor));
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
    let mut ring = Memory::new(&[64]);
    let mut receiver = ByteReceiver::new(ring.receiver(0, ReceiverCursor::default()));
    let mut cursor = SenderCursor::default();
    for wakes_up in [true, false, true] {
        let mut sender = ByteSender::new(ring.sender(0, cursor));
        while sender.write(&[1; 40]).expect("an honest receiver").outcome > 0 {}
        sender.ring().announce_sleep();
        assert!(receiver.read(&mut [0; 80]).expect("an honest sender").wake, "it sleeps");
        if wakes_up {
            sender.ring().announce_awake();
        }
        cursor = sender.ring().cursor();
    }
}

#[test]
fn what_one_process_staged_and_never_published_is_written_over_by_the_next() {
    let mut ring = Memory::new(&[64]);
    let mut sender = ring.sender(0, SenderCursor::default());
    let mut receiver = ByteReceiver::new(ring.receiver(0, ReceiverCursor::default()));
    assert_eq!(sender.send(Kind::Data, &[b"sent"]), Ok(false));
    assert_eq!(sender.stage(Kind::Data, &[b"staged"]), Ok(()));
    assert_eq!(sender.stage(Kind::Data, &[b"as well"]), Ok(()));
    let mut next = ring.sender(0, sender.cursor());
    assert_eq!(next.send(Kind::Data, &[b"by the next"]), Ok(false));
    let mut into = [0; 20];
    let read = receiver.read(&mut into).expect("an honest sender");
    assert_eq!((read.outcome, &into[..15]), (Read::Bytes(15), &b"sentby the next"[..]));
}
