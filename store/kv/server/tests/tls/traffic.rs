// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traffic of encrypted connections: pieces and sizes of all kinds, slow clients, listeners, ends.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use freeport_testbed::wait_until;
use rustls::StreamOwned;

use super::certificates::Folder;
use super::{address, client_config, connect, memcached_address, options, serve, session};
use crate::client::{Client, request};

/// A stream on which bytes come and go one by one.
struct Trickle(TcpStream);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

impl Write for Trickle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn records_may_come_byte_by_byte() {
    let folder = Folder::new();
    let server = serve(options(&folder), 1);
    let stream = Trickle(Client::connect(address(&server)).stream);
    let mut client = Client::over(StreamOwned::new(session(client_config(&folder, None)), stream));
    let value = "v".repeat(5_000);
    assert_eq!(client.call(&format!("SET key {value}")), "OK");
    assert_eq!(client.call("GET key"), format!("\"{value}\""));
}

#[test]
fn large_values_and_pipelines_pass() {
    const REQUESTS: usize = 1_000;
    let folder = Folder::new();
    let server = serve(options(&folder), 3);
    let mut client = connect(address(&server), client_config(&folder, None));
    for bytes in [0, 1, 16_383, 16_384, 16_385, 65_536, 10 << 20] {
        let value: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        client.send_arguments(&[b"SET", b"key", &value]);
        assert_eq!(client.text(), "OK");
        client.send("GET key");
        assert!(client.reply() == freeport_kv_protocol::resp::Value::Bulk(value), "{bytes}");
    }
    let mut requests = vec![];
    for number in 0..REQUESTS {
        let key = format!("key{number}");
        requests.extend(request(&[b"SET", key.as_bytes(), key.as_bytes()]));
        requests.extend(request(&[b"GET", key.as_bytes()]));
    }
    client.stream.write_all(&requests).expect("the server reads");
    for number in 0..REQUESTS {
        assert_eq!([client.text(), client.text()], ["OK", &format!("\"key{number}\"")]);
    }
}

/// Replies of 64 MiB wait for the client; another client is served meanwhile. Keys of the session
/// change in between.
#[test]
fn a_client_that_does_not_read_waits_alone() {
    const VALUE_BYTES: usize = 64 << 10;
    const REQUESTS: usize = 1_000;
    let folder = Folder::new();
    let server = serve(options(&folder), 1);
    let config = client_config(&folder, None);
    let [mut slow, mut other] = [(); 2].map(|()| connect(address(&server), config.clone()));
    let value = vec![b'v'; VALUE_BYTES];
    slow.send_arguments(&[b"SET", b"key", &value]);
    assert_eq!(slow.text(), "OK");
    for _ in 0..REQUESTS {
        slow.send("GET key");
    }
    slow.stream.conn.refresh_traffic_keys().expect("it is TLS 1.3");
    for _ in 0..100 {
        assert_eq!(other.call("PING"), "PONG");
    }
    let expected = freeport_kv_protocol::resp::Value::Bulk(value);
    for _ in 0..REQUESTS {
        assert!(slow.reply() == expected);
    }
    assert_eq!(slow.call("PING"), "PONG");
}

#[test]
fn messages_monitors_and_waits_reach_encrypted_clients() {
    let folder = Folder::new();
    let server = serve(options(&folder), 2);
    let config = client_config(&folder, None);
    let [mut listener, mut monitor, mut waiting, mut client] =
        [(); 4].map(|()| connect(address(&server), config.clone()));
    listener.call("SUBSCRIBE news");
    waiting.send("BLPOP list 0");
    wait_until("it waits", || server.census().blocked == 1);
    // More than a worker sends at once.
    let text = "x".repeat(1 << 20);
    assert_eq!(client.call(&format!("PUBLISH news {text}")), "(integer) 1");
    assert_eq!(listener.text(), format!("1) \"message\" 2) \"news\" 3) \"{text}\""));
    monitor.call("MONITOR");
    assert_eq!(client.call("RPUSH list a"), "(integer) 1");
    assert_eq!(waiting.text(), "1) \"list\" 2) \"a\"");
    let seen = std::iter::repeat_with(|| monitor.text()).find(|line| line.contains("RPUSH"));
    assert!(seen.is_some_and(|line| line.ends_with("\"RPUSH\" \"list\" \"a\"")));
}

