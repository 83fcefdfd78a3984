// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that vanish at any moment: nothing of them is left, and the others are served.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use freeport_kv_server::{Census, Options, Server};
use freeport_testbed::wait_until;

use crate::client::{Client, request, server, server_with};

/// Waits until a server has only its shards, and these connections.
fn wait_for_rest(server: &Server, workers: usize, connections: usize) {
    let rest = Census { shards: workers, connections, ..Census::default() };
    let mut last = Census::default();
    wait_until("nothing is left of the others", || {
        last = Census { lost_messages: 0, ..server.census() };
        last == rest
    });
}

/// Bytes of requests that a client may be in the midst of.
fn requests(random: &mut Rng) -> Vec<u8> {
    let key = |random: &mut Rng| format!("key{}", random.u32(..8));
    let mut bytes = vec![];
    for _ in 0..random.usize(1..6) {
        let (one, other, list) = (key(random), key(random), format!("list{}", random.u32(..4)));
        let lines = match random.u32(..9) {
            0 => format!("GET {one}"),
            1 => format!("MSET {one} 1 {other} 2"),
            2 => format!("WATCH {one} {other}\nSET {one} 1"),
            3 => format!("MULTI\nSET {one} 1\nSET {other} 1\nEXEC"),
            4 => format!("BLPOP {list} wait1 0"),
            5 => format!("BLMOVE wait2 {list} LEFT RIGHT 0"),
            6 => "EVAL return(redis.call('GET','key1')) 0".into(),
            7 => format!("SUBSCRIBE {one} {other}"),
            _ => format!("LPUSH {list} 1\nLPOP {list}"),
        };
        for line in lines.lines() {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            bytes.extend(request(&words));
        }
    }
    bytes
}

/// Connects, sends a part of some requests, and is gone in one of the ways in which clients go.
fn come_and_go(server: &Server, random: &mut Rng) {
    let mut stream = TcpStream::connect(server.addresses()[0]).expect("the server listens");
    let mut bytes = request(&[b"PING"]);
    let begin = bytes.len();
    bytes.extend(requests(random));
    let end = if random.bool() { bytes.len() } else { random.usize(begin..bytes.len()) };
    // The server may have closed the connection already.
    let _ = stream.write_all(&bytes[..end]);
    match random.u32(..3) {
        0 => {}
        1 => {
            let _ = stream.shutdown(Shutdown::Write);
            let mut replies = vec![];
            // It ends although some requests wait for ever.
            let _ = stream.read_to_end(&mut replies);
        }
        // In the midst of its replies.
        _ => {
            let mut reply = [0; 7];
            stream.read_exact(&mut reply).expect("the first request is answered");
            assert_eq!(&reply, b"+PONG\r\n");
        }
    }
}

fn many_vanish(workers: usize) {
    const CLIENTS: usize = 500;
    let server = server(workers);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        let regular = scope.spawn(move || {
            let mut client = Client::new(server);
            let mut turns = 0;
            while !is_over.load(Ordering::Relaxed) || turns < 10 {
                assert_eq!(client.call("MSET own1 1 own2 2 own3 3"), "OK");
                let expected = "1) \"1\" 2) \"2\" 3) \"3\"";
                assert_eq!(client.call("MGET own1 own2 own3"), expected);
                turns += 1;
            }
        });
        let vanishing: Vec<_> = (0..5)
            .map(|number| {
                scope.spawn(move || {
                    let mut random = Rng::with_seed(number);
                    (0..CLIENTS / 5).for_each(|_| come_and_go(server, &mut random));
                })
            })
            .collect();
        vanishing.into_iter().for_each(|one| one.join().expect("no client panics"));
        is_over.store(true, Ordering::Relaxed);
        regular.join().expect("the regular client is served");
    });
    wait_for_rest(&server, workers, 0);
    // Nobody takes the elements of this list in the name of a client that has gone.
    let mut client = Client::new(&server);
    assert_eq!(client.call("RPUSH wait1 x y"), "(integer) 2");
    assert_eq!(client.call("RPUSH wait2 x y"), "(integer) 2");
    assert_eq!(client.call("LRANGE wait1 0 -1"), "1) \"x\" 2) \"y\"");
    assert_eq!(client.call("LRANGE wait2 0 -1"), "1) \"x\" 2) \"y\"");
}

#[test]
fn many_clients_vanish_from_one_worker() {
    many_vanish(1);
}

#[test]
fn many_clients_vanish_from_four_workers() {
    many_vanish(4);
}

/// The end of the connection arrives with the command that waits, or while its shards are missing.
#[test]
fn a_client_that_ends_with_its_wait_is_forgotten() {
    for workers in [1, 4] {
        let server = server(workers);
        for key in ["a", "b", "c", "d"] {
            let mut stream = TcpStream::connect(server.addresses()[0]).expect("it listens");
            stream.write_all(format!("BLPOP {key} a 0\r\n").as_bytes()).expect("it reads");
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut replies = vec![];
            stream.read_to_end(&mut replies).expect("the server closes the connection");
            assert!(replies.is_empty());
        }
        wait_for_rest(&server, workers, 0);
    }
}

/// The list and its waiting client belong to one worker. Another one, which has borrowed its shard,
/// makes the list.
#[test]
fn a_wait_goes_on_when_its_shard_returns() {
    let server = server(4);
    // A client for each worker, and keys of each.
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&server)).collect();
    for turn in 0..50 {
        for client in &mut clients {
            // Each client waits for one key, which is its own worker's for one of them.
            client.send(&format!("BLPOP {} 0", ["a", "b", "c", "d"][turn % 4]));
        }
        wait_until("all wait", || server.census().blocked == 4);
        let mut pusher = Client::new(&server);
        pusher.call("MULTI");
        for key in ["a", "b", "c", "d"] {
            pusher.call(&format!("RPUSH {key} 1 2 3 4"));
        }
        pusher.call("EXEC");
        clients.iter_mut().for_each(|client| assert!(client.text().starts_with("1) \"")));
        pusher.call("DEL a b c d");
    }
}

/// `BLMOVE` waits for a key of one worker, and writes one of another.
#[test]
fn elements_move_to_keys_of_other_workers() {
    let server = server(4);
    let mut control = Client::new(&server);
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")] {
        for _ in 0..4 {
            let mut client = Client::new(&server);
            client.send(&format!("BLMOVE {from} {to} LEFT RIGHT 0"));
            wait_until("it waits", || server.census().blocked == 1);
            control.call(&format!("RPUSH {from} x"));
            assert_eq!(client.text(), "\"x\"");
            assert_eq!(control.call(&format!("LPOP {to}")), "\"x\"");
        }
    }
}

#[test]
fn the_limit_of_clients_is_reached_and_left_again() {
    let server = server_with(Options { clients_max: 3, workers: 2, ..Options::default() });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&server)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.call("PING"), "PONG"));
    for _ in 0..5 {
        let mut refused = TcpStream::connect(server.addresses()[0]).expect("it listens");
        let mut reply = String::new();
        refused.read_to_string(&mut reply).expect("the server closes the connection");
        assert_eq!(reply, "-ERR max number of clients reached\r\n");
    }
    for _ in 0..3 {
        clients.pop();
        wait_for_rest(&server, 2, clients.len());
        clients.push(Client::new(&server));
        assert_eq!(clients[2].call("PING"), "PONG");
    }
}
