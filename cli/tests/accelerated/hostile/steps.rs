// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers that violate the protocol at one critical step: in the words by which a connection leaves
//! the kernel and returns, and in the entries by which a ring continues in another area; and peers
//! that stop at one of these steps.

use super::attacker::Attacker;
use super::{Place, Server, await_turn, connect, ping};
use crate::harness::{Node, wait_until};
use freeport_sockets_proto::slab::{self, REFUND_BYTES, Ring, SLOT_BYTES, again, flag, word};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;

/// Numbers of entry kinds, as in `freeport_ring`.
const DATA: u64 = 1;
const MOVE: u64 = 11;
/// The bytes of a value that fills all areas of a ring.
const VALUE_BYTES: usize = 4 << 20;

#[test]
fn peers_that_stop_at_any_step_hold_up_nobody_else() {
    let mut server = Server::new();
    for place in server.places() {
        server.withstands(&place, |node| {
            stops_before_it_has_switched(node, &place);
            stops_while_it_writes(node, &place);
            stops_while_it_comes_back(node, &place);
            stops_while_it_is_recalled(node, &place);
        });
    }
}

#[test]
fn rings_that_go_on_nowhere_spoil_nothing_else() {
    let mut server = Server::new();
    let names = [0, 1, 2, 4, 5, 64, u64::from(u32::MAX), 1 << 32, 1 << 32 | 1, u64::MAX];
    for place in server.places() {
        server.withstands(&place, |node| {
            for name in names {
                continues_at(node, &place, name, 8);
            }
            // A name of invalid length, and one that extends beyond the end of the ring.
            for length in [0, 4, 9, 1 << 16, u64::from(u32::MAX)] {
                continues_at(node, &place, 1, length);
            }
            goes_round_in_a_circle(node, &place);
        });
    }
}

#[test]
fn who_comes_back_is_sent_nothing_but_what_was_in_its_ring() {
    let mut server = Server::new();
    let refunds = [1, 4096, REFUND_BYTES as u64, REFUND_BYTES as u64 + 1, u64::MAX];
    for place in server.places() {
        server.withstands(&place, |node| {
            for refunded in refunds {
                comes_back(node, &place, &[0; 5], refunded);
            }
            for area in [1, 2, 5, 6, u64::from(u32::MAX), u64::MAX] {
                for at in [[0; 4], [7, 0, 0, 0], [u64::MAX; 4], [1 << 40, 1 << 39, 3, 1 << 33]] {
                    let [head, base, sequence, read] = at;
                    comes_back(node, &place, &[area, head, base, sequence, read], 0);
                }
            }
            wants_a_ring_without_an_end(node, &place);
        });
    }
}

/// The bytes that a peer requests again may exceed the kernel's buffers while it does not read. No
/// thread blocks on that, and all bytes arrive when it reads.
#[test]
fn peers_that_make_no_room_hold_up_nobody() {
    let mut server = Server::new();
    for place in server.places() {
        server.withstands(&place, |node| {
            let mut honest = connect(&place);
            sets_value(&mut honest, VALUE_BYTES);
            let mut stream = connect(&place);
            let ask = *b"GET    x  \r\n";
            for _ in 0..3 {
                stream.write_all(&ask).unwrap();
                let answer = format!("${VALUE_BYTES}\r\n").len() + VALUE_BYTES + 2;
                stream.read_exact(&mut vec![0; answer]).unwrap();
            }
            let mut attacker = Attacker::after(node, stream, 3 * ask.len() as u64 / 6);
            attacker.leave_kernel();
            attacker.wants_again(&[0; 5], REFUND_BYTES as u64);
            attacker.ring();
            attacker.leaves_after(2);
            wait_until("it follows", || {
                attacker.other(word::FLAGS).load(SeqCst) & flag::LEAVES != 0
            });
            await_turn(&mut honest);
            let mut stream = attacker.stream.try_clone().unwrap();
            stream.set_nonblocking(false).unwrap();
            let mut given_back = vec![1; REFUND_BYTES];
            stream.read_exact(&mut given_back).expect("the connection goes on");
            assert!(given_back.iter().all(|byte| *byte == 0));
            assert!(ping(&mut stream), "it is the kernel's again");
        });
    }
}

