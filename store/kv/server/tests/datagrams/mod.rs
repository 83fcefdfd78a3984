// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The batched protocol over UDP.

mod garbage;
mod model;
mod peer;
mod persistence;
mod sessions;
mod sizes;

use std::net::SocketAddr;

use freeport_kv_protocol::batch::Operation;
use freeport_kv_server::{Options, Server};

use crate::client::{Client, server_with};
use peer::{DONE, NOT_FOUND, Peer, value};

/// Options of a server that receives datagrams, at a free port.
fn options(workers: usize) -> Options {
    let address = "127.0.0.1:0".parse().expect("it is an address");
    Options { batch_udp: vec![address], workers, ..Options::default() }
}

fn server(workers: usize) -> (Server, SocketAddr) {
    let server = server_with(options(workers));
    let address = server.udp_addresses()[0];
    (server, address)
}

/// A count of `INFO stats`.
#[track_caller]
fn count(server: &Server, name: &str) -> u64 {
    let text = Client::new(server).ask("INFO stats");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is in {text}")).parse().expect("a number")
}

#[test]
fn clients_of_both_protocols_see_the_same_keys() {
    let (server, address) = server(1);
    let (mut peer, mut client) = (Peer::connected(address, 3), Client::new(&server));
    let replies = peer.run(&[
        Operation::put(b"a", b"one"),
        Operation::get(b"a"),
        Operation::get(b"b"),
        Operation::delete(b"b"),
    ]);
    assert_eq!(replies.replies(), [DONE, value("one"), NOT_FOUND, NOT_FOUND]);
    client.check("SELECT 3", "+OK\r\n");
    client.check("GET a", "$3\r\none\r\n");
    client.check("SET b two", "+OK\r\n");
    let replies = peer.run(&[Operation::get(b"b"), Operation::delete(b"a")]).replies();
    assert_eq!(replies, [value("two"), DONE]);
    client.check("EXISTS a", ":0\r\n");
    assert_eq!(count(&server, "udp_datagrams_received"), 3);
    assert_eq!(count(&server, "udp_datagrams_sent"), 3);
    assert_eq!(count(&server, "udp_datagrams_dropped"), 0);
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    assert_eq!(count(&server, "udp_datagrams_received"), 0);
    assert_eq!(count(&server, "udp_sessions"), 1);
}

/// A transaction that watches the key fails, as after a command.
#[test]
fn datagrams_count_as_changes() {
    let (server, address) = server(1);
    let (mut peer, mut client) = (Peer::connected(address, 0), Client::new(&server));
    client.check("WATCH a", "+OK\r\n");
    assert_eq!(peer.run(&[Operation::put(b"a", b"1")]).replies(), [DONE]);
    client.check("MULTI", "+OK\r\n");
    client.check("SET a 2", "+QUEUED\r\n");
    client.check("EXEC", "*-1\r\n");
    client.check("GET a", "$1\r\n1\r\n");
}

#[test]
fn datagrams_wait_for_the_end_of_a_pause() {
    let (server, address) = server(1);
    let (mut peer, mut client) = (Peer::connected(address, 0), Client::new(&server));
    client.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
    let packet = peer.packet(&[Operation::put(b"a", b"1")]);
    peer.socket.send(&packet).expect("the system takes it");
    // It has arrived before these commands are executed.
    client.check("GET a", "$-1\r\n");
    client.check("GET a", "$-1\r\n");
    client.check("CLIENT UNPAUSE", "+OK\r\n");
    assert_eq!(peer.insist(&[Operation::get(b"a")]), [value("1")]);
}

/// Two sockets cannot have one address, also if several workers share it.
#[test]
fn an_address_in_use_is_an_error() {
    let (_server, address) = server(1);
    for workers in [1, 2] {
        let options = Options { batch_udp: vec![address], ..options(workers) };
        let error = Server::start(options).expect_err("the address is in use");
        assert!(error.to_string().contains(&format!("UDP {address}")), "{error}");
    }
}
