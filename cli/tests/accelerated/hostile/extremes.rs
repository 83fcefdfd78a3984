// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers of another user that write extreme values into each word that they share with a server:
//! only their own connections are affected, and no resources of theirs remain.

use super::attacker::Attacker;
use super::holding::Holding;
use super::{Place, Server, await_turn, connect};
use crate::harness::Node;
use freeport_sockets_proto::slab::{self, Ring, Side, board, word};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// Values next to the limits of integer widths.
const EXTREMES: [u64; 8] =
    [0, 1, i32::MAX as u64, u32::MAX as u64, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX];
/// The words at the start of a ring's notes that have a meaning, and one more.
const NOTES: [usize; 3] = [0, 8, 16];

#[test]
fn each_word_at_its_extremes_spoils_its_own_connection_at_most() {
    let mut server = Server::new();
    let words = words();
    for place in server.places() {
        // The state after the first connection.
        drop(Attacker::of_another_user(&server.node, connect(&place)));
        let before = Holding::settled(&server);
        server.withstands(&place, |node| {
            let mut honest = connect(&place);
            for word in &words {
                writes(node, &place, word, &mut honest);
            }
        });
        before.is_reached_again(&server);
    }
}

/// A word of shared memory: its name and position.
struct Word {
    name: String,
    at: At,
}

impl Word {
    fn of<'a>(&self, attacker: &'a Attacker) -> &'a AtomicU64 {
        match self.at {
            At::Page(at) => attacker.slot.word(at),
            At::Board(at) => attacker.slot.in_slab(at),
            At::Area(ring, area) => attacker.slot.in_area(ring, area, 0),
            At::Refund(side) => attacker.slot.in_refund(side),
        }
    }
}

enum At {
    Page(usize),
    Board(usize),
    Area(Ring, u32),
    Refund(Side),
}

fn words() -> Vec<Word> {
    let mut words = vec![];
    for side in [Side::First, Side::Second] {
        let mut add = |name: String, at| words.push(Word { name: format!("{side:?} {name}"), at });
        for (name, at, _) in word::ALL {
            add(name.into(), At::Page(slab::state(side) + at));
        }
        for (name, at, _) in board::ALL {
            add(format!("board {name}"), At::Board(slab::board(side) + at));
        }
        let ring = Ring::to(side);
        for at in NOTES {
            add(format!("sender's notes {at}"), At::Page(ring.sender_notes() + at));
            add(format!("receiver's notes {at}"), At::Page(ring.receiver_notes() + at));
        }
        for area in 0..slab::AREAS {
            add(format!("area {area}"), At::Area(ring, area));
        }
        add("refund".into(), At::Refund(side));
    }
    words
}

/// Writes all extremes into a word, and after each triggers the server in every way.
fn writes(node: &Node, place: &Place, word: &Word, honest: &mut UnixStream) {
    let begin = || {
        let mut attacker = Attacker::of_another_user(node, connect(place));
        attacker.leave_kernel();
        attacker
    };
    let mut attacker = begin();
    for extreme in EXTREMES {
        let before = word.of(&attacker).swap(extreme, SeqCst);
        attacker.ring();
        _ = attacker.stream.write(b"PING\r\n");
        await_turn(honest);
        // Unless the server has overwritten it.
        _ = word.of(&attacker).compare_exchange(extreme, before, SeqCst, SeqCst);
        if attacker.is_over() {
            println!("{} at {extreme:#x}: the connection is over", word.name);
            attacker = begin();
        }
    }
}
