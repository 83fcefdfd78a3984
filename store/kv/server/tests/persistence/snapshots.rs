// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Snapshots, while clients write.

use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_server::Server;
use freeport_testbed::wait_until;

use super::{digest, folder, info, restart, start, stop};
use crate::client::{Client, server};

/// Writes to many keys until it is told to stop.
fn write(server: &Server, first: usize, is_over: &AtomicBool) {
    let mut client = Client::new(server);
    for number in (first..).step_by(3) {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let key = number % 5_000;
        client.send(&format!("INCR key:{key}"));
        client.send(&format!("SET other:{key} {number}"));
        client.send(&format!("MSET a{key} {number} b{key} {number}"));
        client.send(&format!("LPUSH list:{} {number}", key % 50));
        client.send(&format!("LTRIM list:{} 0 100", key % 50));
        (0..5).for_each(|_| drop(client.reply()));
    }
}

#[test]
fn snapshots_are_written_while_clients_write() {
    for workers in [1, 3] {
        let folder = folder();
        let mut server = start(folder.path(), workers);
        let mut client = Client::new(&server);
        client.call("DEBUG POPULATE 20000 key 20");
        for _ in 0..2 {
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for first in 0..3 {
                    let (server, is_over) = (&server, &is_over);
                    scope.spawn(move || write(server, first, is_over));
                }
                let mut client = Client::new(&server);
                for line in ["BGREWRITEAOF", "BGSAVE", "SAVE"] {
                    let before = info(&mut client, "rdb_saves").parse::<u64>().expect("a number");
                    let reply = client.call(line);
                    assert!(reply == "OK" || reply.starts_with("Background"), "{reply}");
                    wait_until("the snapshot is complete", || {
                        info(&mut client, "rdb_saves") == (before + 1).to_string()
                    });
                }
                assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
                assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
                is_over.store(true, Ordering::Relaxed);
            });
            server = restart(server, folder.path(), 4 - workers);
        }
    }
}

/// Databases are cleared and exchanged while a snapshot is being written.
#[test]
fn a_snapshot_of_a_cleared_database_is_begun_again() {
    let folder = folder();
    let server = start(folder.path(), 2);
    let mut client = Client::new(&server);
    client.call("SELECT 1");
    client.call("DEBUG POPULATE 1000");
    client.call("SELECT 0");
    for turn in 0..5 {
        client.call("DEBUG POPULATE 30000");
        client.send("BGREWRITEAOF");
        client.send(if turn % 2 == 0 { "FLUSHALL" } else { "FLUSHDB" });
        client.send("SWAPDB 0 1");
        client.send(&format!("SET after {turn}"));
        (0..4).for_each(|_| drop(client.reply()));
        wait_until("the snapshot is complete", || {
            info(&mut client, "aof_rewrite_in_progress") == "0"
        });
        assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
    }
    stop(restart(server, folder.path(), 1));
}

#[test]
fn a_log_that_has_grown_is_replaced() {
    let folder = folder();
    let server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    assert_eq!(client.call("CONFIG SET auto-aof-rewrite-min-size 100000"), "OK");
    let size = |client: &mut Client| info(client, "aof_current_size").parse::<u64>();
    (0..2_000).for_each(|_| drop(client.call("SET key 0123456789012345678901234567890123456789")));
    wait_until("the log is replaced", || info(&mut client, "rdb_saves") != "0");
    assert!(size(&mut client).is_ok_and(|bytes| bytes < 100_000));
    stop(restart(server, folder.path(), 1));
}

#[test]
fn commands_of_snapshots_reply_as_those_of_redis() {
    let folder = folder();
    let server = start(folder.path(), 1);
    let mut client = Client::new(&server);
    client.call("DEBUG POPULATE 100000 key 100");
    // In a transaction, so that none of them is complete before the next.
    for line in ["MULTI", "BGSAVE", "BGSAVE", "BGREWRITEAOF", "EXEC"] {
        client.send(line);
    }
    (0..4).for_each(|_| drop(client.text()));
    assert_eq!(
        client.text(),
        "1) Background saving started \
         2) (error) ERR Background save already in progress \
         3) Background append only file rewriting scheduled"
    );
    wait_until("both are complete", || info(&mut client, "rdb_saves") == "2");
    for line in ["MULTI", "BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE", "BGSAVE SCHEDULE", "EXEC"] {
        client.send(line);
    }
    (0..5).for_each(|_| drop(client.text()));
    let busy = "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE \
                SCHEDULE in order to schedule a BGSAVE whenever possible.";
    assert_eq!(
        client.text(),
        format!(
            "1) Background append only file rewriting started \
             2) (error) ERR Background append only file rewriting already in progress \
             3) (error) {busy} 4) Background saving scheduled"
        )
    );
    wait_until("both are complete", || info(&mut client, "rdb_saves") == "4");
    let started = client.call("LASTSAVE");
    assert!(started.starts_with("(integer) "), "{started}");
}

#[test]
fn a_server_without_a_folder_says_so() {
    let server = server(1);
    let mut client = Client::new(&server);
    for line in ["SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN SAVE"] {
        assert_eq!(client.call(line), "(error) ERR persistence is not configured");
    }
    assert_eq!(info(&mut client, "aof_enabled"), "0");
    assert!(!digest(&server).is_empty());
}
