// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients are sent to the node that has their keys.

use freeport_testbed::wait::wait_until;

use super::nodes::Nodes;
use crate::client::Client;

// Slots: a 15495, b 3300, c 7365, {a}x 15495.
const LOW: &str = "0-8191";
const HIGH: &str = "8192-16383";
const CROSS: &str = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";

fn two(workers: usize) -> (Nodes, Client, Client) {
    let mut nodes = Nodes::start(2, workers);
    nodes.set(&[(LOW, &[0]), (HIGH, &[1])]);
    let [low, high] = [0, 1].map(|number| nodes.all[number].client());
    (nodes, low, high)
}

fn moved(slot: u16, port: u16) -> String {
    format!("-MOVED {slot} 127.0.0.1:{port}\r\n")
}

#[test]
fn commands_are_executed_where_their_slot_is() {
    for workers in [1, 3] {
        let (nodes, mut low, mut high) = two(workers);
        low.check("SET b 1", "+OK\r\n");
        high.check("SET a 1", "+OK\r\n");
        low.check("GET a", &moved(15_495, nodes.all[1].port()));
        high.check("INCR b", &moved(3_300, nodes.all[0].port()));
        low.check("MSET b 1 c 2", CROSS);
        high.check("MSET a 1 {a}x 2", "+OK\r\n");
        low.check("MGET a {a}x", &moved(15_495, nodes.all[1].port()));
        high.check("EVAL return{KEYS[1]} 1 a", "*1\r\n$1\r\na\r\n");
        low.check("EVAL return{KEYS[1]} 1 a", &moved(15_495, nodes.all[1].port()));
        low.check("EVAL return{KEYS[1]} 2 a b", CROSS);
        // Without keys, any node executes it.
        high.check("DBSIZE", ":2\r\n");
        low.check("EVAL return{7} 0", "*1\r\n:7\r\n");
        low.check("OBJECT ENCODING a", &moved(15_495, nodes.all[1].port()));
    }
}

#[test]
fn requests_of_a_pipeline_are_sent_elsewhere_one_by_one() {
    let (nodes, mut low, _high) = two(4);
    let keys: Vec<String> = (0..200).map(|number| format!("key{number}")).collect();
    keys.iter().for_each(|key| low.send(&format!("SET {key} {key}")));
    let slot = |key: &str| freeport_kv_protocol::slots::slot_of(key.as_bytes());
    for key in &keys {
        let expected = match slot(key) {
            slot if slot < 8_192 => "+OK\r\n".to_owned(),
            slot => moved(slot, nodes.all[1].port()),
        };
        assert_eq!(low.raw(), expected, "{key}");
    }
}

#[test]
fn a_slot_without_a_shard_is_not_served() {
    let mut nodes = Nodes::start(1, 1);
    let mut client = nodes.all[0].client();
    client.check("GET a", "-CLUSTERDOWN Hash slot not served\r\n");
    nodes.set(&[("0-100", &[0])]);
    client.check("GET a", "-CLUSTERDOWN Hash slot not served\r\n");
    client.check("PING", "+PONG\r\n");
}

