// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moves while the registry fails, or that are given up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use freeport_kv_cluster::Fault;
use freeport_kv_protocol::resp::Value;
use freeport_testbed::{seed, wait_until};

use super::Fleet;
use super::router::Router;
use super::traffic::run;

/// Keys of slots below 4096.
const LOW: [&str; 3] = ["{10}a", "{10}b", "{3}c"];

/// Lets calls of random nodes fail in random ways, for times after which their leases still last.
fn disturb_registry(fleet: &Fleet, stop: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed() + 1);
    let millis = Duration::from_millis;
    while !stop.load(Ordering::Relaxed) {
        let node = &fleet.nodes[random.usize(..fleet.nodes.len())];
        node.registry.set_fault(match random.u8(..4) {
            0 => Fault::Unreachable,
            1 | 2 => Fault::AnswerLost,
            _ => Fault::Delayed { request: millis(random.u64(..20)), answer: millis(20) },
        });
        thread::sleep(millis(random.u64(..150)));
        node.registry.set_fault(Fault::None);
        thread::sleep(millis(random.u64(..100)));
    }
    fleet.nodes.iter().for_each(|node| node.registry.set_fault(Fault::None));
}

#[test]
fn nothing_is_lost_while_the_registry_fails() {
    run(0, 2, disturb_registry);
}

#[test]
fn nothing_is_lost_while_the_registry_fails_for_shards_with_replicas() {
    run(1, 1, disturb_registry);
}

/// Begins a move that cannot end, because the source does not reach the registry, and waits until
/// the target has everything.
fn hold_open(fleet: &Fleet) {
    fleet.begin_move(0, 1, "0-4095");
    let mut client = fleet.first(1).client();
    wait_until("the import follows", || {
        let report = client.ask("INFO cluster");
        report.contains("cluster_import_0:") && report.contains("state=stream")
    });
}

fn value(text: &str) -> Value {
    Value::Bulk(text.into())
}

#[test]
fn a_move_that_is_given_up_leaves_everything_where_it_was() {
    let fleet = Fleet::new(0, 2);
    let mut router = Router::new(&fleet);
    LOW.iter().for_each(|key| drop(router.call(key, &format!("SET {key} 1"))));
    fleet.first(0).registry.set_fault(Fault::Unreachable);
    hold_open(&fleet);
    wait_until("the target has the keys", || fleet.first(1).client().ask("DBSIZE") == ":3\r\n");
    router.call(LOW[0], &format!("SET {} 2", LOW[0]));
    fleet.change(|topology| topology.moves.clear());
    wait_until("the target has purged them", || fleet.first(1).client().ask("DBSIZE") == ":0\r\n");
    fleet.first(0).registry.set_fault(Fault::None);
    assert_eq!(router.call(LOW[0], &format!("GET {}", LOW[0])), value("2"));
    assert_eq!(router.call(LOW[2], &format!("GET {}", LOW[2])), value("1"));
    fleet.move_slots(0, 1, "0-4095");
    assert_eq!(router.call(LOW[0], &format!("GET {}", LOW[0])), value("2"));
}

#[test]
fn flushall_of_the_target_removes_nothing_of_the_source() {
    let fleet = Fleet::new(0, 2);
    let mut router = Router::new(&fleet);
    LOW.iter().for_each(|key| drop(router.call(key, &format!("SET {key} 1"))));
    fleet.first(0).registry.set_fault(Fault::Unreachable);
    hold_open(&fleet);
    fleet.first(1).client().check("FLUSHALL", "+OK\r\n");
    fleet.first(0).registry.set_fault(Fault::None);
    wait_until("the slots have moved", || !fleet.is_moving());
    for key in LOW {
        assert_eq!(router.call(key, &format!("GET {key}")), value("1"), "{key}");
    }
}

