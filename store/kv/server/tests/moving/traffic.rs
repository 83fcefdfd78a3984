// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that write and read while slots move: no value is lost or doubled, and commands on
//! several keys of a slot are whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use freeport_kv_protocol::resp::Value;
use freeport_kv_protocol::slots::slot_of;
use freeport_testbed::{seed, usual_or_long, wait_until};

use super::Fleet;
use super::router::Router;
use crate::client::Client;

/// Hash tags, whose slots are spread over both shards.
const TAGS: usize = 64;
/// Clients that write.
const WRITERS: usize = 3;

/// Values of keys, as their writer knows them.
struct Known {
    /// Number of increments for each tag.
    counts: Vec<i64>,
    /// Elements of the list of each tag.
    elements: Vec<i64>,
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number,
        other => panic!("no number: {other:?}"),
    }
}

/// Writes until it has to stop, and checks every reply.
fn write(fleet: &Fleet, number: usize, stop: &AtomicBool) -> Known {
    let (mut router, mut random) = (Router::new(fleet), fastrand::Rng::with_seed(number as u64));
    let mut known = Known { counts: vec![0; TAGS], elements: vec![0; TAGS] };
    while !stop.load(Ordering::Relaxed) {
        let tag = random.usize(..TAGS);
        let key = |name: &str| format!("{{{tag}}}:{name}:{number}");
        let (count, list) = (key("count"), key("list"));
        match random.u8(..4) {
            0 => {
                let reply = router.call(&count, &format!("INCR {count}"));
                known.counts[tag] += 1;
                assert_eq!(integer(&reply), known.counts[tag], "{count}");
            }
            1 => {
                let lines = [format!("INCR {count}"), format!("RPUSH {list} {}", random.u8(..))];
                let replies = router.transaction(&count, &[&lines[0], &lines[1]]);
                known.counts[tag] += 1;
                known.elements[tag] += 1;
                assert_eq!(integer(&replies[0]), known.counts[tag], "{count}");
                assert_eq!(integer(&replies[1]), known.elements[tag], "{list}");
            }
            2 => {
                let (one, other) = (key("one"), key("other"));
                let value = random.u32(..);
                let reply = router.call(&one, &format!("MSET {one} {value} {other} {value}"));
                assert_eq!(reply, Value::Status(b"OK".to_vec()));
            }
            _ => {
                let script = "redis.call('INCR',KEYS[1])return(redis.call('RPUSH',KEYS[2],'x'))";
                let reply = router.call(&count, &format!("EVAL {script} 2 {count} {list}"));
                known.counts[tag] += 1;
                known.elements[tag] += 1;
                assert_eq!(integer(&reply), known.elements[tag], "{list}");
            }
        }
    }
    known
}

/// Reads keys that are always written together.
fn read(fleet: &Fleet, stop: &AtomicBool) -> u64 {
    let (mut router, mut random) = (Router::new(fleet), fastrand::Rng::with_seed(99));
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        let (tag, number) = (random.usize(..TAGS), random.usize(..WRITERS));
        let [one, other] = ["one", "other"].map(|name| format!("{{{tag}}}:{name}:{number}"));
        match router.call(&one, &format!("MGET {one} {other}")) {
            Value::Array(values) => assert_eq!(values[0], values[1], "{one}"),
            reply => panic!("MGET: {reply:?}"),
        }
        reads += 1;
    }
    reads
}

/// Everything is as the writer knows it.
fn compare(router: &mut Router, number: usize, known: &Known) {
    for tag in 0..TAGS {
        let count = format!("{{{tag}}}:count:{number}");
        let reply = router.call(&count, &format!("INCRBY {count} 0"));
        assert_eq!(integer(&reply), known.counts[tag], "{count}");
        let list = format!("{{{tag}}}:list:{number}");
        let reply = router.call(&list, &format!("LLEN {list}"));
        assert_eq!(integer(&reply), known.elements[tag], "{list}");
    }
}

/// Moves slots back and forth while clients write and something disturbs them, and compares.
pub fn run(replicas: usize, workers: usize, disturb: impl Fn(&Fleet, &AtomicBool) + Sync) {
    let fleet = Fleet::new(replicas, workers);
    let (stop, mut random) = (AtomicBool::new(false), fastrand::Rng::with_seed(seed()));
    thread::scope(|scope| {
        let (fleet, stop) = (&fleet, &stop);
        let writers: Vec<_> =
            (0..WRITERS).map(|number| scope.spawn(move || write(fleet, number, stop))).collect();
        let reader = scope.spawn(|| read(fleet, stop));
        let disturber = scope.spawn(|| disturb(fleet, stop));
        let end = StopAtEnd(stop);
        for _ in 0..usual_or_long(2, 50) {
            let first = random.u16(..8000);
            let slots = format!("{first}-{}", first + random.u16(1..192));
            for slots in ["0-4095", &slots] {
                fleet.move_slots(0, 1, slots);
                fleet.move_slots(1, 0, slots);
            }
        }
        drop(end);
        disturber.join().expect("it only disturbs");
        assert!(reader.join().expect("the reader checks") > 0);
        let mut router = Router::new(fleet);
        for (number, writer) in writers.into_iter().enumerate() {
            let known = writer.join().expect("the writer checks");
            assert!(known.counts.iter().sum::<i64>() > 0);
            compare(&mut router, number, &known);
        }
        assert!(router.redirections > 0, "keys of both shards were used");
    });
    let keys = keys_of_others(&fleet);
    wait_until("keys of other shards are gone", || keys(0) + keys(1) == 0);
}

/// Counts the keys that a shard's primary has of slots which belong to the other.
fn keys_of_others(fleet: &Fleet) -> impl Fn(usize) -> usize {
    let topology = fleet.topology().topology;
    let primaries: Vec<_> =
        topology.shards.iter().map(|it| fleet.node(it.primary).address()).collect();
    move |shard| {
        let mut client = Client::connect(primaries[shard]);
        client.send("KEYS *");
        let Value::Array(keys) = client.reply() else { panic!("KEYS has an array") };
        let is_foreign = |key: &&Value| match key {
            Value::Bulk(key) => !topology.shards[shard].slots.has(slot_of(key)),
            other => panic!("no key: {other:?}"),
        };
        keys.iter().filter(is_foreign).count()
    }
}

/// Clients end, also if a check fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_lost_while_slots_move() {
    run(0, 1, |_, _| ());
}

#[test]
fn nothing_is_lost_while_slots_move_between_several_workers() {
    run(0, 3, |_, _| ());
}

#[test]
fn nothing_is_lost_while_slots_move_between_shards_with_replicas() {
    run(1, 2, |_, _| ());
}