/// More bytes than it was ever sent.
#[test]
fn peers_that_want_more_than_they_were_sent_are_cut_off() {
    let mut server = Server::new();
    for place in server.places() {
        server.withstands(&place, |node| {
            let mut attacker = Attacker::new(node, connect(&place));
            attacker.leave_kernel();
            attacker.wants_again(&[0; 5], 1 << 20);
            attacker.ring();
            attacker.leaves_after(2);
            assert_eq!(attacker.read_while_served(&mut connect(&place)), 0);
        });
    }
}

#[test]
fn all_come_back_though_some_peers_do_not() {
    let mut server = Server::new();
    for place in server.places() {
        server.withstands(&place, |node| {
            let descriptors = [0, 1, 2, 1 << 31, u64::MAX];
            let mut attackers: Vec<Attacker> = vec![];
            for descriptor in descriptors {
                let mut attacker = Attacker::new(node, connect(&place));
                attacker.leave_kernel();
                attacker.own(word::DESCRIPTOR).store(descriptor, SeqCst);
                attackers.push(attacker);
            }
            let run = |arguments: &[&str]| node.freeport(arguments).output().expect("it runs");
            assert!(run(&["sockets", "policy", "deny", "any"]).status.success());
            // The concurrent client uses the kernel at that time.
            _ = run(&["sockets", "recall", "--wait", "1"]);
            for attacker in &mut attackers {
                attacker.ring();
                attacker.read_while_served(&mut connect(&place));
            }
            assert!(run(&["sockets", "policy", "remove", "1"]).status.success());
        });
    }
}

fn stops_before_it_has_switched(node: &Node, place: &Place) {
    for flags in [0, flag::ATTACHED, flag::ATTACHED | flag::LOOKS, flag::DECLINED] {
        for switched in [None, Some(0), Some(u64::MAX)] {
            let mut attacker = Attacker::new(node, connect(place));
            attacker.own(word::FLAGS).store(flags, SeqCst);
            if let Some(at) = switched {
                attacker.own(word::SWITCHED_AT).store(at, SeqCst);
                attacker.own(word::FLAGS).fetch_or(flag::SWITCHED, SeqCst);
            }
            attacker.ring();
            attacker.read_while_served(&mut connect(place));
        }
    }
}

fn stops_while_it_writes(node: &Node, place: &Place) {
    for at in [word::WRITING, word::RINGING, word::RANG, word::RECEIVING] {
        for value in [1, u64::MAX] {
            let mut attacker = Attacker::new(node, connect(place));
            attacker.leave_kernel();
            attacker.own(at).store(value, SeqCst);
            attacker.own(word::FLAGS).fetch_or(flag::STOPS, SeqCst);
            attacker.ring();
            attacker.read_while_served(&mut connect(place));
        }
    }
}

fn stops_while_it_comes_back(node: &Node, place: &Place) {
    let words = [0, again::PREPARED, again::WANTED, again::TAKEN, again::SENT, again::REFUSED, 77];
    for flags in [flag::STOPS, flag::LEAVES, flag::STOPS | flag::LEAVES, flag::STOPS | flag::ENDED]
    {
        for again in words {
            let mut attacker = Attacker::new(node, connect(place));
            attacker.leave_kernel();
            attacker.other(word::AGAIN).store(again, SeqCst);
            attacker.other(word::AGAIN_BYTES).store(u64::MAX, SeqCst);
            attacker.own(word::LEFT_AT).store(u64::MAX, SeqCst);
            attacker.own(word::FLAGS).fetch_or(flags, SeqCst);
            attacker.ring();
            attacker.read_while_served(&mut connect(place));
        }
    }
}

/// Announces, in place of the monitor, that the connection is recalled, and then does not take
/// part. Concurrent clients are served.
fn stops_while_it_is_recalled(node: &Node, place: &Place) {
    for (word, value) in [(word::WRITING, 1), (word::RINGING, 1), (word::REFUNDED, 1)] {
        let mut attacker = Attacker::new(node, connect(place));
        attacker.leave_kernel();
        attacker.own(word).store(value, SeqCst);
        attacker.other(word).store(value, SeqCst);
        attacker.own(word::FLAGS).fetch_or(flag::RECALLED, SeqCst);
        asks(&mut attacker, *b"PING\r\n\0\0", 6);
        await_turn(&mut connect(place));
    }
}

