// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server whose memory is full starts again: what it has takes other blocks when it is loaded.

use freeport_kv_server::{Options, Policy, Server};
use freeport_testbed::wait_until;

use super::{digest, folder, info, options, restart_with};
use crate::client::{Client, server_with};

const CHANGES: usize = 6_000;

/// Fills a server with values of many sizes and types; returns how many writes had no room.
fn fill(server: &Server, workers: usize, random: &mut fastrand::Rng) -> usize {
    let mut client = Client::new(server);
    let mut refused = 0;
    for _ in 0..workers * CHANGES {
        let key = random.usize(..workers * 4_000);
        let value = "v".repeat(random.usize(1..2_000));
        let line = match random.u32(..8) {
            0..3 => format!("SET string{key} {value}"),
            3 => format!("APPEND string{key} {value}"),
            4 => format!("RPUSH list{} {value}", key % 50),
            5 => format!("HSET hash{} field{key} {value}", key % 50),
            6 => format!("SADD set{} {value}", key % 50),
            _ => format!("DEL string{key}"),
        };
        refused += usize::from(client.call(&line).contains("OOM"));
    }
    refused
}

fn restarts(workers: usize, policy: &str) {
    let mut random = fastrand::Rng::with_seed(fastrand::u64(..));
    println!("seed {}", random.get_seed());
    let folder = folder();
    let memory_bytes = workers * (2 << 20);
    let options =
        || Options { memory_bytes, ..options(folder.path(), workers, Policy::EverySecond) };
    let mut server = server_with(options());
    for _ in 0..2 {
        Client::new(&server).call(&format!("CONFIG SET maxmemory-policy {policy}"));
        let refused = fill(&server, workers, &mut random);
        assert_eq!(refused > 0, policy == "noeviction", "{refused} writes are refused");
        // A policy would evict keys above its limit at any time.
        Client::new(&server).call("CONFIG SET maxmemory-policy noeviction");
        server = restart_with(server, options());
        let mut client = Client::new(&server);
        client.call("BGREWRITEAOF");
        wait_until("the log is rewritten", || info(&mut client, "aof_rewrite_in_progress") == "0");
        drop(client);
        server = restart_with(server, options());
    }
    assert_ne!(digest(&server), "0".repeat(40));
}

#[test]
fn a_full_server_starts_again() {
    restarts(1, "noeviction");
    restarts(3, "noeviction");
}

#[test]
fn a_server_that_evicts_starts_again() {
    restarts(1, "allkeys-lru");
    restarts(2, "allkeys-random");
}