#[test]
fn clients_are_answered_while_a_script_runs_for_long() {
    let folder = Folder::new();
    let config = client_config(&folder, None);
    for workers in [1, 2] {
        let server = serve(options(&folder), workers);
        // Clients belong to the workers in turn; this one is the last worker's.
        let connect_last = || {
            let connect = || connect(address(&server), config.clone());
            (1..workers).for_each(|_| drop(connect()));
            connect()
        };
        let [mut runner, mut client] = [(); 2].map(|()| connect_last());
        assert_eq!(client.call("CONFIG SET busy-reply-threshold 1"), "OK");
        runner.send_arguments(&[b"EVAL", b"while true do end", b"0"]);
        wait_until("the script runs for long", || client.call("PING").contains("BUSY"));
        let mut new = connect_last();
        assert!(new.call("GET key").contains("BUSY"), "its handshake happens meanwhile");
        assert_eq!(new.call("SCRIPT KILL"), "OK");
        assert!(runner.text().contains("Script killed by user"));
        assert_eq!([new.call("PING"), client.call("PING")], ["PONG", "PONG"]);
    }
}

/// As without TLS, a listener that does not read is disconnected.
#[test]
fn a_listener_that_does_not_read_is_disconnected() {
    let folder = Folder::new();
    let server = serve(options(&folder), 1);
    let config = client_config(&folder, None);
    let [mut listener, mut client] = [(); 2].map(|()| connect(address(&server), config.clone()));
    listener.call("SUBSCRIBE news");
    let request = request(&[b"PUBLISH", b"news", &vec![b'x'; 1 << 20]]);
    wait_until("it is disconnected", || {
        client.stream.write_all(&request).expect("the server reads");
        client.text() == "(integer) 0"
    });
}

/// The client sends its last requests and its end together: it gets the replies, and the end of the
/// server.
#[test]
fn a_client_that_ends_gets_its_replies() {
    let folder = Folder::new();
    let server = serve(options(&folder), 1);
    let mut client = connect(address(&server), client_config(&folder, None));
    assert_eq!(client.call("PING"), "PONG");
    let session = &mut client.stream.conn;
    session.writer().write_all(b"SET key value\r\nGET key\r\n").expect("there is room");
    session.send_close_notify();
    let mut replies = String::new();
    client.stream.read_to_string(&mut replies).expect("the server ends the session as well");
    assert_eq!(replies, "+OK\r\n$5\r\nvalue\r\n");
    wait_until("it is gone", || server.census().connections == 0);
}

/// The connection ends without the end of the session.
#[test]
fn a_client_that_vanishes_leaves_nothing() {
    let folder = Folder::new();
    let server = serve(options(&folder), 2);
    let config = client_config(&folder, None);
    for line in ["PING", "SUBSCRIBE news", "BLPOP list 0", "MULTI"] {
        let mut client = connect(address(&server), config.clone());
        assert_eq!(client.call("PING"), "PONG");
        client.send(line);
        client.stream.sock.shutdown(std::net::Shutdown::Write).expect("it is connected");
        wait_until("it is gone", || server.census().connections == 0);
    }
}

#[test]
fn clients_of_memcached_encrypt_as_well() {
    const VALUE_BYTES: usize = 500_000;
    let folder = Folder::new();
    let server = serve(options(&folder), 2);
    let mut stream = connect(memcached_address(&server), client_config(&folder, None)).stream;
    let value = "v".repeat(VALUE_BYTES);
    let request = format!("set key 0 0 {VALUE_BYTES}\r\n{value}\r\nget key\r\nquit\r\n");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut replies = String::new();
    stream.read_to_string(&mut replies).expect("the server ends the session");
    assert!(replies == format!("STORED\r\nVALUE key 0 {VALUE_BYTES}\r\n{value}\r\nEND\r\n"));
}

#[test]
fn a_server_with_encrypted_clients_ends() {
    let folder = Folder::new();
    let server = serve(options(&folder), 2);
    let config = client_config(&folder, None);
    let [mut client, mut other] = [(); 2].map(|()| connect(address(&server), config.clone()));
    let _silent = Client::connect(address(&server));
    assert_eq!([client.call("PING"), other.call("PING")], ["PONG", "PONG"]);
    client.send("SHUTDOWN NOSAVE");
    server.join().expect("no worker fails");
    assert_eq!(other.stream.read(&mut [0; 16]).expect("the session has an end"), 0);
}
