// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Concurrent clients of all alternatives see one store in which each operation happens at one
//! moment: their histories are linearizable. Stores that leave out a step of puts are not.

use crate::delayed::Delayed;
use crate::model::{Call, Operation, Reply};
use crate::stores::small;
use freeport_plan_model::profile::built_in;
use freeport_study_kv::{Alternative, Client, ORDER, Options, Server, Step};
use freeport_study_verbs::simulated::World;
use freeport_study_verbs::{Place, Verbs};
use freeport_testbed::history::{contradiction, is_linearizable, show};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Clients of a history that put, delete and get, and operations of each.
const WRITERS: usize = 3;
const TURNS: usize = 10;
/// Clients that only get, so often that they see what lies between the steps of puts.
const READERS: usize = 3;
const GETS: usize = 50;
/// Longest time between two operations of a reader.
const PAUSE_NS: u64 = 20_000;
const CLIENTS: usize = WRITERS + READERS;
/// A store, and the number of keys of its histories.
struct Case {
    options: Options,
    keys: usize,
}

/// Records a history. Returns it with the number of retries.
fn record(Case { options, keys }: &Case, seed: u64) -> (Vec<Operation>, u64) {
    let keys = *keys;
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let mut world = World::new(&profile, CLIENTS as u32, false, seed);
    let layout = options.layout().expect("within the limits");
    world.begin(Place::Host, layout.host_bytes as usize);
    let soc = world.begin(Place::Soc, layout.soc_bytes as usize);
    // Either puts are slow, or clients that have read a part of what they need.
    let longest = [[0, 200], [60, 0], [30, 60]][seed as usize % 3].map(Duration::from_micros);
    let server = Server::new(Delayed::new(soc.clone(), longest[0], seed), options.clone());
    soc.spawn(server.expect("within the limits").serve());
    let history: Rc<RefCell<Vec<Operation>>> = Rc::default();
    let (ended, retries) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for number in 0..CLIENTS {
        let verbs = world.begin(Place::Client(number as u16), 0);
        let seed = seed * 100 + number as u64;
        let client =
            Client::new(Delayed::new(verbs.clone(), longest[1], seed), options.clone(), seed);
        let client = client.expect("within the limits");
        let (history, ended) = (Rc::clone(&history), Rc::clone(&ended));
        let (now, retries) = (verbs.clone(), Rc::clone(&retries));
        verbs.spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed);
            let is_reader = number >= WRITERS;
            for turn in 0..if is_reader { GETS } else { TURNS } {
                let call = if is_reader {
                    now.sleep(Duration::from_nanos(random.u64(..PAUSE_NS))).await;
                    Call::Get(random.usize(..keys))
                } else {
                    Call::random(&mut random, keys, (number * TURNS + turn) as u32)
                };
                let called_ns = now.now().as_nanos() as u64;
                let reply = carry_out(&client, &call, &mut random).await;
                let returned_ns = now.now().as_nanos() as u64;
                let (client, after, reply) = (number, vec![], Some(reply));
                history.borrow_mut().push(Operation {
                    client,
                    call,
                    reply,
                    called_ns,
                    returned_ns,
                    after,
                });
            }
            retries.set(retries.get() + client.retries());
            ended.set(ended.get() + 1);
        });
    }
    assert!(world.run_until(|_| ended.get() == CLIENTS), "seed {seed}: a client waits forever");
    let mut history = history.take();
    history.sort_by_key(|operation| operation.called_ns);
    (history, retries.get())
}

/// Carries out an operation, a get by any alternative.
async fn carry_out<V: Verbs>(client: &Client<V>, call: &Call, random: &mut fastrand::Rng) -> Reply {
    match call {
        Call::Get(key) => {
            let alternative = Alternative::ALL[random.usize(..Alternative::ALL.len())];
            let value = client.get(alternative, Call::key(*key).as_bytes()).await;
            let number = |value| Call::number(&String::from_utf8(value).expect("text"));
            Reply::Value(value.expect("it works").map(number))
        }
        Call::Put(key, value) => {
            let (key, value) = (Call::key(*key), Call::value(*value));
            client.put(key.as_bytes(), value.as_bytes()).await.expect("it works");
            Reply::Done(true)
        }
        Call::Delete(key) => {
            let there = client.delete(Call::key(*key).as_bytes()).await;
            Reply::Done(there.expect("it works"))
        }
    }
}

/// Index and cache of few places, so that keys meet and memory is soon used again.
fn crowded() -> Case {
    Case { options: Options { buckets: 2, bucket_entries: 3, ..small() }, keys: 2 }
}

/// All keys have the same few entries, so that one key receives the entry that another one loses.
fn shared() -> Case {
    Case { options: Options { buckets: 1, bucket_entries: 4, ..small() }, keys: 4 }
}

/// Asserts that histories of a number of seeds are linearizable.
fn assert_linearizable(case: &Case, seeds: u64) {
    let first = freeport_testbed::seed();
    let mut met = 0;
    for seed in first..first + seeds {
        let (history, retries) = record(case, seed);
        assert!(
            is_linearizable(&history),
            "seed {seed}: no order explains\n{}",
            show(&contradiction(&history))
        );
        met += retries;
    }
    assert!(met > 0, "no get met a put");
}

#[test]
fn histories_are_linearizable() {
    assert_linearizable(&crowded(), freeport_testbed::usual_or_long(200, 5000));
}

#[test]
fn histories_of_keys_that_share_entries_are_linearizable() {
    assert_linearizable(&shared(), freeport_testbed::usual_or_long(200, 5000));
}

/// Returns whether one of 200 histories is not linearizable.
fn is_found_out(case: &Case) -> bool {
    (1..=200).any(|seed| !is_linearizable(&record(case, seed).0))
}

/// Returns whether histories show that puts have another order.
fn is_order_found_out(order: Vec<Step>) -> bool {
    let Case { options, keys } = crowded();
    is_found_out(&Case { options: Options { order, ..options }, keys })
}

#[test]
fn puts_that_leave_old_items_alive_are_found() {
    let order = ORDER.into_iter().filter(|step| *step != Step::Retire).collect();
    assert!(is_order_found_out(order));
}

#[test]
fn puts_that_retire_old_items_too_late_are_found() {
    let order = vec![Step::Write, Step::Publish, Step::Enliven, Step::Retire, Step::Fill];
    assert!(is_order_found_out(order));
}

#[test]
fn puts_that_publish_living_items_are_found() {
    let order = vec![Step::Write, Step::Retire, Step::Enliven, Step::Publish, Step::Fill];
    assert!(is_order_found_out(order));
}

#[test]
fn readers_that_ignore_versions_are_found() {
    let Case { options, keys } = crowded();
    assert!(is_found_out(&Case { options: Options { compares_versions: false, ..options }, keys }));
}

#[test]
fn deletes_that_free_an_entry_too_early_are_found() {
    let Case { options, keys } = shared();
    assert!(is_found_out(&Case { options: Options { locks_deletes: false, ..options }, keys }));
}