/// The target does not remove keys before the source does, whose later commands depend on them.
#[test]
fn keys_expire_during_a_move_as_the_source_says() {
    let fleet = Fleet::new(0, 1);
    let mut router = Router::new(&fleet);
    let [mut source, mut target] = [0, 1].map(|shard| fleet.first(shard).client());
    let [short, long, _] = LOW;
    router.call(short, &format!("SET {short} 1"));
    router.call(long, &format!("SET {long} 1 PX 1000000"));
    fleet.first(0).registry.set_fault(Fault::Unreachable);
    hold_open(&fleet);
    // The source removes it neither by itself nor because somebody reads it.
    source.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
    source.check(&format!("PEXPIRE {short} 1"), ":1\r\n");
    source.check("CLIENT PAUSE 1000000 WRITE", "+OK\r\n");
    wait_until("the time passes", || source.ask(&format!("GET {short}")) == "$-1\r\n");
    wait_until("the target knows", || target.ask("INFO keyspace").contains("keys=2,expires=2"));
    // A worker ends no wait of a client that is longer than the time between two searches for
    // expired keys before it has searched.
    target.check("BLPOP foo 0.5", "*-1\r\n");
    target.check("DBSIZE", ":2\r\n");
    source.check("DBSIZE", ":2\r\n");
    source.check("CLIENT UNPAUSE", "+OK\r\n");
    source.check(&format!("GET {short}"), "$-1\r\n");
    wait_until("the target has removed it", || target.ask("DBSIZE") == ":1\r\n");
    router.call(short, &format!("RPUSH {short} a b"));
    fleet.first(0).registry.set_fault(Fault::None);
    wait_until("the slots have moved", || !fleet.is_moving());
    assert_eq!(router.call(short, &format!("LLEN {short}")), Value::Integer(2));
    assert_eq!(router.call(long, &format!("GET {long}")), value("1"));
}

/// The values that come back are in a snapshot, which does not say how they came about.
#[test]
fn a_transaction_fails_if_its_key_was_changed_while_the_slot_was_away() {
    let fleet = Fleet::new(0, 2);
    let (mut router, mut watching) = (Router::new(&fleet), fleet.first(0).client());
    let [key, ..] = LOW;
    watching.check(&format!("WATCH {key}"), "+OK\r\n");
    fleet.move_slots(0, 1, "0-4095");
    router.call(key, &format!("SET {key} 1"));
    router.call(key, &format!("DEL {key}"));
    fleet.first(1).client().check("SAVE", "+OK\r\n");
    fleet.move_slots(1, 0, "0-4095");
    assert_eq!(router.call(key, &format!("EXISTS {key}")), Value::Integer(0));
    watching.check("MULTI", "+OK\r\n");
    watching.check(&format!("SET {key} 2"), "+QUEUED\r\n");
    watching.check("EXEC", "*-1\r\n");
}

#[test]
fn the_copy_of_a_key_that_was_set_while_the_slot_was_away_becomes_invalid() {
    let fleet = Fleet::new(0, 2);
    let (mut router, mut keeper) = (Router::new(&fleet), fleet.first(0).client());
    let [key, ..] = LOW;
    keeper.call("HELLO 3");
    keeper.check("CLIENT TRACKING ON", "+OK\r\n");
    keeper.check(&format!("GET {key}"), "_\r\n");
    fleet.move_slots(0, 1, "0-4095");
    router.call(key, &format!("SET {key} 1"));
    fleet.first(1).client().check("SAVE", "+OK\r\n");
    fleet.move_slots(1, 0, "0-4095");
    assert_eq!(keeper.raw(), format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\n{key}\r\n"));
}

#[test]
fn a_client_that_waits_for_a_key_is_sent_to_the_new_owner() {
    let fleet = Fleet::new(0, 2);
    let [list, ..] = LOW;
    let mut waiting = fleet.first(0).client();
    waiting.send(&format!("BLPOP {list} 0"));
    wait_until("it waits", || {
        fleet.first(0).client().ask("INFO clients").contains("blocked_clients:1")
    });
    fleet.move_slots(0, 1, "0-4095");
    let reply = waiting.raw();
    assert!(reply.starts_with("-MOVED ") && reply.contains(&fleet.first(1).address().to_string()));
}
