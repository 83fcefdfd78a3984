// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clusters whose nodes are killed (`kill -9`) and paused (`SIGSTOP`) at random moments while
//! clients write: what `WAIT` has confirmed is there, whichever node takes the slots; other
//! requests are there whole or not at all, and in their order.
//!
//! The same trials run with redis-server in cluster mode, which shows that they ask for nothing
//! that cannot be.

mod connection;
mod fault;
mod fleet;
mod history;
mod moves;
mod process;
mod progress;
mod routes;
mod trial;
mod writing;

use freeport_testbed::etcd::EtcdServer;
use freeport_testbed::redis::RedisServer;
use freeport_testbed::{number, seed, skip, usual_or_long};

use fault::Fault;
use fleet::Shape;
use process::Program;
use trial::{Trial, run};
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

const SHAPE: Shape = Shape { shards: 3, replicas: 1 };
/// All that does not lose requests which `WAIT` has confirmed.
const FAULTS: &[Fault] = &[
    Fault::KillPrimary,
    Fault::PausePrimary,
    Fault::KillReplicas,
    Fault::KillShard,
    Fault::LoseNewest,
];

fn trial(program: Program, faults: &'static [Fault], rounds: u64) -> Trial {
    Trial { program, shape: SHAPE, faults, rounds, seed: seed(), pretends: false }
}

fn passes(trial: &Trial) -> Counts {
    let counts = run(trial).unwrap_or_else(|error| panic!("{error}"));
    println!("{counts:?}");
    assert!(counts.confirmations > 0, "the guarantee was not used: {counts:?}");
    counts
}

/// Besides, a primary that has lost its lease executes nothing. Requests that it has executed
/// before may be acknowledged late, as if the network had been slow.
fn keeps(trial: &Trial) {
    assert_eq!(passes(trial).wrong, 0);
}

const FREEPORT: Program = Program::Freeport { workers: 1, has_etcd: false };

#[test]
fn nodes_keep_what_a_replica_has_confirmed() {
    keeps(&trial(FREEPORT, FAULTS, rounds(2)));
}

#[test]
fn nodes_with_three_workers_keep_what_a_replica_has_confirmed() {
    let program = Program::Freeport { workers: 3, has_etcd: false };
    keeps(&trial(program, FAULTS, rounds(1)));
}

#[test]
fn nodes_hand_over_and_lose_nothing() {
    keeps(&trial(FREEPORT, &[Fault::HandOver, Fault::Move], rounds(4)));
}

#[test]
fn slots_move_while_nodes_are_killed() {
    keeps(&trial(FREEPORT, &[Fault::MoveToKilled, Fault::MoveFromKilled], rounds(2)));
}

#[test]
fn a_primary_that_stood_still_executes_nothing() {
    let program = Program::Freeport { workers: 2, has_etcd: false };
    keeps(&trial(program, &[Fault::PausePrimary], rounds(1)));
}

#[test]
fn nodes_agree_in_etcd() {
    let folder = tempfile::tempdir().expect("a folder");
    if EtcdServer::start(folder.path()).is_none() {
        return skip("etcd is not installed");
    }
    let program = Program::Freeport { workers: 1, has_etcd: true };
    keeps(&trial(program, FAULTS, rounds(1)));
}

#[test]
fn redis_keeps_what_a_replica_has_confirmed() {
    if has_redis() {
        passes(&trial(Program::Redis, FAULTS, rounds(1)));
    }
}

/// So the comparison notices a loss.
#[test]
fn requests_that_no_replica_has_are_lost() {
    let trial = Trial { pretends: true, ..trial(FREEPORT, &[Fault::LoseNewest], 1) };
    let error = run(&trial).expect_err("they are lost");
    assert!(error.contains("no number of the requests explains"), "{error}");
}

/// Redis has no lease. So the trial notices a node that has been replaced and executes requests.
#[test]
fn a_primary_of_redis_that_stood_still_executes_requests() {
    const ROUNDS_MAX: u64 = 10;
    if has_redis() {
        // A node may learn that it was replaced before it reads the requests.
        let is_noticed = |round| {
            let paused = trial(Program::Redis, &[Fault::PausePrimary], 1);
            passes(&Trial { seed: paused.seed + round, ..paused }).wrong > 0
        };
        assert!((0..ROUNDS_MAX).any(is_noticed), "the node has executed nothing");
    }
}
