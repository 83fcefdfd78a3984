// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How replicas get to where their primary is: from its snapshot, or from where their own log ends.

use std::sync::Arc;

use freeport_kv_journal::faulty::FaultyDisk;
use freeport_kv_server::{Options, PersistenceOptions, Policy};
use freeport_testbed::wait_until;

use super::{Node, catch_up, follow};
use crate::client::server_with;

/// Writes values of several kinds, with functions.
fn fill(node: &Node, keys: usize) {
    let mut client = node.client();
    for number in 0..keys {
        client.send(&format!("SET key{number} {number}"));
        client.send(&format!("RPUSH list{} {number}", number % 7));
    }
    (0..2 * keys).for_each(|_| drop(client.reply()));
    let library = b"#!lua name=one\nredis.register_function{function_name='f', \
                    callback=function() return 7 end, flags={'no-writes'}}";
    client.send_arguments(&[b"FUNCTION", b"LOAD", b"REPLACE", library]);
    client.text();
}

#[test]
fn a_new_replica_gets_everything() {
    for saves in [false, true] {
        let primary = Node::start(2);
        fill(&primary, 500);
        if saves {
            assert_eq!(primary.client().call("SAVE"), "OK");
            fill(&primary, 600);
        }
        let replica = Node::start(1);
        replica.client().call("SET other 1");
        let mut watching = replica.client();
        watching.call("WATCH other");
        follow(&replica, &primary);
        catch_up(&replica, &primary);
        assert_eq!(replica.digest(), primary.digest());
        assert_eq!(replica.client().call("FCALL f 0"), "(integer) 7");
        assert_eq!(replica.full_syncs(), "1");
        assert_eq!(primary.info("sync_full"), "1");
        watching.call("MULTI");
        watching.call("GET other");
        assert_eq!(watching.call("EXEC"), "(nil)");
        // The installed state is that after a restart.
        let digest = primary.digest();
        let replica = replica.restart(2);
        assert_eq!(replica.digest(), digest);
        assert_eq!(replica.info("role"), "master");
        assert_eq!(replica.client().call("FCALL f 0"), "(integer) 7");
    }
}

#[test]
fn a_replica_continues_where_its_log_ends() {
    let primary = Node::start(1);
    let mut replica = Node::of(&primary, 1);
    fill(&primary, 100);
    for turn in 0..3 {
        catch_up(&replica, &primary);
        replica = replica.restart(1 + turn % 2);
        primary.client().call(&format!("SET turn {turn}"));
        follow(&replica, &primary);
        catch_up(&replica, &primary);
        assert_eq!(replica.digest(), primary.digest());
        assert_eq!(replica.full_syncs(), "0", "it continues");
    }
    assert_eq!(primary.info("sync_partial_ok"), "3");
}

/// A snapshot removes the begin of the primary's log, while a replica reads it.
#[test]
fn snapshots_do_not_disturb_replicas() {
    let primary = Node::start(2);
    let replica = Node::of(&primary, 1);
    catch_up(&replica, &primary);
    for _ in 0..5 {
        fill(&primary, 200);
        assert_eq!(primary.client().call("SAVE"), "OK");
        assert_eq!(replica.client().call("SAVE"), "OK");
    }
    catch_up(&replica, &primary);
    assert_eq!(replica.digest(), primary.digest());
    assert_eq!(replica.full_syncs(), "1");
    let digest = primary.digest();
    assert_eq!(replica.restart(2).digest(), digest);
}

/// Replies of a replica that are held when it takes a snapshot leave nevertheless.
#[test]
fn clients_of_a_replica_are_answered_after_a_snapshot() {
    let primary = Node::start(1);
    fill(&primary, 10);
    let (folder, disk) = (tempfile::tempdir().expect("a folder"), Arc::new(FaultyDisk::default()));
    let persistence = PersistenceOptions {
        policy: Policy::Always,
        disk: disk.clone(),
        ..PersistenceOptions::new(folder.path().into())
    };
    let options = Options { workers: 2, persistence: Some(persistence), ..Options::default() };
    let replica = Node { server: server_with(options), folder };
    fill(&replica, 3_000);
    let (mut client, mut operator) = (replica.client(), replica.client());
    disk.faults().hold_sync();
    client.send("SET key value");
    wait_until("the reply waits for the disk", || disk.faults().is_sync_held());
    let address = primary.address();
    // The reply to this waits as well.
    operator.send(&format!("REPLICAOF {} {}", address.ip(), address.port()));
    let replies = [client.try_reply(), operator.try_reply()];
    assert!(disk.faults().is_sync_held(), "the old log is still not safe");
    disk.faults().release_sync();
    for reply in replies {
        assert_eq!(reply.expect("it does not wait for the old log").to_string(), "OK");
    }
    catch_up(&replica, &primary);
    assert_eq!(client.call("GET key0"), "\"0\"");
    assert_eq!(replica.digest(), primary.digest());
}

/// A server follows another one, and later a third, whose log is another one.
#[test]
fn another_primary_is_followed_anew() {
    let (one, two) = (Node::start(1), Node::start(1));
    fill(&one, 50);
    fill(&two, 80);
    let replica = Node::of(&one, 1);
    catch_up(&replica, &one);
    follow(&replica, &two);
    wait_until("the new primary knows it", || two.info("connected_slaves") == "1");
    catch_up(&replica, &two);
    assert_eq!(replica.digest(), two.digest());
    assert_eq!(replica.full_syncs(), "2");
    wait_until("the old primary knows it", || one.info("connected_slaves") == "0");
}

#[test]
fn a_replica_logs_in() {
    let primary = Node::start(1);
    let mut client = primary.client();
    client.call("ACL SETUSER other on >secret +kv.follow");
    client.call("CONFIG SET requirepass word");
    client.call("AUTH word");
    client.call("SET key value");
    let replica = Node::of(&primary, 1);
    wait_until("it is refused", || {
        replica.client().ask("INFO replication").contains("master_link_failure:NOAUTH")
    });
    assert_eq!(replica.info("master_link_status"), "down");
    let mut operator = replica.client();
    operator.call("CONFIG SET masterauth word");
    wait_until("it has logged in", || replica.info("master_link_status") == "up");
    operator.call("CONFIG SET masterauth secret masteruser other");
    let replica = replica.restart(1);
    let mut operator = replica.client();
    operator.call("CONFIG SET masterauth secret masteruser other");
    follow(&replica, &primary);
    wait_until("it has logged in", || replica.info("master_link_status") == "up");
    assert_eq!(replica.client().call("GET key"), "\"value\"");
}
