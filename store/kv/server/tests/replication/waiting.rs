// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `WAIT` and `WAITAOF`, and primaries that want replicas for their writes.

use freeport_testbed::wait_until;

use super::{Node, catch_up};

#[test]
fn a_client_waits_for_replicas() {
    let primary = Node::start(2);
    let mut client = primary.client();
    client.call("SET key value");
    assert_eq!(client.call("WAIT 0 0"), "(integer) 0");
    assert_eq!(client.call("WAIT 1 50"), "(integer) 0");
    let replicas = [Node::of(&primary, 1), Node::of(&primary, 2)];
    for number in 0..50 {
        client.send(&format!("SET key{number} {number}"));
        client.send("WAIT 2 30000");
        client.send("PING");
    }
    for _ in 0..50 {
        assert_eq!(client.text(), "OK");
        assert_eq!(client.text(), "(integer) 2");
        assert_eq!(client.text(), "PONG");
    }
    assert_eq!(client.call("WAIT 3 50"), "(integer) 2");
    let [one, two] = replicas;
    assert_eq!(one.digest(), primary.digest());
    drop(two);
    wait_until("the other one has gone", || primary.info("connected_slaves") == "1");
    client.call("SET key other");
    assert_eq!(client.call("WAIT 1 30000"), "(integer) 1");
    assert_eq!(client.call("WAIT 2 100"), "(integer) 1");
    let error = one.client().call("WAIT 1 0");
    assert!(error.starts_with("(error) ERR WAIT cannot be used with replica instances"), "{error}");
}

/// A replica that dies meanwhile does not leave its client waiting beyond its time.
#[test]
fn a_wait_ends_when_its_time_is_over() {
    let primary = Node::start(1);
    let replica = Node::of(&primary, 1);
    catch_up(&replica, &primary);
    drop(replica);
    let mut client = primary.client();
    client.call("SET key value");
    assert_eq!(client.call("WAIT 1 200"), "(integer) 0");
    let mut waiting = primary.client();
    waiting.call("SET key again");
    waiting.send("WAIT 1 0");
    let replica = Node::of(&primary, 1);
    assert_eq!(waiting.text(), "(integer) 1", "a new replica has it");
    assert_eq!(replica.digest(), primary.digest());
}

#[test]
fn nothing_waits_inside_a_transaction() {
    let primary = Node::start(1);
    let mut client = primary.client();
    client.call("MULTI");
    client.call("SET key value");
    client.call("WAIT 5 0");
    client.call("WAITAOF 1 5 0");
    let reply = client.call("EXEC");
    assert!(reply.starts_with("1) OK 2) (integer) 0 3) 1) (integer)"), "{reply}");
}

#[test]
fn a_client_waits_for_the_files_of_replicas() {
    let primary = Node::start(1);
    let mut client = primary.client();
    let replica = Node::of(&primary, 1);
    catch_up(&replica, &primary);
    client.call("SET key value");
    assert_eq!(client.call("WAITAOF 1 1 30000"), "1) (integer) 1 2) (integer) 1");
    assert_eq!(client.call("WAITAOF 0 2 50"), "1) (integer) 1 2) (integer) 1");
}

#[test]
fn writes_are_refused_without_replicas() {
    let primary = Node::start(2);
    let mut client = primary.client();
    client.call("SET key value");
    client.call("CONFIG SET min-replicas-to-write 1");
    let refused = "(error) NOREPLICAS Not enough good replicas to write.";
    assert_eq!(client.call("SET key other"), refused);
    assert_eq!(client.call("GET key"), "\"value\"");
    client.call("MULTI");
    assert_eq!(client.call("SET key other"), refused);
    client.call("DISCARD");
    let replica = Node::of(&primary, 1);
    wait_until("writes are accepted", || client.call("SET key other") == "OK");
    drop(replica);
    wait_until("writes are refused", || client.call("SET key third") == refused);
    client.call("CONFIG SET min-replicas-max-lag 0");
    assert_eq!(client.call("SET key third"), "OK", "there is no rule without a lag");
    client.call("CONFIG SET min-replicas-max-lag 10");
    assert_eq!(client.call("SET key third"), refused);
    client.call("CONFIG SET min-replicas-to-write 0");
    assert_eq!(client.call("SET key third"), "OK");
}
