// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokens, users, and the clients of a server.

use freeport_kv_protocol::batch::{Hello, Operation, Status};
use freeport_kv_server::Options;
use freeport_testbed::wait_until;

use super::peer::{DONE, Peer, value};
use super::{count, options, server};
use crate::client::{Client, server_with};

const NO_SESSION: &str = "there is no session with this token: say hello";

/// Sends a packet, whose answer is an error that is not longer.
#[track_caller]
fn refused(peer: &mut Peer, operations: &[Operation<'_>]) -> String {
    let packet = peer.packet(operations);
    peer.socket.send(&packet).expect("the system takes it");
    let mut buffer = [0; 2_000];
    let length = peer.socket.recv(&mut buffer).expect("an answer");
    assert!(length <= packet.len(), "{length} bytes for {}", packet.len());
    String::from_utf8_lossy(&buffer[16..length]).into_owned()
}

#[test]
fn a_token_is_of_one_address() {
    let (server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    assert_eq!(peer.run(&[Operation::put(b"a", b"1")]).replies(), [DONE]);
    let long = [Operation::put(b"a", b"2"), Operation::put(b"b", &[7; 50])];
    let mut stranger = Peer::new(address);
    assert_eq!(refused(&mut stranger, &long), NO_SESSION, "without a token");
    stranger.token = peer.token;
    assert_eq!(refused(&mut stranger, &long), NO_SESSION, "with that of another address");
    assert_eq!(refused(&mut stranger, &[]), "no token", "the text has to be short");
    let right = peer.token;
    peer.token = right.map(|token| token ^ 1);
    assert_eq!(refused(&mut peer, &long), NO_SESSION, "with a wrong one");
    assert_eq!(count(&server, "udp_datagrams_refused"), 4);
    peer.token = right;
    assert_eq!(peer.run(&[Operation::get(b"a")]).replies(), [value("1")]);
}

#[test]
fn a_hello_has_no_effect_before_its_token_is_used() {
    let (_server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    assert_eq!(peer.run(&[Operation::put(b"a", b"zero")]).replies(), [DONE]);
    let first = peer.token;
    peer.hello(&Hello { database: 1, ..Hello::default() }).expect("it is right");
    let second = std::mem::replace(&mut peer.token, first);
    assert_eq!(peer.run(&[Operation::get(b"a")]).replies(), [value("zero")]);
    peer.token = second;
    assert_eq!(peer.run(&[Operation::get(b"a")]).replies()[0].0, Status::NotFound);
    peer.token = first;
    assert_eq!(refused(&mut peer, &[Operation::get(&[b'a'; 50])]), NO_SESSION);
    // A repeated hello gets the same token.
    peer.hello(&Hello { database: 1, ..Hello::default() }).expect("it is right");
    assert_eq!(peer.token, second);
}

#[test]
fn a_hello_is_alone_and_without_a_token() {
    let (_server, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    let token = peer.token;
    let hello = Hello::default().value();
    let operation = Operation::hello(b"", &hello);
    assert_eq!(peer.run(&[operation]).replies()[0].0, Status::Failed);
    peer.token = None;
    assert_eq!(refused(&mut peer, &[operation, put(&[1; 50])]), NO_SESSION);
    peer.token = token;
    assert_eq!(peer.run(&[put(b"1")]).replies(), [DONE]);
}

fn put(value: &[u8]) -> Operation<'_> {
    Operation::put(b"", value)
}

#[test]
fn a_hello_names_a_user() {
    let (server, address) = server(1);
    let mut client = Client::new(&server);
    client.check("ACL SETUSER ann on >secret ~* +@all", "+OK\r\n");
    client.check("ACL SETUSER default resetpass >other", "+OK\r\n");
    let mut peer = Peer::new(address);
    let right = Hello { user: b"ann", password: b"secret", ..Hello::default() };
    for wrong in
        [Hello { password: b"wrong", ..right }, Hello { user: b"bob", ..right }, Hello::default()]
    {
        let (status, text) = peer.hello(&wrong).expect_err("the password is wrong");
        assert_eq!(status, Status::Denied);
        let text = text.expect("a reason");
        assert!(b"WRONGPASS invalid".starts_with(&text[..text.len().min(9)]), "{text:?}");
    }
    let (status, _) = peer.hello(&Hello { database: 16, ..right }).expect_err("16 databases");
    assert_eq!(status, Status::Failed);
    let log = client.call("ACL LOG");
    assert!(log.contains("hello") && log.contains("bob"), "{log}");
    peer.hello(&right).expect("the password is right");
    assert_eq!(peer.run(&[Operation::put(b"a", b"1")]).replies(), [DONE]);
    client.check("ACL DELUSER ann", ":1\r\n");
    assert_eq!(refused(&mut peer, &[Operation::get(&[b'a'; 50])]), NO_SESSION);
}

#[test]
fn sessions_are_clients() {
    let server = server_with(Options { clients_max: 2, ..options(1) });
    let address = server.udp_addresses()[0];
    let mut client = Client::new(&server);
    let mut peer = Peer::connected(address, 5);
    assert_eq!(peer.run(&[Operation::put(b"a", b"1")]).replies(), [DONE]);
    let local = peer.socket.local_addr().expect("it is bound");
    let list = client.ask("CLIENT LIST");
    let line = list.lines().find(|line| line.contains(&format!(" addr={local} ")));
    let line = line.unwrap_or_else(|| panic!("{local} is in {list}"));
    assert!(line.contains(" db=5 ") && line.contains(" user=default "), "{line}");
    let mut other = Peer::new(address);
    let (status, text) = other.hello(&Hello::default()).expect_err("there are two clients");
    assert_eq!((status, text.as_deref()), (Status::Failed, Some(&b"max n"[..])));
    client.check(&format!("CLIENT KILL ADDR {local}"), ":1\r\n");
    wait_until("the session has ended", || {
        !client.ask("CLIENT LIST").contains(&format!(" addr={local} "))
    });
    assert_eq!(refused(&mut peer, &[Operation::get(&[b'a'; 50])]), NO_SESSION);
    other.hello(&Hello::default()).expect("there is room");
    assert_eq!(other.run(&[Operation::put(b"a", b"2")]).replies(), [DONE]);
}

#[test]
fn a_token_of_an_earlier_run_is_refused() {
    let (first, address) = server(1);
    let mut peer = Peer::connected(address, 0);
    assert_eq!(peer.run(&[Operation::put(b"a", b"1")]).replies(), [DONE]);
    drop(first);
    let _second = server_with(Options { batch_udp: vec![address], ..options(1) });
    assert_eq!(refused(&mut peer, &[Operation::get(&[b'a'; 50])]), NO_SESSION);
}
