// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eviction: which keys are victims, and what others notice of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_commands::{Evicted, EvictionOptions, Policy};

use crate::harness::Local;

/// A store with a policy. `samples` of 64 makes a choice among few keys exact.
fn local(policy: &str, samples: usize) -> Local {
    let mut local = Local::new();
    local.now_ms = Some(1_000_000);
    let policy = Policy::of(policy);
    let options = EvictionOptions { policy, samples, ..EvictionOptions::default() };
    local.store.set_eviction(0, options, 1_000_000);
    local
}

fn evict(local: &mut Local) -> Evicted {
    let now_ms = local.now_ms.expect("tests set the time");
    local.store.shard_mut(0).evict(now_ms, &mut local.effects)
}

/// Evicts until nothing can be evicted. Returns the events.
fn evict_all(local: &mut Local) -> Vec<String> {
    local.events();
    while evict(local) != Evicted::NoneLeft {}
    local.events()
}

fn wait(local: &mut Local, milliseconds: u64) {
    local.now_ms = local.now_ms.map(|now_ms| now_ms + milliseconds);
}

#[test]
fn keys_without_use_go_first() {
    let mut local = local("allkeys-lru", 64);
    for key in ["a", "b", "c", "d"] {
        local.line(&format!("SET {key} 1"));
        wait(&mut local, 2_000);
    }
    local.line("GET a");
    wait(&mut local, 2_000);
    // These ask about a key and do not use it.
    for line in ["TTL b", "EXISTS b", "TYPE b", "OBJECT IDLETIME b", "OBJECT ENCODING b"] {
        local.line(line);
    }
    local.session.touches = false;
    local.line("GET c");
    local.line("TOUCH d");
    assert_eq!(evict_all(&mut local), ["evicted b", "evicted c", "evicted a", "evicted d"]);
    assert_eq!((local.effects.evicted, local.store.shard(0).keys()), (4, 0));
}

#[test]
fn keys_that_are_rarely_used_go_first() {
    let mut local = local("allkeys-lfu", 64);
    for (key, uses) in [("a", 30), ("b", 0), ("c", 3_000)] {
        local.line(&format!("SET {key} 1"));
        (0..uses).for_each(|_| drop(local.line(&format!("GET {key}"))));
    }
    assert_eq!(evict_all(&mut local), ["evicted b", "evicted a", "evicted c"]);
}

#[test]
fn keys_that_expire_soon_go_first_and_others_never() {
    let mut local = local("volatile-ttl", 64);
    local.line("SET stays 1");
    for (key, seconds) in [("a", 50), ("b", 10), ("c", 99)] {
        local.line(&format!("SET {key} 1 EX {seconds}"));
    }
    local.session.database = 3;
    local.line("SET d 1 EX 20");
    let events = ["evicted b", "3 evicted d", "evicted a", "evicted c"];
    assert_eq!(evict_all(&mut local), events);
    assert_eq!(local.store.shard(0).keys(), 1);
}

#[test]
fn every_policy_evicts_what_it_may_and_nothing_else() {
    for (name, policy) in Policy::ALL {
        let mut local = local(name, 5);
        for number in 0..200 {
            local.line(&format!("SET stays{number} 1"));
            local.line(&format!("SET goes{number} 1 EX 100"));
        }
        let events = evict_all(&mut local);
        let expected = if policy.only_expiring { 200 } else { 400 };
        assert_eq!((events.len(), local.store.shard(0).keys()), (expected, 400 - expected));
        assert!(!policy.only_expiring || events.iter().all(|event| event.contains("goes")));
    }
    let mut local = local("noeviction", 5);
    local.line("SET key 1");
    assert_eq!(evict(&mut local), Evicted::NoneLeft);
}

