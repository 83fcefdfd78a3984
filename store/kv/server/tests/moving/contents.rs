// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything of a slot moves: values of all types, times of expiry, and what follows from
//! `FLUSHALL`.

use freeport_kv_protocol::resp::Value;
use freeport_kv_protocol::slots::slot_of;
use freeport_testbed::wait_until;

use super::Fleet;
use super::router::Router;

/// Commands that make keys of all types with a hash tag.
fn commands(tag: &str) -> Vec<(String, String)> {
    let all = [
        ("s", "SET _ text"),
        ("e", "SET _ text EX 100000"),
        ("i", "SET _ 12345"),
        ("h", "HSET _ field value other 7"),
        ("l", "RPUSH _ a b 3 c"),
        ("m", "SADD _ a b 3"),
        ("z", "ZADD _ 1 a 2.5 b"),
        ("x", "XADD _ 5-1 field value"),
        ("b", "SETRANGE _ 70000 end"),
        ("p", "PFADD _ a b c"),
    ];
    all.map(|(name, line)| {
        let key = format!("{{{tag}}}{name}");
        let line = line.replace('_', &key);
        (key, line)
    })
    .to_vec()
}

fn fill(router: &mut Router, tags: usize) -> Vec<String> {
    let mut keys = vec![];
    for tag in 0..tags {
        for (key, line) in commands(&tag.to_string()) {
            let reply = router.call(&key, &line);
            assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
            keys.push(key);
        }
    }
    keys
}

/// Values and times of expiry.
fn contents(router: &mut Router, keys: &[String]) -> Vec<(Value, Value)> {
    let mut of = |key: &String| {
        let dump = router.call(key, &format!("DUMP {key}"));
        assert!(matches!(dump, Value::Bulk(_)), "{key} is not there: {dump:?}");
        (dump, router.call(key, &format!("PEXPIRETIME {key}")))
    };
    keys.iter().map(&mut of).collect()
}

#[test]
fn values_of_all_types_move_and_stay_after_a_restart() {
    let mut fleet = Fleet::new(0, 2);
    let mut router = Router::new(&fleet);
    let keys = fill(&mut router, 50);
    let before = contents(&mut router, &keys);
    fleet.move_slots(0, 1, "0-8191");
    assert_eq!(contents(&mut router, &keys), before);
    wait_until("the source has purged its keys", || {
        fleet.first(0).client().ask("DBSIZE") == ":0\r\n"
    });
    fleet.nodes[1].stop();
    fleet.nodes[1].start(3);
    fleet.wait_until_ok();
    let mut router = Router::new(&fleet);
    assert_eq!(contents(&mut router, &keys), before, "after a restart");
}

#[test]
fn a_snapshot_of_the_source_moves() {
    let fleet = Fleet::new(0, 1);
    let mut router = Router::new(&fleet);
    let mut keys = fill(&mut router, 20);
    fleet.first(0).client().check("SAVE", "+OK\r\n");
    // Changes after it are in the log only.
    let changed = keys.iter().find(|key| slot_of(key.as_bytes()) < 8192).expect("one").clone();
    router.call(&changed, &format!("DEL {changed}"));
    keys.retain(|key| *key != changed);
    let before = contents(&mut router, &keys);
    fleet.move_slots(0, 1, "0-8191");
    assert_eq!(contents(&mut router, &keys), before);
    assert_eq!(router.call(&changed, &format!("EXISTS {changed}")), Value::Integer(0));
}

#[test]
fn keys_that_were_removed_by_flushall_do_not_move() {
    let fleet = Fleet::new(0, 2);
    let mut router = Router::new(&fleet);
    let keys = fill(&mut router, 20);
    fleet.first(0).client().check("FLUSHALL", "+OK\r\n");
    let later = keys.iter().find(|key| slot_of(key.as_bytes()) < 8192).expect("one").clone();
    router.call(&later, &format!("SET {later} later"));
    fleet.move_slots(0, 1, "0-8191");
    for key in keys.iter().filter(|key| slot_of(key.as_bytes()) < 8192) {
        let reply = router.call(key, &format!("EXISTS {key}"));
        assert_eq!(reply, Value::Integer(i64::from(*key == later)), "{key}");
    }
}

#[test]
fn keys_of_other_slots_stay() {
    let fleet = Fleet::new(0, 1);
    let mut router = Router::new(&fleet);
    let keys = fill(&mut router, 50);
    let before = contents(&mut router, &keys);
    fleet.move_slots(0, 1, "100-199,4000");
    fleet.move_slots(1, 0, "9000-9100,100");
    assert_eq!(contents(&mut router, &keys), before);
}
