// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that are written and read again in place.

use fastrand::Rng;
use freeport_testbed::{seed, usual_or_long};

use crate::harness::Local;
use crate::random_commands::{Commands, digest, local};

#[test]
fn reloaded_data_are_the_same() {
    let first = seed();
    for seed in first..first + usual_or_long(3, 50) {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let (mut local, mut commands) = (local(3, 64 << 20, seed), Commands::new());
        for step in 0..2_000_u64 {
            local.now_ms = Some(1_000_000 + step);
            local.session.database = random.u16(0..3);
            let words = commands.draw(&mut random);
            local.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            if step % 50 == 0 {
                let line = ["DEBUG RELOAD", "debug loadaof", "DEBUG RELOAD NOSAVE MERGE NOFLUSH"];
                let (before, changes) = (digest(&mut local), local.effects.changes);
                assert_eq!(local.line(line[random.usize(0..3)]), b"+OK\r\n");
                assert_eq!(digest(&mut local), before);
                assert_eq!(local.effects.changes, changes);
            }
        }
    }
}

#[test]
fn options_are_those_of_redis() {
    let mut local = Local::new();
    let unknown = b"-ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.\r\n";
    assert_eq!(local.line("DEBUG RELOAD xx"), unknown);
    let failed = b"-ERR Error trying to load the RDB dump, check server logs.\r\n";
    assert_eq!(local.line("DEBUG RELOAD noflush"), failed);
}
