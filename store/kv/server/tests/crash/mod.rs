// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers in processes that are killed (`kill -9`) at random moments: every acknowledged write is
//! there after a restart, and one without a reply is there as a whole or not at all.
//!
//! The same trials run with redis-server, which shows that they ask for nothing that cannot be; and
//! with files that were shortened or not kept, which shows that they notice a loss.

mod damage;
pub mod examples;
pub mod explain;
mod full_disk;
mod inspecting;
pub mod model;
pub mod process;
pub mod reading;
mod rounds;
pub mod step;
mod writing;

use std::path::Path;

use freeport_testbed::redis::RedisServer;
use freeport_testbed::{number, seed, skip, usual_or_long};

use process::{Launch, Program};
use rounds::{Totals, Trial, run};

/// Number of kills of each trial; `FREEPORT_CRASHES` is another one.
fn rounds() -> u64 {
    number("FREEPORT_CRASHES").unwrap_or(usual_or_long(2, 100))
}

fn trial(
    program: Program,
    policy: Option<&'static str>,
    after_kill: fn(&Path),
) -> Result<Totals, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch { program, policy, folder: folder.path().into(), follows: None };
    run(&Trial { launch, rounds: rounds(), seed: seed(), after_kill })
}

fn nothing(_folder: &Path) {}

/// Whether redis-server is installed; a test without it is skipped.
fn has_redis() -> bool {
    let is_installed = RedisServer::start(&[]).is_some();
    if !is_installed {
        skip("redis-server is not installed");
    }
    is_installed
}

/// With `everysec`, Redis does not write while it syncs, so a kill may lose the last two seconds.
#[test]
fn redis_keeps_what_it_has_acknowledged() {
    if has_redis() {
        for policy in ["always", "no"] {
            let totals = trial(Program::Redis, Some(policy), nothing);
            let totals = totals.unwrap_or_else(|error| panic!("{policy}: {error}"));
            println!("{policy}: {totals:?}");
        }
    }
}

fn keeps(workers: usize) {
    for policy in ["always", "everysec", "no"] {
        let totals = trial(Program::Freeport { workers }, Some(policy), nothing);
        let totals = totals.unwrap_or_else(|error| panic!("{policy}: {error}"));
        println!("{policy}: {totals:?}");
    }
}

#[test]
fn one_worker_keeps_what_it_has_acknowledged() {
    keeps(1);
}

#[test]
fn up_to_three_workers_keep_what_they_have_acknowledged() {
    keeps(3);
}

#[test]
fn a_server_without_a_log_fails_the_trial() {
    if has_redis() {
        trial(Program::Redis, None, nothing).expect_err("acknowledged writes are lost");
    }
    let ours = trial(Program::Freeport { workers: 3 }, None, nothing);
    ours.expect_err("acknowledged writes are lost");
}

#[test]
fn a_shortened_log_fails_the_trial() {
    if has_redis() {
        let lost = trial(Program::Redis, Some("always"), shorten_log_of_redis);
        lost.expect_err("acknowledged writes are lost");
    }
}

/// Cuts the last third of the newest log.
fn shorten_log_of_redis(folder: &Path) {
    let files = std::fs::read_dir(folder.join("appendonlydir")).expect("it is there");
    let logs = files.map(|file| file.expect("it can be listed").path());
    let newest = logs.filter(|path| path.to_string_lossy().ends_with(".incr.aof")).max();
    let file = std::fs::File::options().write(true).open(newest.expect("there is a log"));
    let file = file.expect("it can be opened");
    let length = file.metadata().expect("it has a length").len();
    file.set_len(length / 3 * 2).expect("it can be cut");
}