/// Sets `x` to a value of this number of bytes.
fn sets_value(honest: &mut UnixStream, bytes: usize) {
    let value = vec![b'x'; bytes];
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n${bytes}\r\n");
    honest.write_all(&[set.as_bytes(), &value, b"\r\n"].concat()).unwrap();
    honest.read_exact(&mut [0; 5]).unwrap();
}

/// The first word of an entry.
fn header(kind: u64, length: u64, sequence: u64) -> u64 {
    length | kind << 32 | 1 << 40 | sequence << 48
}

/// Sends a prefix of these bytes through its ring, as the first entry.
fn asks(attacker: &mut Attacker, text: [u8; 8], length: u64) {
    let ring = Ring::to(attacker.slot.side.other());
    attacker.slot.in_area(ring, 0, 8).store(u64::from_ne_bytes(text), SeqCst);
    attacker.slot.in_area(ring, 0, 0).store(header(DATA, length, 0), SeqCst);
    attacker.ring();
}

/// An entry that continues the ring in the area of this name.
fn continues_at(node: &Node, place: &Place, name: u64, length: u64) {
    let mut attacker = Attacker::new(node, connect(place));
    attacker.leave_kernel();
    let ring = Ring::to(attacker.slot.side.other());
    attacker.slot.in_area(ring, 0, 8).store(name, SeqCst);
    attacker.slot.in_area(ring, 0, 0).store(header(MOVE, length, 0), SeqCst);
    attacker.ring();
    attacker.read_while_served(&mut connect(place));
}

/// Areas that name each other, and themselves.
fn goes_round_in_a_circle(node: &Node, place: &Place) {
    let mut attacker = Attacker::new(node, connect(place));
    attacker.leave_kernel();
    let ring = Ring::to(attacker.slot.side.other());
    for area in (0..slab::AREAS).rev() {
        let bytes = Ring::capacity(area).min(4096);
        for (entry, sequence) in (0..bytes).step_by(16).zip(0..) {
            let next = [1, 0, u64::from(area), 3][sequence as usize % 4];
            attacker.slot.in_area(ring, area, entry + 8).store(next, SeqCst);
            let header = header(MOVE, 8, sequence);
            attacker.slot.in_area(ring, area, entry).store(header, SeqCst);
        }
    }
    attacker.ring();
    attacker.read_while_served(&mut connect(place));
}

/// Returns to the kernel from a position, and requests this number of bytes again.
fn comes_back(node: &Node, place: &Place, stopped: &[u64; 5], refunded: u64) {
    let mut attacker = Attacker::new(node, connect(place));
    attacker.leave_kernel();
    attacker.wants_again(stopped, refunded);
    attacker.ring();
    let bytes = attacker.read_while_served(&mut connect(place));
    assert!(bytes <= SLOT_BYTES, "{bytes} bytes");
}

/// Fills the ring that is sent again with entries that form a cycle: the last one is followed by
/// the first one.
fn wants_a_ring_without_an_end(node: &Node, place: &Place) {
    let mut honest = connect(place);
    sets_value(&mut honest, VALUE_BYTES);
    let mut attacker = Attacker::new(node, connect(place));
    attacker.leave_kernel();
    // The result fills all possible areas.
    let before = attacker.other(word::SENT_BYTES).load(SeqCst);
    asks(&mut attacker, *b"GET x\r\n\0", 7);
    wait_until("it answers", || attacker.other(word::SENT_BYTES).load(SeqCst) > before);
    let sent = || attacker.other(word::SENT_BYTES).load(SeqCst);
    wait_until("there is no room for more", || {
        let before = sent();
        await_turn(&mut honest);
        sent() == before
    });
    let last = slab::AREAS - 1;
    let ring = Ring::to(attacker.slot.side);
    assert_eq!(Ring::capacity(last), 16 << 16);
    for entry in 0..1 << 16 {
        let header = header(DATA, 8, entry);
        attacker.slot.in_area(ring, last, entry as usize * 16).store(header, SeqCst);
    }
    attacker.wants_again(&[u64::from(last) + 1, 0, 0, 0, 0], 0);
    attacker.ring();
    let bytes = attacker.read_while_served(&mut connect(place));
    assert!(bytes <= SLOT_BYTES, "{bytes} bytes");
}
