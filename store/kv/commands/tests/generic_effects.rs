// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of any type: events, transactions that watch a key, and clients that wait for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_commands::{Class, Waiter};
use freeport_kv_keyspace::Kind;

use crate::harness::Local;

/// A flag that is set when a key changes.
fn watch(local: &mut Local, database: u16, key: &str) -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let shard = local.store.shard_of(key.as_bytes());
    local.store.shard_mut(shard).watch(database, key.as_bytes(), &flag);
    flag
}

/// The events of a command, new keys among them.
fn events(local: &mut Local, line: &str) -> Vec<String> {
    local.effects.events.clear();
    local.effects.listened |= Class::New as u16;
    local.line(line);
    local.events()
}

#[test]
fn every_change_is_an_event_and_nothing_else_is() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    for key in ["a", "b", "c"] {
        local.line(&format!("SET {key} value"));
    }
    assert_eq!(events(&mut local, "EXPIRE a 100"), ["expire a"]);
    assert_eq!(events(&mut local, "EXPIRE a 100 GT"), [""; 0]);
    assert_eq!(events(&mut local, "PERSIST a"), ["persist a"]);
    assert_eq!(events(&mut local, "PERSIST a"), [""; 0]);
    let renamed = ["new d", "rename_from a", "rename_to d"];
    assert_eq!(events(&mut local, "RENAME a d"), renamed);
    assert_eq!(events(&mut local, "RENAME d d"), [""; 0]);
    assert_eq!(events(&mut local, "RENAMENX d b"), [""; 0]);
    assert_eq!(events(&mut local, "COPY d a DB 3"), ["3 new a", "3 copy_to a"]);
    assert_eq!(events(&mut local, "COPY d a DB 3"), [""; 0]);
    assert_eq!(events(&mut local, "MOVE b 2"), ["2 new b", "move_from b", "2 move_to b"]);
    assert_eq!(events(&mut local, "DEL d none c"), ["del d", "del c"]);
    local.line("SET a value");
    assert_eq!(events(&mut local, "EXPIRE a -1"), ["del a"]);
    assert_eq!(events(&mut local, "FLUSHALL"), [""; 0]);
}

#[test]
fn watched_keys_are_those_that_change() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    local.line("SET a value");
    let changes = |local: &mut Local, key: &str, line: &str| {
        let flag = watch(local, 0, key);
        local.line(line);
        let shard = local.store.shard_of(key.as_bytes());
        local.store.shard_mut(shard).unwatch(0, key.as_bytes(), &flag);
        flag.load(Ordering::Relaxed)
    };
    assert!(changes(&mut local, "a", "EXPIRE a 100"));
    assert!(!changes(&mut local, "a", "TOUCH a"));
    assert!(changes(&mut local, "a", "RENAME a b"));
    assert!(changes(&mut local, "c", "COPY b c"));
    assert!(!changes(&mut local, "b", "COPY c b"));
    assert!(changes(&mut local, "b", "MOVE b 1"));
    assert!(changes(&mut local, "c", "DEL c"));
    assert!(!changes(&mut local, "c", "DEL c"));
}

#[test]
fn whole_databases_change_the_watched_keys_that_they_have() {
    let mut local = Local::with_shards(3);
    local.line("SET here value");
    let flags = |local: &mut Local| {
        [watch(local, 0, "here"), watch(local, 0, "none"), watch(local, 1, "here")]
    };
    let set = |flags: [Arc<AtomicBool>; 3]| flags.map(|flag| flag.load(Ordering::Relaxed));
    let watched = flags(&mut local);
    local.line("SWAPDB 0 1");
    assert_eq!(set(watched), [true, false, true]);
    let watched = flags(&mut local);
    local.line("FLUSHDB");
    assert_eq!(set(watched), [false, false, false]);
    local.line("FLUSHALL");
    let watched = flags(&mut local);
    local.line("SWAPDB 0 1");
    assert_eq!(set(watched), [false, false, false]);
}

