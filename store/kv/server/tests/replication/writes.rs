// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica refuses what would change keys, and serves reads.

use freeport_kv_protocol::batch::{Operation, Status};
use freeport_kv_server::Options;
use freeport_testbed::wait_until;

use super::{Node, catch_up, follow, with_folder};
use crate::batched::client::{WAYS, served_with};

const READ_ONLY: &str = "(error) READONLY You can't write against a read only replica.";

#[test]
fn a_replica_refuses_writes() {
    for workers in [1, 3] {
        let primary = Node::start(1);
        primary.client().call("SET key value");
        let replica = Node::of(&primary, workers);
        catch_up(&replica, &primary);
        let mut client = replica.client();
        for line in ["SET key 1", "DEL key", "LPUSH list 1", "MSET a 1 b 2", "FLUSHALL"] {
            assert_eq!(client.call(line), READ_ONLY, "{line}");
        }
        client.call("MULTI");
        assert_eq!(client.call("SET key 1"), READ_ONLY);
        assert!(client.call("EXEC").starts_with("(error) EXECABORT"));
        for line in ["EVAL return(redis.call('SET','key','1')) 0", "BLPOP list 0"] {
            assert!(client.call(line).contains("READONLY"), "{line}");
        }
        let library = b"#!lua name=one\nredis.register_function('f', function() return 1 end)";
        client.send_arguments(&[b"FUNCTION", b"LOAD", library]);
        assert_eq!(client.text(), READ_ONLY);
        assert_eq!(client.call("GET key"), "\"value\"");
        assert_eq!(client.call("EVAL return(redis.call('GET','key')) 0"), "\"value\"");
        assert_eq!(replica.digest(), primary.digest());
    }
}

#[test]
fn operations_of_the_batched_protocol_are_refused_too() {
    let primary = Node::start(1);
    primary.client().call("SET key value");
    for workers in [1, 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = Options { workers, ..Options::default() };
        let replica = served_with(with_folder(folder.path(), options));
        let address = primary.address();
        let line = format!("REPLICAOF {} {}", address.ip(), address.port());
        assert_eq!(replica.resp().call(&line), "OK");
        wait_until("it has the key", || replica.resp().call("GET key") == "\"value\"");
        for way in WAYS {
            let mut client = replica.client(way);
            let mut replies = client.run(&[
                Operation::get(b"key"),
                Operation::put(b"key", b"other"),
                Operation::delete(b"key"),
                Operation::get(b"key"),
            ]);
            let value = (Status::Done, Some(b"value".to_vec()));
            assert_eq!((replies.pop(), replies.swap_remove(0)), (Some(value.clone()), value));
            for (status, text) in replies {
                let text = String::from_utf8(text.unwrap_or_default()).expect("a text");
                assert!(status == Status::Unavailable && text.starts_with("READONLY"), "{text}");
            }
        }
    }
}

/// Reads hide keys whose time has passed; only the primary removes them.
#[test]
fn a_replica_does_not_expire_keys_by_itself() {
    let primary = Node::start(1);
    let mut client = primary.client();
    client.call("DEBUG SET-ACTIVE-EXPIRE 0");
    client.call("SET short 1 PX 1");
    client.call("SET long 1 PX 100000");
    let replica = Node::of(&primary, 2);
    catch_up(&replica, &primary);
    let mut reader = replica.client();
    wait_until("the key is hidden", || reader.call("EXISTS short") == "(integer) 0");
    assert_eq!(reader.call("EXISTS long"), "(integer) 1");
    let offset = replica.info("slave_repl_offset");
    assert_eq!(reader.call("GET short"), "(nil)");
    assert_eq!(reader.call("DBSIZE"), "(integer) 2", "the key is still there");
    assert_eq!(replica.info("slave_repl_offset"), offset);
    client.call("DEBUG SET-ACTIVE-EXPIRE 1");
    wait_until("the primary has removed it", || reader.call("DBSIZE") == "(integer) 1");
}

/// A primary that evicts has replicas with the same keys.
#[test]
fn evictions_are_those_of_the_primary() {
    let options = || Options { memory_bytes: 4 << 20, workers: 1, ..Options::default() };
    let primary = Node::with(options());
    let mut client = primary.client();
    client.call("CONFIG SET maxmemory-policy allkeys-lru");
    let replica = Node::with(options());
    replica.client().call("CONFIG SET maxmemory-policy allkeys-random");
    follow(&replica, &primary);
    let value = "v".repeat(1_000);
    for number in 0..8_000 {
        client.call(&format!("SET key{number} {value}"));
    }
    assert_ne!(primary.info("evicted_keys"), "0");
    // The primary may evict some more at any time.
    wait_until("both are equal", || replica.digest() == primary.digest());
    assert_eq!(replica.info("evicted_keys"), "0");
}

/// Clients of a replica see what the primary's log does there: events, waits, copies that become
/// invalid, and functions.
#[test]
fn clients_of_a_replica_see_changes() {
    let primary = Node::start(1);
    let replica = Node::of(&primary, 2);
    let mut writer = primary.client();
    writer.call("XADD stream 1-1 field value");
    catch_up(&replica, &primary);
    let mut events = replica.client();
    assert_eq!(events.call("CONFIG SET notify-keyspace-events KEA"), "OK");
    events.call("PSUBSCRIBE __keyevent*");
    let mut waiting = replica.client();
    waiting.send("XREAD BLOCK 0 STREAMS stream $");
    let mut tracking = replica.client();
    tracking.call("HELLO 3");
    tracking.call("CLIENT TRACKING ON");
    tracking.call("GET key");
    let mut watching = replica.client();
    watching.call("WATCH key");
    wait_until("it waits", || replica.server.census().blocked == 1);
    writer.call("SET key value");
    writer.call("XADD stream 1-2 field value");
    assert!(events.text().contains("__keyevent@0__:set"));
    assert!(waiting.text().contains("1-2"));
    assert!(tracking.text().contains("invalidate"));
    watching.call("MULTI");
    watching.call("GET key");
    assert_eq!(watching.call("EXEC"), "(nil)");
    let library = b"#!lua name=one\nredis.register_function{function_name='f', \
                    callback=function() return 7 end, flags={'no-writes'}}";
    writer.send_arguments(&[b"FUNCTION", b"LOAD", library]);
    assert_eq!(writer.text(), "\"one\"");
    catch_up(&replica, &primary);
    assert_eq!(replica.client().call("FCALL f 0"), "(integer) 7");
}
