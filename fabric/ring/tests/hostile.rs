// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The peer may write anything to a ring at any time: the operations of this side stay in their
//! memory, do bounded work, and end; once they have reported a fault they keep reporting it.

use freeport_ring::bytes::{ByteReceiver, ByteSender, Done, Read};
use freeport_ring::layout::NOTES_BYTES;
use freeport_ring::{Fault, Header, Kind, Mapped, Receiver, Sender};

/// Positions of the receiver's notes, the sender's, and the ring, in words.
const PARTS: [usize; 3] = [0, NOTES_BYTES / 8, 2 * NOTES_BYTES / 8];
const CAPACITY: usize = 64;

type Ends = (ByteSender<Mapped, Mapped>, ByteReceiver<Mapped, Mapped>);

/// Creates the memory of a ring, and both of its ends.
fn ring() -> (Vec<u64>, Ends) {
    let mut memory = vec![0_u64; PARTS[2] + CAPACITY / 8];
    let [to_sender, to_receiver, ring] = PARTS.map(|part| {
        // SAFETY: the memory is as large as all three parts together.
        let start = unsafe { memory.as_mut_ptr().add(part) };
        // SAFETY: the memory is dropped together with the ends, which nothing else accesses.
        unsafe { Mapped::new(start.cast()) }
    });
    let (sender, receiver) = (Default::default(), Default::default());
    // SAFETY: each part has its size and is zero.
    let sender = unsafe { Sender::new(ring, to_receiver, to_sender, CAPACITY, sender) };
    // SAFETY: as above; the sender has written nothing yet.
    let receiver = unsafe { Receiver::new(ring, to_sender, to_receiver, CAPACITY, receiver) };
    let ends = (
        ByteSender::new(sender.expect("a capacity")),
        ByteReceiver::new(receiver.expect("a capacity")),
    );
    (memory, ends)
}

fn data(length: u32) -> u64 {
    Header { kind: Kind::Data, length, sequence: 0 }.word()
}

#[test]
fn an_entry_that_shrinks_after_a_part_of_it_was_read_is_a_fault() {
    for length in [1, 4, 5] {
        let (mut memory, (_, mut receiver)) = ring();
        memory[PARTS[2]] = data(16);
        let read = receiver.read(&mut [0; 5]).map(|done| done.outcome);
        assert_eq!(read, Ok(Read::Bytes(5)));
        memory[PARTS[2]] = data(length);
        assert_eq!(receiver.read(&mut [0; 5]), Err(Fault::Changed));
        memory[PARTS[2]] = data(16);
        assert_eq!(receiver.read(&mut [0; 5]), Err(Fault::Changed));
    }
}

#[test]
fn a_receiver_that_found_a_fault_does_not_look_again() {
    let (mut memory, (_, mut receiver)) = ring();
    memory[PARTS[2]] = data(50);
    assert_eq!(receiver.read(&mut [0; 5]), Err(Fault::Length(50)));
    memory[PARTS[2]] = data(5);
    assert_eq!(receiver.read(&mut [0; 5]), Err(Fault::Length(50)));
    assert_eq!(receiver.peek(&mut [0; 5]), Err(Fault::Length(50)));
    assert_eq!(receiver.available(), Err(Fault::Length(50)));
}

#[test]
fn what_came_before_a_fault_is_counted_and_read_first() {
    let (mut memory, (_, mut receiver)) = ring();
    memory[PARTS[2]] = data(5);
    memory[PARTS[2] + 2] = 77;
    assert_eq!(receiver.available(), Ok(5));
    assert_eq!(receiver.peek(&mut [0; 9]), Ok(Read::Bytes(5)));
    let read = receiver.read(&mut [0; 9]).map(|done| done.outcome);
    assert_eq!(read, Ok(Read::Bytes(5)));
    assert_eq!(receiver.available(), Err(Fault::Flags(0)));
    assert_eq!(receiver.read(&mut [0; 9]), Err(Fault::Flags(0)));
}

#[test]
fn a_sender_that_found_a_fault_does_not_look_again() {
    let (mut memory, (mut sender, _)) = ring();
    assert_eq!(sender.write(&[1; 20]), Ok(Done { outcome: 20, wake: false }));
    let fault = Fault::Credits { before: 0, claimed: 33, sent: 32 };
    memory[PARTS[0]] = 33;
    assert_eq!(sender.write(&[1; 20]), Err(fault));
    memory[PARTS[0]] = 32;
    assert_eq!(sender.write(&[1]), Err(fault));
    assert_eq!(sender.end(), Err(fault));
    assert_eq!(sender.ring().is_drained(), Err(fault));
}

#[test]
fn any_wish_for_room_is_answered() {
    let (_memory, (mut sender, _)) = ring();
    assert_eq!(sender.ring().room(usize::MAX), Ok(48));
    assert_eq!(sender.write(&[1; 20]), Ok(Done { outcome: 20, wake: false }));
    assert_eq!(sender.ring().room(usize::MAX), Ok(16));
}