#[test]
fn transactions_have_one_slot() {
    let (nodes, mut low, _high) = two(2);
    let elsewhere = moved(15_495, nodes.all[1].port());
    for (line, expected) in [
        ("MULTI", "+OK\r\n"),
        ("SET b 1", "+QUEUED\r\n"),
        ("SET c 1", "+QUEUED\r\n"),
        ("EXEC", CROSS),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("MULTI", "+OK\r\n"),
        ("SET a 1", &elsewhere),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
        ("WATCH a", &elsewhere),
        ("WATCH b", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("SET b 2", "+QUEUED\r\n"),
        ("PING", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n+PONG\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
    ] {
        low.check(line, expected);
    }
}

#[test]
fn a_transaction_whose_slot_has_moved_is_sent_there() {
    let (mut nodes, mut low, _high) = two(1);
    low.check("MULTI", "+OK\r\n");
    low.check("SET b 1", "+QUEUED\r\n");
    nodes.set(&[("0-99", &[0]), ("100-16383", &[1])]);
    low.check("EXEC", &moved(3_300, nodes.all[1].port()));
    low.check("EXEC", "-ERR EXEC without MULTI\r\n");
}

#[test]
fn scripts_use_keys_of_one_slot() {
    let (_nodes, mut low, _high) = two(2);
    let mut check = |script: &str, expected: &str| {
        low.send_arguments(&[b"EVAL", script.as_bytes(), b"0"]);
        let reply = low.raw();
        assert!(reply.starts_with(expected), "{script}: {reply}");
    };
    let elsewhere = "-ERR Script attempted to access a non local key in a cluster node";
    check("return redis.call('set','b',1)", "+OK");
    check("return redis.call('get','a')", elsewhere);
    check("return redis.call('mget','b','c')", elsewhere);
    check("redis.call('get','b') return redis.call('get','{b}x')", "$-1");
    let crossed = "-ERR Script attempted to access keys that do not hash to the same slot";
    check("redis.call('get','b') return redis.call('get','c')", crossed);
    check("return redis.call('get','c')", "$-1");
    check("return redis.call('select',1)", "-ERR SELECT is not allowed in cluster mode");
    // Scripts of a transaction are one unit with it.
    low.check("MULTI", "+OK\r\n");
    low.check("SET b 1", "+QUEUED\r\n");
    low.send_arguments(&[b"EVAL", b"return redis.call('get','c')", b"0"]);
    assert_eq!(low.raw(), "+QUEUED\r\n");
    let reply = low.ask("EXEC");
    assert!(reply.starts_with(&format!("*2\r\n+OK\r\n{crossed}")), "{reply}");
}

#[test]
fn there_is_one_database() {
    let (_nodes, mut low, _high) = two(1);
    low.check("SELECT 0", "+OK\r\n");
    low.check("SELECT 1", "-ERR SELECT is not allowed in cluster mode\r\n");
    low.check("MOVE b 1", "-ERR MOVE is not allowed in cluster mode\r\n");
    low.check("SWAPDB 0 1", "-ERR SWAPDB is not allowed in cluster mode\r\n");
    let copy = "-ERR Copying to another database is not allowed in cluster mode\r\n";
    low.check("COPY b {b}x DB 1", copy);
    low.check("COPY b {b}x DB 0", ":0\r\n");
    low.check("COPY b {b}x REPLACE DB 2", copy);
    low.check("SORT b BY x*", "-ERR BY option of SORT denied in Cluster mode.\r\n");
    low.check("SORT_RO b GET #", "-ERR GET option of SORT denied in Cluster mode.\r\n");
    low.check("SORT b BY nosort", "*0\r\n");
}

#[test]
fn a_client_that_waits_for_a_key_follows_its_slot() {
    for workers in [1, 2] {
        let (mut nodes, mut low, mut other) = two(workers);
        low.send("BLPOP b 0");
        let mut observer = nodes.all[0].client();
        wait_until("the client waits", || {
            observer.call("INFO clients").contains("blocked_clients:1")
        });
        nodes.set(&[("0-99", &[0]), ("100-16383", &[1])]);
        assert_eq!(low.raw(), moved(3_300, nodes.all[1].port()));
        other.check("LPUSH b 1", ":1\r\n");
        low.check("PING", "+PONG\r\n");
    }
}

#[test]
fn sharded_channels_are_where_their_slot_is() {
    let (mut nodes, mut low, mut high) = two(2);
    low.check("SSUBSCRIBE a", &moved(15_495, nodes.all[1].port()));
    low.check("SSUBSCRIBE b c", CROSS);
    low.check("SPUBLISH a x", &moved(15_495, nodes.all[1].port()));
    low.check("SSUBSCRIBE b", "*3\r\n$10\r\nssubscribe\r\n$1\r\nb\r\n:1\r\n");
    low.check("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    high.check("SPUBLISH b x", &moved(3_300, nodes.all[0].port()));
    let mut publisher = nodes.all[0].client();
    publisher.check("SPUBLISH b x", ":1\r\n");
    assert_eq!(low.raw(), "*3\r\n$8\r\nsmessage\r\n$1\r\nb\r\n$1\r\nx\r\n");
    nodes.set(&[("0-99", &[0]), ("100-16383", &[1])]);
    assert_eq!(low.raw(), "*3\r\n$12\r\nsunsubscribe\r\n$1\r\nb\r\n:0\r\n");
    publisher.check("PUBLISH a x", ":1\r\n");
    publisher.check("PUBSUB SHARDCHANNELS", "*0\r\n");
}

#[test]
fn replicas_read_for_clients_that_want_it() {
    let mut nodes = Nodes::start(2, 2);
    nodes.set(&[("0-16383", &[0, 1])]);
    let mut client = nodes.all[1].client();
    let elsewhere = moved(3_300, nodes.all[0].port());
    client.check("GET b", &elsewhere);
    client.check("READONLY", "+OK\r\n");
    client.check("GET b", "$-1\r\n");
    client.check("SET b 1", &elsewhere);
    client.check("MULTI", "+OK\r\n");
    client.check("GET b", "+QUEUED\r\n");
    client.check("EXEC", "*1\r\n$-1\r\n");
    client.check("SSUBSCRIBE b", &elsewhere);
    assert!(client.ask("CLIENT INFO").contains(" flags=r "), "the flag is shown");
    client.check("READWRITE", "+OK\r\n");
    client.check("GET b", &elsewhere);
    client.check("READONLY", "+OK\r\n");
    client.check("RESET", "+RESET\r\n");
    client.check("GET b", &elsewhere);
}