#[test]
fn few_keys_among_many_are_found_by_a_search_that_continues() {
    let mut local = local("volatile-lru", 5);
    local.line("DEBUG POPULATE 100000");
    (0..7).for_each(|number| drop(local.line(&format!("SET goes{number} 1 EX 100"))));
    let mut attempts = 0;
    while evict(&mut local) != Evicted::NoneLeft {
        attempts += 1;
    }
    // A round of this index takes about four attempts, and may find several of them.
    assert_eq!(local.effects.evicted, 7);
    assert!((7..100).contains(&attempts), "{attempts}");
}

#[test]
fn a_victim_is_a_change_and_its_memory_returns() {
    let mut local = local("allkeys-random", 5);
    local.line("SET small 1");
    local.line("DEL small");
    let before = local.store.shard(0).occupied_bytes();
    (0..2_000).for_each(|number| drop(local.line(&format!("SADD large element{number}"))));
    assert!(local.store.shard(0).occupied_bytes() > before + 20_000);
    let flag = Arc::new(AtomicBool::new(false));
    local.store.shard_mut(0).watch(0, b"large", &flag);
    assert_eq!(evict_all(&mut local), ["evicted large"]);
    assert!(flag.load(Ordering::Relaxed));
    // The table of structures keeps its first cells.
    assert!(local.store.shard(0).occupied_bytes() < before + 1_000);
    local.line("SET key 1 PX 10");
    wait(&mut local, 20);
    assert_eq!(evict_all(&mut local), ["expired key"]);
}

#[test]
fn small_pairs_need_less_memory_once_they_are_evicted() {
    let mut local = local("allkeys-random", 5);
    (0..10_000).for_each(|number| drop(local.line(&format!("SET {number} 1"))));
    let (used, occupied) = {
        let shard = local.store.shard(0);
        (shard.memory_bytes(), shard.occupied_bytes())
    };
    assert!(occupied > used / 2 && occupied <= used, "{occupied} of {used}");
    (0..5_000).for_each(|_| assert_eq!(evict(&mut local), Evicted::One));
    let now = local.store.shard(0).occupied_bytes();
    assert!(now < occupied * 2 / 3, "{now} of {occupied}");
}

#[test]
fn uses_are_known_as_far_as_they_are_tracked() {
    let mut local = local("noeviction", 5);
    local.line("SET key 1");
    wait(&mut local, 5_000);
    // Times are tracked from the first question on.
    assert_eq!(local.line("OBJECT IDLETIME key"), b":0\r\n");
    wait(&mut local, 5_000);
    assert_eq!(local.line("OBJECT IDLETIME key"), b":5\r\n");
    assert!(local.line("OBJECT FREQ key").starts_with(b"-ERR An LFU maxmemory policy is not"));
    local.line("GET key");
    assert_eq!(local.line("OBJECT IDLETIME key"), b":0\r\n");
    assert_eq!(local.line("OBJECT IDLETIME none"), b"$-1\r\n");
    let dump = local.line("DUMP key");
    let payload = &dump[dump.iter().position(|byte| *byte == b'\n').expect("a length") + 1..];
    let payload = &payload[..payload.len() - 2];
    local.call(&[b"RESTORE", b"old", b"0", payload, b"IDLETIME", b"1000"]);
    assert_eq!(local.line("OBJECT IDLETIME old"), b":1000\r\n");
    let policy = Policy::of("allkeys-lfu");
    local.store.set_eviction(0, EvictionOptions { policy, ..EvictionOptions::default() }, 0);
    local.call(&[b"RESTORE", b"often", b"0", payload, b"FREQ", b"100"]);
    assert_eq!(local.line("OBJECT FREQ often"), b":100\r\n");
    assert!(local.line("OBJECT IDLETIME old").starts_with(b"-ERR An LFU maxmemory policy is sel"));
    assert_eq!(local.line("OBJECT FREQ none"), b"$-1\r\n");
    local.line("DEL often");
    local.line("SET often 1");
    assert_eq!(local.line("OBJECT FREQ often"), b":5\r\n");
}
