// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Misses of the cache under skewed gets, and addresses that become stale.

use crate::delayed::Delayed;
use crate::stores::{Store, small};
use freeport_study_kv::workload::Workload;
use freeport_study_kv::{Alternative, Client, Options};
use freeport_study_verbs::{Place, Verbs};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Number of keys, of which the cache holds a part.
const KEYS: u64 = 2000;

/// Returns the share of gets that miss, after the cache has adapted.
fn misses(skew: f64, cached: u64) -> f64 {
    let workload = Workload::new(KEYS, 40, skew).expect("there are keys");
    let options = Options {
        buckets: KEYS,
        item_memory: KEYS * 96,
        cache_memory: cached * 2 * 64,
        cached_item_max: 64,
        ..Options::default()
    };
    let mut store = Store::begin(options.clone(), 1);
    let verbs = store.world.begin(Place::Client(0), 0);
    let client = Rc::new(Client::new(verbs.clone(), options, 1).expect("within the limits"));
    // The least popular keys are stored last, and fill the cache at first.
    for rank in (0..KEYS).rev() {
        let (key, value) = (workload.key(rank), workload.value(rank));
        store.server.load(Verbs::memory(&store.host), &key, &value).expect("it fits");
    }
    assert_eq!(store.server.cached() as u64, cached);
    let done: Rc<Cell<u64>> = Rc::default();
    for task in 0..16 {
        let (workload, client, done) = (workload.clone(), Rc::clone(&client), Rc::clone(&done));
        let random = fastrand::Rng::with_seed(task);
        verbs.spawn(async move {
            let each = || done.set(done.get() + 1);
            let ended = workload.gets(&client, Alternative::CallCache, random, each).await;
            ended.expect("all places work");
        });
    }
    store.world.run_until(|_| done.get() >= 20_000);
    let (gets, missed) = (done.get(), client.misses());
    store.world.run_until(|_| done.get() >= 45_000);
    assert_eq!(store.server.cached() as u64, cached);
    (client.misses() - missed) as f64 / (done.get() - gets) as f64
}

/// No cache misses less than one that has the most popular keys, and ours nearly does.
#[test]
fn misses_are_those_of_the_distribution() {
    for (skew, cached) in [(0.99, 100), (0.99, 500), (0.8, 200), (0.0, 500)] {
        let least = Workload::new(KEYS, 40, skew).expect("there are keys").least_misses(cached);
        let found = misses(skew, cached);
        assert!((0.97 * least..1.15 * least).contains(&found), "{skew} {cached}: {found} {least}");
    }
}

/// Between the answer with an address and the read, the item is replaced and its memory used again.
#[test]
fn stale_addresses_are_noticed() {
    let mut store = Store::begin(small(), 1);
    let (writer_verbs, writer) = store.client(0);
    let verbs = store.world.begin(Place::Client(1), 0);
    let slow = Delayed::new(verbs.clone(), Duration::from_micros(200), 1);
    let client = Client::new(slow, store.options.clone(), 1).expect("within the limits");
    let is_over: Rc<Cell<bool>> = Rc::default();
    let writing = Rc::clone(&is_over);
    // Too long for the cache, and of one size, so that each key takes the memory of the other.
    let value = |number: u8| vec![number; 1000];
    writer_verbs.spawn(async move {
        for number in (0..=255).cycle() {
            writer.put(b"key", &value(number)).await.expect("it works");
            writer.put(b"another", &value(number)).await.expect("it works");
            if writing.get() {
                break;
            }
        }
    });
    let misses = store.result(&verbs, async move {
        let mut found = 0;
        for _ in 0..100 {
            if let Some(value) = client.get(Alternative::CallCache, b"key").await.expect("works") {
                assert!(value.len() == 1000 && value.iter().all(|byte| *byte == value[0]));
                found += 1;
            }
        }
        assert!(found >= 99, "only the first put can be missing: {found}");
        assert!(client.retries() > 0);
        client.misses()
    });
    assert!(misses >= 100);
    is_over.set(true);
}
