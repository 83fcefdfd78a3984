// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node serves only while it has its lease.

use std::io::ErrorKind;

use freeport_kv_cluster::Registry;
use freeport_testbed::wait_until;

use super::{LONG, Node, SHORT, Trial};
use crate::client::Client;

const NO_LEASE: &str = "CLUSTERDOWN The lease of this node has run out";

#[test]
fn a_node_without_a_lease_refuses_commands_on_keys() {
    let trial = Trial::new(1, SHORT);
    let node = &trial.nodes[0];
    let mut client = node.client();
    assert_eq!(client.call("SET key value"), "OK");
    let term = trial.shard().term;
    node.cut(true);
    wait_until("the lease runs out", || node.says("GET key", NO_LEASE));
    for line in [
        "EVAL return(1) 0",
        "FUNCTION LOAD code",
        "FUNCTION FLUSH",
        "SPUBLISH channel text",
        "DEBUG RELOAD",
        "FLUSHALL",
    ] {
        assert!(node.says(line, NO_LEASE), "{line}");
    }
    assert!(node.says("FUNCTION KILL", "NOTBUSY"), "it changes nothing");
    assert!(node.says("PING", "PONG"), "it is alive");
    assert!(node.says("CLUSTER MYID", &node.id.to_string()));
    node.cut(false);
    wait_until("the lease is there again", || node.says("GET key", "value"));
    assert_eq!(client.call("GET key"), "\"value\"");
    assert_eq!(trial.shard().primary, node.id);
    assert!(trial.shard().term > term, "a term is one lease");
}

/// Begins a script that does not end. Returns the client that waits for it and two others: workers
/// take clients in turn, so one of these is at the worker of the script.
fn endless_script(node: &Node, script: &str) -> (Client, [Client; 2]) {
    let (mut client, mut others) = (node.client(), [node.client(), node.client()]);
    assert_eq!(client.call("CONFIG SET busy-reply-threshold 1"), "OK");
    for other in &mut others {
        assert_eq!(other.call("PING"), "PONG");
    }
    client.send_arguments(&[b"EVAL", script.as_bytes(), b"0"]);
    wait_until("the script runs", || {
        others.iter_mut().any(|other| other.call("PING").contains("BUSY"))
    });
    (client, others)
}

/// A script that began in time ends without a lease: its reply leaves when the node has one again.
#[test]
fn replies_wait_for_the_lease() {
    let trial = Trial::new(1, SHORT);
    let node = &trial.nodes[0];
    let (mut client, mut others) = endless_script(node, "while true do end");
    node.cut(true);
    let state = || trial.registry.client().read().expect("it is in memory");
    wait_until("the lease runs out", || !state().nodes.contains_key(&node.id));
    assert_eq!(others[0].call("SCRIPT KILL"), "OK");
    // The reply would have left before these.
    for _ in 0..2 {
        wait_until("the script has ended", || node.says("PING", "PONG"));
    }
    client.stream.set_nonblocking(true).expect("a socket");
    let error = client.try_reply().expect_err("the reply waits");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    node.cut(false);
    client.stream.set_nonblocking(false).expect("a socket");
    assert!(client.text().contains("Script killed by user"));
}

#[test]
fn a_primary_that_is_started_again_leads_again() {
    let mut trial = Trial::new(1, LONG);
    assert_eq!(trial.nodes[0].client().call("SET key value"), "OK");
    trial.nodes[0].stop();
    let state = trial.registry.client().read().expect("a state");
    assert!(state.nodes.is_empty(), "a node that ends leaves its lease");
    trial.nodes[0].start();
    wait_until("the node leads", || trial.leads(0));
    assert_eq!(trial.nodes[0].client().call("GET key"), "\"value\"");
    let port = trial.nodes[0].address().port;
    wait_until("the slot map has its new port", || trial.shard().members[0].address.port == port);
}

#[test]
fn slow_calls_of_the_registry_do_not_keep_a_node_from_leading() {
    let trial = Trial::new(1, SHORT);
    let node = &trial.nodes[0];
    let term = trial.shard().term;
    node.cut(true);
    wait_until("the lease runs out", || node.says("GET key", NO_LEASE));
    node.slow_down();
    wait_until("the node leads", || trial.leads(0));
    assert!(trial.shard().term > term);
}

/// A replica whose workers are busy cannot seal the term. It does not stop the election for ever.
#[test]
fn a_busy_replica_does_not_stop_an_election() {
    let trial = Trial::new(3, SHORT);
    let (primary, busy) = (&trial.nodes[0], &trial.nodes[1]);
    let script = "#!lua flags=no-writes\nwhile true do end";
    let (mut client, mut others) = endless_script(busy, script);
    primary.cut(true);
    wait_until("the other replica leads", || trial.leads(2));
    wait_until("the script is stopped", || others[0].call("SCRIPT KILL") == "OK");
    assert!(client.text().contains("Script killed by user"));
    wait_until("the replica follows", || trial.is_in_step(1));
}
