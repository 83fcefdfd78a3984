// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that send faster than they read, and requests of all sizes and in all pieces.

use std::io::{Read, Write};

use crate::client::{Client, server};

/// The client sends 64 MiB worth of replies' requests and reads nothing; another client is served
/// meanwhile, and in the end every reply arrives.
#[test]
fn a_client_that_does_not_read_waits_alone() {
    const VALUE_BYTES: usize = 64 << 10;
    const REQUESTS: usize = 1_000;
    let server = server(1);
    let (mut slow, mut other) = (Client::new(&server), Client::new(&server));
    let value = vec![b'v'; VALUE_BYTES];
    slow.send_arguments(&[b"SET", b"key", &value]);
    assert_eq!(slow.text(), "OK");
    for _ in 0..REQUESTS {
        slow.send("GET key");
    }
    for _ in 0..100 {
        assert_eq!(other.call("PING"), "PONG");
    }
    let mut expected = format!("${VALUE_BYTES}\r\n").into_bytes();
    expected.extend_from_slice(&value);
    expected.extend_from_slice(b"\r\n");
    let mut reply = vec![0; expected.len()];
    for _ in 0..REQUESTS {
        slow.stream.read_exact(&mut reply).expect("every request is answered");
        assert!(reply == expected);
    }
    assert_eq!(slow.call("PING"), "PONG");
}

#[test]
fn a_request_may_come_in_any_pieces() {
    let server = server(2);
    let mut client = Client::new(&server);
    let request =
        b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nPING\r\n";
    for piece in 1..request.len() {
        for part in request.chunks(piece) {
            client.stream.write_all(part).expect("the server reads");
        }
        assert_eq!(
            [client.text(), client.text(), client.text()],
            ["OK", "\"value\"", "PONG"],
            "pieces of {piece}"
        );
    }
}

#[test]
fn large_values_are_stored_and_read() {
    let server = server(1);
    let mut client = Client::new(&server);
    for bytes in [0, 1, 65_536, 1 << 20, 20 << 20] {
        let value = vec![b'x'; bytes];
        client.send_arguments(&[b"SET", b"key", &value]);
        assert_eq!(client.text(), "OK");
        client.send("GET key");
        assert_eq!(client.reply(), freeport_kv_protocol::resp::Value::Bulk(value));
    }
}

/// After an error of the protocol, the connection ends; earlier requests were answered.
#[test]
fn malformed_requests_end_the_connection() {
    for (request, reply) in [
        ("PING\r\n*1\r\n+3\r\n", "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n"),
        ("*3\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("*99999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        ("SET \"x\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
    ] {
        let server = server(1);
        let mut client = Client::new(&server);
        client.stream.write_all(request.as_bytes()).expect("the server reads");
        let mut received = String::new();
        client.stream.read_to_string(&mut received).expect("the connection is closed");
        assert_eq!(received, reply);
        assert_eq!(Client::new(&server).call("PING"), "PONG");
    }
}
