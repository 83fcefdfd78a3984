// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clusters whose nodes are killed (`kill -9`) and paused (`SIGSTOP`) at random moments while clients
//! write: what `WAIT` has confirmed is there, whichever node takes the slots; other requests are
//! there whole or not at all, and in their order.
//!
//! The same trials run with redis-server in cluster mode, which shows that they ask for nothing that
//! cannot be.

mod connection;
mod fleet;
mod history;
mod process;
mod routes;
mod trial;
mod writing;

use freeport_testbed::redis::RedisServer;
use freeport_testbed::{number, seed, skip, usual_or_long};

use fleet::Shape;
use process::Program;
use trial::{Fault, Trial, run};
use writing::Counts;

/// Number of rounds of each trial; `FREEPORT_CRASHES` is another one.
fn rounds(usual: u64) -> u64 {
    number("FREEPORT_CRASHES").unwrap_or(usual_or_long(usual, 100))
}

/// Whether redis-server is installed; a test without it is skipped.
fn has_redis() -> bool {
    let is_installed = RedisServer::start(&[]).is_some();
    if !is_installed {
        skip("redis-server is not installed");
    }
    is_installed
}

fn redis(faults: &'static [Fault], rounds: u64, pretends: bool) -> Result<Counts, String> {
    let shape = Shape { shards: 3, replicas: 1 };
    run(&Trial { program: Program::Redis, shape, faults, rounds, seed: seed(), pretends })
}

#[test]
fn redis_keeps_what_a_replica_has_confirmed() {
    if has_redis() {
        let faults = &[Fault::KillPrimary, Fault::KillReplica, Fault::PausePrimary];
        let counts = redis(faults, rounds(2), false).unwrap_or_else(|error| panic!("{error}"));
        println!("{counts:?}");
    }
}

#[test]
fn requests_that_no_replica_has_are_lost() {
    if has_redis() {
        let error = redis(&[Fault::LoseNewest], 1, true).expect_err("they are lost");
        println!("{error}");
    }
}

#[test]
fn a_primary_that_stood_still_acknowledges_requests_too_late() {
    if has_redis() {
        let counts = redis(&[Fault::PausePrimary], rounds(2), false);
        println!("{:?}", counts.unwrap_or_else(|error| panic!("{error}")));
    }
}
