// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands, given to a Redis server and to the types here, with the same results. The
//! reference is version 7.0 on x86-64.

mod lists;
mod patterns;
mod places;
mod server;
mod sorted_sets;
mod streams;
mod texts;
mod unordered;

use fastrand::Rng;
use freeport_testbed::{seed, skip};
use server::Server;

/// Calls `run` with an empty server for each of some seeds.
fn with_server(seeds: u64, run: fn(&mut Server, &mut Rng)) {
    let Some(mut server) = Server::start() else {
        return skip("redis-server is not installed");
    };
    let first = seed();
    for seed in first..first + seeds {
        // A failure names the seed.
        println!("seed {seed}");
        server.call(&[&"FLUSHALL"]);
        run(&mut server, &mut Rng::with_seed(seed));
    }
}
