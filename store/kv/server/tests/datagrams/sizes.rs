// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies are divided into datagrams that the client can receive.

use freeport_kv_protocol::batch::{Operation, Status};

use super::peer::{DONE, Outcome, Peer, value};
use super::server;

/// Bytes of the longest datagram that every client can receive.
const USUAL_BYTES: usize = 1_472;

/// Gets keys; returns the bytes of the longest datagram with replies.
#[track_caller]
fn longest(peer: &mut Peer, key: &[u8], count: usize, expected: &[u8]) -> usize {
    match peer.run(&vec![Operation::get(key); count]) {
        Outcome::Replies(replies, sizes) => {
            assert_eq!(replies, vec![value(expected); count]);
            assert_eq!(sizes.len() > 1, count > 1);
            sizes.into_iter().max().expect("there is one")
        }
        Outcome::Error(text) => panic!("{text}"),
    }
}

#[test]
fn datagrams_are_not_longer_than_the_longest_of_the_client() {
    let (_server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    let small = vec![5; 700];
    assert_eq!(peer.run(&[Operation::put(b"small", &small)]).replies(), [DONE]);
    assert_eq!(longest(&mut peer, b"small", 100, &small), 16 + 3 + 700 + 1 + 700);
    let large = vec![6; 8_000];
    assert_eq!(peer.run(&[Operation::put(b"large", &large)]).replies(), [DONE]);
    let bytes = longest(&mut peer, b"small", 100, &small);
    assert!((8_000 - 700..8_100).contains(&bytes), "{bytes}");
    assert_eq!(longest(&mut peer, b"large", 1, &large), 16 + 3 + 8_000);
    // Another client receives no more than before.
    let mut other = Peer::connected(address, 0);
    assert!(longest(&mut other, b"small", 100, &small) <= USUAL_BYTES);
    let [(status, text)] = &other.run(&[Operation::get(b"large")]).replies()[..] else {
        panic!("one reply")
    };
    assert_eq!(*status, Status::Failed);
    assert!(text.as_ref().is_some_and(|text| text.ends_with(b"does not fit in a packet")));
}

/// A short request cannot ask for much more than fits in buffers: 1 MiB.
#[test]
fn replies_to_one_datagram_are_bounded() {
    let (_server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    let large = vec![7; 60_000];
    assert_eq!(peer.run(&[Operation::put(b"k", &large)]).replies(), [DONE]);
    let replies = peer.insist(&vec![Operation::get(b"k"); 100]);
    let found = replies.iter().filter(|reply| **reply == value(&large)).count();
    assert_eq!(found, (1 << 20) / 60_003);
    assert!(replies[found..].iter().all(|(status, _)| *status == Status::Failed));
}
