// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk that is full or fails: writes are refused with the reason, reads are answered, and what
//! was acknowledged is there after a restart.

use std::path::Path;
use std::sync::Arc;

use freeport_kv_journal::faulty::FaultyDisk;
use freeport_kv_server::{Options, PersistenceOptions, Policy, Server};
use freeport_testbed::wait_until;

use super::{digest, folder, info, restart, start, stop};
use crate::client::{Client, server_with};

/// A server on a disk that can be made to fail.
fn start_on(disk: &Arc<FaultyDisk>, folder: &Path, policy: Policy) -> Server {
    let persistence =
        PersistenceOptions { policy, disk: disk.clone(), ..PersistenceOptions::new(folder.into()) };
    server_with(Options { workers: 2, persistence: Some(persistence), ..Options::default() })
}

/// Writes until a write is refused; returns the refusal.
fn fill(client: &mut Client) -> String {
    let value = "x".repeat(10_000);
    for number in 0.. {
        let reply = client.call(&format!("SET big{number} {value}"));
        if reply != "OK" {
            return reply;
        }
    }
    unreachable!("the disk is full after some writes")
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let refusal = "(error) MISCONF Errors writing to the AOF file: No space left on device. \
                   Writes are refused until the log can be written again; reads are executed.";
    for policy in [Policy::Always, Policy::EverySecond] {
        for can_reserve in [true, false] {
            let (folder, disk) = (folder(), Arc::new(FaultyDisk::default()));
            disk.faults().set_can_reserve(can_reserve);
            let server = start_on(&disk, folder.path(), policy);
            let (mut client, mut other) = (Client::new(&server), Client::new(&server));
            assert_eq!(client.call("RPUSH list a b"), "(integer) 2");
            assert_eq!(client.call("PFADD log a b"), "(integer) 1");
            if can_reserve {
                disk.faults().set_room(Some(0));
                assert_eq!(fill(&mut client), refusal);
            } else {
                // The write after the last one that fits is executed, and its reply waits.
                disk.faults().set_room(Some(100_000));
                let value = "x".repeat(10_000);
                (0..20).for_each(|number| other.send(&format!("SET big{number} {value}")));
                wait_until("the log fails", || info(&mut client, "aof_last_write_status") == "err");
                assert_eq!(client.call("SET key 1"), refusal);
            }
            assert_eq!(client.call("LRANGE list 0 -1"), "1) \"a\" 2) \"b\"");
            assert_eq!(client.call("EVAL return(redis.call('LLEN','list')) 0"), "(integer) 2");
            // The count is not stored, because that would be a change.
            let before = digest(&server);
            assert_eq!(client.call("PFCOUNT log"), "(integer) 2");
            assert_eq!(digest(&server), before);
            check_refusals(&mut client, &refusal[8..]);
            if !can_reserve {
                assert_eq!(info(&mut client, "aof_last_write_status"), "err");
            }
            disk.faults().set_room(None);
            wait_until("writes are executed", || client.call("SET last 1") == "OK");
            assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
            if !can_reserve {
                for _ in 0..20 {
                    let reply = other.text();
                    assert!(reply == "OK" || reply == refusal, "{reply}");
                }
            }
            stop(restart(server, folder.path(), 1));
        }
    }
}

/// Scripts, transactions, functions and keys for a test are refused as well. Small ones may still
/// have room.
fn check_refusals(client: &mut Client, refusal: &str) {
    let value = "x".repeat(10_000);
    let script = format!("return redis.call('SET', 'key', '{value}')");
    wait_until("a script is refused", || {
        client.send_arguments(&[b"EVAL", script.as_bytes(), b"0"]);
        client.text().contains(refusal)
    });
    wait_until("a transaction is refused", || {
        for line in ["MULTI", &format!("SET key {value}"), "GET key"] {
            client.call(line);
        }
        let aborted = "(error) EXECABORT Transaction discarded because of: ";
        client.call("EXEC") == format!("{aborted}{refusal}")
    });
    let library =
        format!("#!lua name=lib\nredis.register_function('f', function() end) -- {value}");
    wait_until("a function is refused", || {
        client.send_arguments(&[b"FUNCTION", b"LOAD", b"REPLACE", library.as_bytes()]);
        client.text() == format!("(error) {refusal}")
    });
    wait_until("keys for a test are refused", || {
        client.call(&format!("DEBUG POPULATE 1 {value}")) == format!("(error) {refusal}")
    });
}

