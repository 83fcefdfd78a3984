// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers whose role changes.

use std::io::Write;

use freeport_kv_protocol::replication::VERSION;
use freeport_kv_server::Options;
use freeport_testbed::wait_until;

use super::{Node, catch_up, follow};
use crate::client::request;
use crate::crash::process::address;

#[test]
fn a_replica_becomes_a_primary_and_is_followed() {
    for workers in [1, 2] {
        let one = Node::start(workers);
        let two = Node::of(&one, workers);
        let three = Node::of(&one, 1);
        let mut client = one.client();
        for number in 0..100 {
            client.call(&format!("INCRBY key{} {number}", number % 10));
        }
        catch_up(&two, &one);
        catch_up(&three, &one);
        let mut promoted = two.client();
        assert_eq!(promoted.call("REPLICAOF NO ONE"), "OK");
        assert_eq!(two.info("role"), "master");
        assert_eq!(promoted.call("SET key new"), "OK");
        // The others have no change that the new primary lacks, so they continue.
        let syncs = three.full_syncs();
        follow(&three, &two);
        follow(&one, &two);
        for replica in [&three, &one] {
            catch_up(replica, &two);
            assert_eq!(replica.digest(), two.digest());
        }
        assert_eq!((three.full_syncs(), one.full_syncs()), (syncs, "0".into()));
        assert_eq!(promoted.call("SET key newer"), "OK");
        assert_eq!(promoted.call("WAIT 2 30000"), "(integer) 2");
    }
}

/// A primary with changes that its successor does not have loses them when it follows it.
#[test]
fn changes_that_only_the_old_primary_has_are_lost() {
    let one = Node::start(1);
    let two = Node::of(&one, 1);
    one.client().call("SET key value");
    catch_up(&two, &one);
    two.client().call("REPLICAOF NO ONE");
    one.client().call("SET key only-here");
    two.client().call("SET other 1");
    follow(&one, &two);
    catch_up(&one, &two);
    assert_eq!(one.digest(), two.digest());
    assert_eq!(one.client().call("GET key"), "\"value\"");
    assert_eq!(one.full_syncs(), "1");
}

/// Clients that wait for keys get an error when their server becomes a replica.
#[test]
fn waits_end_when_the_server_becomes_a_replica() {
    let (one, two) = (Node::start(2), Node::start(1));
    let mut clients: Vec<_> = (0..4).map(|_| one.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("BLPOP list{number} 0"));
    }
    wait_until("they wait", || one.server.census().blocked == 4);
    follow(&one, &two);
    for client in &mut clients {
        let reply = client.text();
        assert!(reply.starts_with("(error) UNBLOCKED"), "{reply}");
    }
}

#[test]
fn a_server_follows_from_its_start() {
    let primary = Node::start(1);
    primary.client().call("SET key value");
    let mut options = Options::default();
    options.replication.follows = Some(address(primary.address()));
    let replica = Node::with(options.clone());
    catch_up(&replica, &primary);
    assert_eq!(replica.client().call("GET key"), "\"value\"");
    let role = replica.client().call("ROLE");
    assert!(role.starts_with("1) \"slave\" 2) \"127.0.0.1\""), "{role}");
    let role = primary.client().call("ROLE");
    assert!(role.starts_with("1) \"master\"") && role.contains("127.0.0.1"), "{role}");
    let replica = Node::again(replica.stop(), options);
    catch_up(&replica, &primary);
    assert_eq!(replica.full_syncs(), "0");
}

/// A replica whose own folder is missing, or that is asked to be followed, says so.
#[test]
fn what_cannot_be_is_refused() {
    let primary = Node::start(1);
    let replica = Node::of(&primary, 1);
    let chained = Node::of(&replica, 1);
    wait_until("it is refused", || {
        chained.client().ask("INFO replication").contains("is a replica itself")
    });
    let without = crate::client::server(1);
    let reply = crate::client::Client::new(&without).call("REPLICAOF localhost 1");
    assert!(reply.contains("--dir"), "{reply}");
    let mut client = primary.client();
    assert_eq!(client.call("REPLICAOF localhost 0"), "(error) ERR Invalid master port");
    for line in ["PSYNC ? -1", "SYNC", "REPLCONF capa eof"] {
        assert!(client.call(line).contains("replicas of Redis cannot follow"), "{line}");
    }
    let reply = client.call("KV.FOLLOW 999 - 1 0 0");
    assert!(reply.contains("different versions"), "{reply}");
    let version = VERSION.to_string();
    let words = ["KV.FOLLOW", &version, "-", "1", "0", "0"].map(str::as_bytes);
    let both = [request(&[b"SET", b"key", b"value"]), request(&words)].concat();
    client.stream.write_all(&both).expect("the server reads");
    assert_eq!(client.text(), "OK");
    let reply = client.text();
    assert!(reply.contains("send it alone"), "{reply}");
    assert_eq!(client.call("PING"), "PONG", "the connection is one of a client still");
}
