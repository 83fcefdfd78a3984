// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that break rules.

use freeport_kv_protocol::batch::Operation;
use freeport_testbed::usual_or_long;
use freeport_testbed::wait_until;

use super::peer::{DONE, Peer, value};
use super::{count, server};

#[test]
fn what_is_no_packet_is_counted_and_not_answered() {
    let (server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    let right = peer.packet(&[Operation::put(b"a", b"1")]);
    let reply = |at: usize, byte: u8| {
        let mut wrong = right.clone();
        wrong[at] = byte;
        wrong
    };
    for wrong in [
        vec![],
        b"KV".to_vec(),
        right[..15].to_vec(),
        right[..right.len() - 1].to_vec(),
        [&right[..], b"x"].concat(),
        reply(0, b'V'),
        reply(2, 2),
        reply(3, 3),
        reply(14, 1),
    ] {
        peer.socket.send(&wrong).expect("the system takes it");
    }
    // Its answer would come after theirs.
    assert_eq!(peer.run(&[Operation::put(b"b", b"1")]).replies(), [DONE]);
    assert_eq!(count(&server, "udp_datagrams_malformed"), 9);
    assert_eq!(count(&server, "udp_datagrams_sent"), 2);
}

#[test]
fn operations_that_break_a_rule_are_an_error_of_the_packet() {
    let (server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    let mut packet = peer.packet(&[Operation::put(b"a", b"1"), Operation::get(b"a")]);
    let last = packet.len() - 2;
    packet[last] = 0x0F;
    peer.socket.send(&packet).expect("the system takes it");
    let mut buffer = [0; 2_000];
    let length = peer.socket.recv(&mut buffer).expect("an answer");
    let text = String::from_utf8_lossy(&buffer[16..length]).into_owned();
    assert!(text.starts_with("operation 1, at byte "), "{text}");
    assert_eq!(count(&server, "udp_datagrams_malformed"), 1);
    let replies = peer.run(&[Operation::get(b"a")]).replies();
    assert_eq!(replies, [super::NOT_FOUND], "nothing was executed");
}

/// Random bytes, and packets with a few wrong ones. The server may answer or not; it serves others
/// afterwards.
#[test]
fn garbage_does_no_harm() {
    let (server, address) = server(1);
    let (mut peer, mut other) = (Peer::connected(address, 0), Peer::connected(address, 1));
    assert_eq!(other.run(&[Operation::put(b"a", b"1")]).replies(), [DONE]);
    let mut random = fastrand::Rng::with_seed(3);
    let mut sent = 0;
    for _ in 0..usual_or_long(20_000, 2_000_000) {
        let mut packet = match random.u8(..4) {
            0 => vec![],
            1 => peer.packet(&[Operation::get(b"key"), Operation::get(b"yek")]),
            _ => peer.packet(&[Operation::put(b"key", b"value"), Operation::delete(b"other")]),
        };
        packet.resize_with(packet.len() + random.usize(..30), || random.u8(..));
        for _ in 0..random.usize(..4) {
            let at = random.usize(..packet.len().max(1));
            if let Some(byte) = packet.get_mut(at) {
                *byte = random.u8(..);
            }
        }
        sent += u64::from(peer.socket.send(&packet).is_ok());
        if sent % 100 == 0 {
            assert_eq!(other.insist(&[Operation::get(b"a")]), [value("1")]);
        }
    }
    wait_until("the server has seen them", || count(&server, "udp_datagrams_malformed") > sent / 4);
    assert_eq!(other.insist(&[Operation::get(b"a")]), [value("1")]);
}
