// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that break a rule change nothing, and their clients are told why.

use std::io::Write;

use fastrand::Rng;
use freeport_kv_protocol::batch::Operation;
use freeport_testbed::wait_until;

use super::client::{WAYS, Way, packet, served};

#[test]
fn nothing_of_a_malformed_packet_is_executed() {
    for way in WAYS {
        let served = served(2);
        let mut client = served.client(way);
        let mut bytes = packet(7, &[Operation::put(b"a", b"1"), Operation::put(b"b", b"2")]);
        let last = bytes.len() - 1;
        // The second operation, whose lengths are those of the first.
        bytes[last - 2] = 0x0F;
        client.stream.write_all(&bytes).expect("the server reads");
        let error = client.error();
        assert!(error.starts_with("operation 1, at byte 6 of the payload: "), "{error}");
        assert_eq!((client.get(b"a"), client.get(b"b")), (None, None));
    }
}

#[test]
fn a_header_that_is_none_ends_the_connection() {
    for way in WAYS {
        let served = served(1);
        for (bytes, part) in [
            (&b"*1\r\n$4\r\nPING\r\n"[..], "4b 56"),
            (b"KV\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "version 2"),
            (b"KV\x01\x00\x01\x00\x00\x00\xFF\xFF\xFF\xFF\x00\x00\x00\x00", "divide the batch"),
        ] {
            let mut client = served.client(way);
            client.put(b"a", b"1");
            client.stream.write_all(bytes).expect("the server reads");
            let error = client.error();
            assert!(error.contains(part), "{error}");
            assert!(client.is_closed());
        }
    }
}

/// The server survives any bytes, and serves others.
#[test]
fn changed_packets_do_no_harm() {
    let served = served(2);
    let mut random = Rng::with_seed(freeport_testbed::seed());
    let keys = [&b"a"[..], b"bb", b"ccc"];
    for round in 0..300 {
        let mut client = served.client(WAYS[round % 2]);
        let mut bytes = vec![];
        for batch in 0..3 {
            let puts = keys.map(|key| Operation::put(key, b"value"));
            bytes.extend(packet(batch, &puts));
            bytes.extend(packet(batch, &keys.map(Operation::get)));
        }
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(..=bytes.len()));
        // The server may have closed the connection.
        let _ = client.stream.write_all(&bytes);
    }
    wait_until("all have gone", || served.server.census().connections == 0);
    let mut client = served.client(Way::Tcp);
    client.put(b"a", b"1");
    assert_eq!(client.get(b"a"), Some(b"1".to_vec()));
}

/// A process that connects to the socket of the fabric, and is none of its clients.
#[test]
fn a_stranger_at_the_socket_of_the_fabric_does_no_harm() {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    let served = served(1);
    let mut strangers = vec![];
    for bytes in [&b""[..], b"x", &[7; 48], &[0; 4096]] {
        let mut stranger = UnixStream::connect(served.path()).expect("it listens");
        stranger.write_all(bytes).expect("the server reads");
        if !bytes.is_empty() {
            let mut reply = vec![];
            // The rest of its bytes may be discarded.
            let _ = stranger.read_to_end(&mut reply);
            assert!(reply.is_empty(), "it was refused");
        }
        strangers.push(stranger);
        let mut client = served.client(Way::Fabric);
        client.put(b"a", b"1");
    }
    let silent = strangers.swap_remove(0);
    wait_until("it waits", || served.server.census().connections == 1);
    drop(silent);
    wait_until("it has gone", || served.server.census().connections == 0);
}
