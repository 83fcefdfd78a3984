// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys whose time passes, while nothing but commands removes them.

use std::time::{Duration, Instant};

use freeport_testbed::wait::wait_until;

use super::client::{Client, server};

/// A client of a server that does not search for expired keys.
fn client(server: &freeport_kv_server::Server) -> Client {
    let mut client = Client::new(server);
    client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
    client
}

/// Makes a key, and returns when its time has passed.
fn expire(client: &mut Client, key: &str) {
    client.check(&format!("SET {key} 1 PX 1"), "+OK\r\n");
    let started = Instant::now();
    wait_until("the time has passed", || started.elapsed() > Duration::from_millis(5));
}

#[test]
fn reads_remove_what_has_expired() {
    let server = server(3);
    let mut client = client(&server);
    client.check("CONFIG SET notify-keyspace-events Exm", "+OK\r\n");
    let mut listener = Client::new(&server);
    listener.send("PSUBSCRIBE __keyevent*");
    listener.raw();
    let event = |name: &str, key: &str| {
        format!("1) \"pmessage\" 2) \"__keyevent*\" 3) \"__keyevent@0__:{name}\" 4) \"{key}\"")
    };
    for (line, has_miss) in
        [("GET a", true), ("TTL a", true), ("OBJECT ENCODING a", false), ("LPUSHX a x", false)]
    {
        expire(&mut client, "a");
        client.check("DBSIZE", ":1\r\n");
        client.ask(line);
        client.check("DBSIZE", ":0\r\n");
        assert_eq!(listener.text(), event("expired", "a"), "{line}");
        if has_miss {
            assert_eq!(listener.text(), event("keymiss", "a"), "{line}");
        }
    }
    for key in ["a", "b", "c"] {
        expire(&mut client, key);
    }
    client.check("KEYS *", "*0\r\n");
    client.check("DBSIZE", ":3\r\n");
    client.check("SCAN 0 TYPE list", "*2\r\n$1\r\n0\r\n*0\r\n");
    client.check("DBSIZE", ":0\r\n");
    client.check("DEBUG SET-ACTIVE-EXPIRE 1", "+OK\r\n");
    assert!(client.ask("INFO stats").contains("\r\nexpired_keys:7\r\n"));
}

#[test]
fn nothing_expires_while_writes_are_paused() {
    let server = server(1);
    let mut client = client(&server);
    expire(&mut client, "key");
    client.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
    client.check("GET key", "$-1\r\n");
    client.check("DBSIZE", ":1\r\n");
    client.check("CLIENT UNPAUSE", "+OK\r\n");
    client.check("GET key", "$-1\r\n");
    client.check("DBSIZE", ":0\r\n");
}

#[test]
fn the_removal_of_a_key_that_had_expired_before_is_no_change_of_it() {
    let server = server(1);
    let [mut client, mut other] = [client(&server), Client::new(&server)];
    expire(&mut client, "key");
    client.check("WATCH key", "+OK\r\n");
    other.check("GET key", "$-1\r\n");
    client.check("MULTI", "+OK\r\n");
    client.check("PING", "+QUEUED\r\n");
    client.check("EXEC", "*1\r\n+PONG\r\n");
    // The time may have passed before the client watches the key.
    for lifetime_ms in (0..).map(|attempt| 50 << attempt) {
        other.check(&format!("SET key 1 PX {lifetime_ms}"), "+OK\r\n");
        client.check("WATCH key", "+OK\r\n");
        if client.ask("EXISTS key") == ":1\r\n" {
            break;
        }
        client.check("UNWATCH", "+OK\r\n");
    }
    wait_until("the key has expired", || other.ask("EXISTS key") == ":0\r\n");
    client.check("MULTI", "+OK\r\n");
    client.check("EXEC", "*-1\r\n");
}

#[test]
fn a_list_that_has_expired_serves_nobody() {
    let server = server(1);
    let [mut client, mut waiter] = [client(&server), Client::new(&server)];
    waiter.send("BLPOP list 0");
    wait_until("a client waits", || client.ask("INFO clients").contains("blocked_clients:1"));
    client.check("MULTI", "+OK\r\n");
    for line in ["RPUSH list a", "PEXPIRE list 1", "DEBUG SLEEP 0.05"] {
        client.check(line, "+QUEUED\r\n");
    }
    client.check("EXEC", "*3\r\n:1\r\n:1\r\n+OK\r\n");
    client.check("EXISTS list", ":0\r\n");
    client.check("RPUSH list b", ":1\r\n");
    assert_eq!(waiter.text(), "1) \"list\" 2) \"b\"");
}