/// Only a part of a batch is written.
#[test]
fn short_writes_are_completed() {
    for policy in [Policy::Always, Policy::Never] {
        let (folder, disk) = (folder(), Arc::new(FaultyDisk::default()));
        let server = start_on(&disk, folder.path(), policy);
        let mut client = Client::new(&server);
        disk.faults().set_longest_write(Some(7));
        for number in 0..50 {
            assert_eq!(client.call(&format!("SET key{number} {number}")), "OK");
            if number % 10 == 5 {
                disk.faults().fail_writes(1);
            }
        }
        disk.faults().set_longest_write(None);
        assert_eq!(client.call("SAVE"), "OK");
        stop(restart(server, folder.path(), 1));
    }
}

/// The kernel may have lost bytes whose sync has failed, so the log gets a new start: a segment
/// with the same bytes, or a snapshot.
#[test]
fn a_failed_sync_loses_nothing_that_was_acknowledged() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let (folder, disk) = (folder(), Arc::new(FaultyDisk::default()));
        let server = start_on(&disk, folder.path(), policy);
        let (mut client, mut reader) = (Client::new(&server), Client::new(&server));
        assert_eq!(client.call("SET a 1"), "OK");
        disk.faults().fail_syncs(3);
        client.send("SET b 2");
        assert_eq!(reader.call("GET a"), "\"1\"");
        assert_eq!(client.text(), "OK");
        wait_until("the log is repaired", || {
            let has_failed = info(&mut reader, "aof_faults") != "0";
            has_failed && info(&mut reader, "aof_last_write_status") == "ok"
        });
        assert_eq!(client.call("SET c 3"), "OK");
        stop(restart(server, folder.path(), 1));
    }
}

#[test]
fn a_snapshot_that_fails_leaves_the_log() {
    let (folder, disk) = (folder(), Arc::new(FaultyDisk::default()));
    let server = start_on(&disk, folder.path(), Policy::EverySecond);
    let mut client = Client::new(&server);
    client.call("DEBUG POPULATE 20000 key 100");
    disk.faults().set_room(Some(100_000));
    let reply = client.call("SAVE");
    assert!(reply.starts_with("(error) ERR The snapshot has failed: "), "{reply}");
    assert!(reply.contains("No space left on device"), "{reply}");
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    disk.faults().set_room(None);
    assert_eq!(client.call("SET after 1"), "OK");
    let server = restart(server, folder.path(), 1);
    let mut client = Client::new(&server);
    assert_eq!(client.call("SAVE"), "OK");
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    stop(restart(server, folder.path(), 2));
}

/// A server that cannot write the last changes says so, and a client cannot end it unasked.
#[test]
fn the_end_of_a_server_that_cannot_write_is_an_error() {
    let (folder, disk) = (folder(), Arc::new(FaultyDisk::default()));
    disk.faults().set_can_reserve(false);
    let server = start_on(&disk, folder.path(), Policy::EverySecond);
    let mut client = Client::new(&server);
    assert_eq!(client.call("SET a 1"), "OK");
    let before = digest(&server);
    disk.faults().set_room(Some(0));
    client.send("SET lost 1");
    let mut other = Client::new(&server);
    wait_until("the log fails", || info(&mut other, "aof_last_write_status") == "err");
    assert_eq!(other.call("SHUTDOWN"), "(error) ERR Errors trying to SHUTDOWN. Check logs.");
    other.send("SHUTDOWN NOSAVE");
    let error = server.join().expect_err("a change is lost").to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(client.is_closed(), "the change was not acknowledged");
    let server = start(folder.path(), 1);
    assert_eq!(digest(&server), before);
}
