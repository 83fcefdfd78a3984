// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters take effect in all workers.

use std::io::Write;

use super::client::{Client, server};

#[test]
fn events_of_keys_are_published() {
    for workers in [1, 3] {
        let server = server(workers);
        let address = server.addresses()[0];
        let (mut operator, mut client) = (Client::connect(address), Client::connect(address));
        let mut listener = Client::connect(address);
        listener.check(
            "PSUBSCRIBE __key*__:*",
            "*3\r\n$10\r\npsubscribe\r\n$10\r\n__key*__:*\r\n:1\r\n",
        );
        client.check("SADD quiet 1", ":1\r\n");
        operator.check("CONFIG SET notify-keyspace-events KEs", "+OK\r\n");
        client.check("SELECT 2", "+OK\r\n");
        client.check("SET no 1", "+OK\r\n");
        for key in ["a", "b", "c"] {
            client.check(&format!("SADD {key} 1"), ":1\r\n");
            let message = |channel: &str, text: &str| {
                format!(
                    "*4\r\n$8\r\npmessage\r\n$10\r\n__key*__:*\r\n${}\r\n{channel}\r\n${}\r\n\
                     {text}\r\n",
                    channel.len(),
                    text.len()
                )
            };
            assert_eq!(listener.raw(), message(&format!("__keyspace@2__:{key}"), "sadd"));
            assert_eq!(listener.raw(), message("__keyevent@2__:sadd", key));
        }
        operator.check("CONFIG SET notify-keyspace-events _", "+OK\r\n");
        client.check("SADD a 2", ":1\r\n");
        operator.check("PUBLISH __key__: end", ":1\r\n");
        assert!(listener.raw().ends_with("$3\r\nend\r\n"));
    }
}

#[test]
fn sizes_of_packed_values_take_effect() {
    let server = server(3);
    let address = server.addresses()[0];
    let (mut operator, mut client) = (Client::connect(address), Client::connect(address));
    let mut encodings = |expected: &str| {
        for key in ["a", "b", "c", "d", "e", "f"] {
            client.check(&format!("HSET {key} 1 1 2 2 3 3"), ":3\r\n");
            let expected = format!("${}\r\n{expected}\r\n", expected.len());
            client.check(&format!("OBJECT ENCODING {key}"), &expected);
            client.check(&format!("DEL {key}"), ":1\r\n");
        }
    };
    encodings("listpack");
    operator.check("CONFIG SET hash-max-ziplist-entries 2", "+OK\r\n");
    encodings("hashtable");
}

#[test]
fn expired_keys_are_told_of() {
    let server = server(2);
    let address = server.addresses()[0];
    let (mut listener, mut client) = (Client::connect(address), Client::connect(address));
    client.check("CONFIG SET notify-keyspace-events Ex", "+OK\r\n");
    listener.ask("SUBSCRIBE __keyevent@0__:expired");
    for key in ["a", "b", "c"] {
        client.check(&format!("SET {key} 1 PX 1"), "+OK\r\n");
        assert!(listener.raw().ends_with(&format!("$1\r\n{key}\r\n")));
    }
}

#[test]
fn limits_of_requests_take_effect() {
    let server = server(1);
    let mut client = Client::connect(server.addresses()[0]);
    client.check("CONFIG SET proto-max-bulk-len 1mb", "+OK\r\n");
    client.stream.write_all(b"*2\r\n$4\r\nECHO\r\n$1048577\r\n").expect("the server reads");
    assert_eq!(client.raw(), "-ERR Protocol error: invalid bulk length\r\n");
    assert!(client.is_closed());
}

#[test]
fn a_parameter_without_a_meaning_is_refused() {
    let server = server(1);
    let mut client = Client::connect(server.addresses()[0]);
    client.check(
        "CONFIG SET hz 99 appendonly yes",
        "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - the option \
         `--dir` of the server says it, so only no is accepted\r\n",
    );
    client.check("CONFIG GET hz", "*2\r\n$2\r\nhz\r\n$2\r\n10\r\n");
    let port = server.addresses()[0].port().to_string();
    let expected = format!("*2\r\n$4\r\nport\r\n${}\r\n{port}\r\n", port.len());
    client.check("CONFIG GET port", &expected);
}

#[test]
fn idle_clients_are_disconnected() {
    let server = server(2);
    let address = server.addresses()[0];
    let (mut idle, mut listener) = (Client::connect(address), Client::connect(address));
    idle.check("PING", "+PONG\r\n");
    listener.ask("SUBSCRIBE x");
    Client::connect(address).check("CONFIG SET timeout 1", "+OK\r\n");
    assert!(idle.is_closed());
    assert!(listener.ask("PING").contains("pong"));
}