#[test]
fn clients_that_wait_are_looked_at_when_a_key_appears() {
    let mut local = Local::with_shards(3);
    let waiter = Waiter {
        worker: 0,
        client: 7,
        kind: Kind::String,
        wakes_on_removal: false,
        is_told: false,
    };
    let ready = |local: &mut Local| -> Vec<(u16, Box<[u8]>)> {
        let is_noted = std::mem::take(&mut local.effects.has_ready_keys);
        let ready: Vec<_> = local.store.shards_mut().flat_map(|shard| shard.take_ready()).collect();
        assert_eq!(is_noted, !ready.is_empty());
        ready
    };
    let shard = local.store.shard_of(b"to");
    local.store.shard_mut(shard).wait(0, b"to", waiter);
    local.line("SET from value");
    assert!(ready(&mut local).is_empty());
    local.line("COPY from to");
    assert_eq!(ready(&mut local), [(0, Box::from(&b"to"[..]))]);
    local.line("RENAME from to");
    assert_eq!(ready(&mut local).len(), 1);
    local.line("MOVE to 1");
    assert_eq!(ready(&mut local).len(), 1);
    local.line("SWAPDB 1 0");
    assert_eq!(ready(&mut local).len(), 1);
}

#[test]
fn keys_whose_time_has_passed_are_found_by_the_search() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    for number in 0..300 {
        local.session.database = number % 2;
        local.line(&format!("SET key:{number} value"));
        local.line(&format!("PEXPIRE key:{number} {}", if number < 200 { 10 } else { 1_000 }));
    }
    let flags = [watch(&mut local, 1, "key:1"), watch(&mut local, 1, "key:201")];
    local.effects = freeport_kv_commands::Effects { listened: u16::MAX, ..Default::default() };
    local.line("DEBUG SET-ACTIVE-EXPIRE 0");
    assert_eq!(local.store.expire_some(1_010, 10_000, &mut local.effects), 0);
    local.line("DEBUG SET-ACTIVE-EXPIRE 1");
    let mut removed = 0;
    let mut rounds = 0;
    while removed < 200 {
        removed += local.store.expire_some(1_010, 100, &mut local.effects);
        rounds += 1;
        assert!(rounds < 1_000, "{removed}");
    }
    assert_eq!((removed, local.effects.expired), (200, 200));
    let is_expired = |event: &freeport_kv_commands::Event| {
        event.class == Class::Expired && event.name == "expired"
    };
    assert!(local.effects.events.iter().all(is_expired));
    assert_eq!(local.effects.events.len(), 200);
    assert_eq!(flags.map(|flag| flag.load(Ordering::Relaxed)), [true, false]);
    assert_eq!(local.line("DBSIZE"), b":50\r\n");
}

#[test]
fn a_write_in_place_of_an_expired_value_is_two_events() {
    let mut local = Local::with_shards(3);
    let expiring = |local: &mut Local, key: &str| {
        local.now_ms = Some(1_000);
        local.line(&format!("SET {key} value"));
        local.line(&format!("PEXPIRE {key} 10"));
        local.now_ms = Some(1_010);
    };
    local.line("SET from value");
    expiring(&mut local, "key");
    assert_eq!(events(&mut local, "GET key"), ["expired key"]);
    assert_eq!(events(&mut local, "GET key"), [""; 0]);
    expiring(&mut local, "key");
    assert_eq!(events(&mut local, "SET key new")[0], "expired key");
    expiring(&mut local, "key");
    let copied = ["expired key", "new key", "copy_to key"];
    assert_eq!(events(&mut local, "COPY from key"), copied);
    expiring(&mut local, "key");
    assert_eq!(events(&mut local, "DEL key"), ["expired key"]);
    expiring(&mut local, "key");
    let renamed = ["expired key", "new key", "rename_from from", "rename_to key"];
    assert_eq!(events(&mut local, "RENAME from key"), renamed);
}
