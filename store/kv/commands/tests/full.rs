// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands in stores without free memory: a refused one has changed nothing, and those that need
//! next to nothing are executed.

use fastrand::Rng;
use freeport_testbed::{seed, usual_or_long};

use crate::harness::{Local, fill, scanned, shown};
use crate::random_commands::{Commands, digest, local};

const REFUSED: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// Counts of executed and refused commands.
fn try_once(seed: u64, steps: usize) -> (u32, u32) {
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut local = local(1, 1 << 20, seed);
    local.now_ms = Some(1_000_000);
    let (mut commands, mut executed, mut refused) = (Commands::new(), 0, 0);
    for step in 0..steps {
        if step % 50 == 20 {
            fill(&mut local);
        }
        let words = commands.draw(&mut random);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let (before, changes) = (digest(&mut local), local.effects.changes);
        let reply = local.call(&words);
        if reply.starts_with(b"-") {
            assert_eq!(local.effects.changes, changes, "{}", shown(&words));
            assert!(digest(&mut local) == before, "{} failed and changed", shown(&words));
        }
        if reply == REFUSED {
            let needs_little = ["RENAME", "RENAMENX", "EXPIRE", "PEXPIRE", "PERSIST", "GETEX"];
            let name = words[0].escape_ascii().to_string();
            assert!(!needs_little.contains(&name.as_str()), "{}", shown(&words));
            refused += 1;
        } else {
            executed += 1;
        }
    }
    (executed, refused)
}

#[test]
fn a_refused_command_has_changed_nothing() {
    let first = seed();
    let (mut executed, mut refused) = (0, 0);
    for seed in first..first + usual_or_long(2, 100) {
        let counts = try_once(seed, 150);
        (executed, refused) = (executed + counts.0, refused + counts.1);
    }
    assert!(executed > 100 && refused > 10, "{executed} executed, {refused} refused");
}

#[test]
fn several_strings_are_stored_together_or_not_at_all() {
    let mut local = Local::with_memory(3, 1 << 20);
    local.line("SET a old");
    local.line("SET b old PX 100000000");
    let members: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    local.line(&format!("SADD set x {}", members.join(" ")));
    local.line("RPUSH list 1 2");
    let (long, before) = ("x".repeat(900_000), digest(&mut local));
    fill(&mut local);
    local.events();
    for last in ["new", "a", "c", "{x}d"] {
        let line = format!("MSET a 1 set 1 new1 1 list 1 set 2 b 1 a 2 {last} {long}");
        assert_eq!(local.line(&line), REFUSED);
        assert!(local.events().is_empty());
    }
    assert_eq!(local.line(&format!("MSETNX new1 1 new2 {long}")), REFUSED);
    let fillers = scanned(&mut local, "SCAN", "MATCH fill* COUNT 1000", |_| ());
    for key in fillers {
        local.call(&[b"DEL", &key]);
    }
    assert_eq!(digest(&mut local), before);
    assert_eq!(local.line("MSET a 1 set 1 list 1 a 2"), b"+OK\r\n");
    assert_eq!(local.line("MGET a set"), b"*2\r\n$1\r\n2\r\n$1\r\n1\r\n");
}

#[test]
fn a_full_store_gives_keys_other_names_and_times() {
    let mut local = Local::with_memory(1, 1 << 20);
    let members: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    local.line(&format!("SADD set x {}", members.join(" ")));
    local.line(&format!("SET text {}", "x".repeat(5_000)));
    local.line("SET short x");
    fill(&mut local);
    for key in ["set", "text", "short"] {
        assert_eq!(local.line(&format!("SET more {}", "x".repeat(6_000))), REFUSED);
        assert_eq!(local.line(&format!("EXPIRE {key} 1000")), b":1\r\n");
        let name = format!("{key}-renamed");
        assert_eq!(local.line(&format!("RENAME {key} {name}")), b"+OK\r\n");
        assert_eq!(local.line(&format!("RENAME {name} {key}")), b"+OK\r\n");
    }
    // A store above its limit takes what does not need more.
    assert_eq!(local.line("SET text y"), b"+OK\r\n");
    assert_eq!(local.line("PERSIST short"), b":1\r\n");
    assert_eq!(local.line("SCARD set"), b":2001\r\n");
}
