// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often a cache has what it is asked for: policies of eviction beside an exact list of the
//! least recently used keys.

use std::collections::{BTreeMap, HashMap};

use fastrand::Rng;
use freeport_kv_commands::{Evicted, EvictionOptions, Policy};
use freeport_testbed::seed;

use crate::harness::Local;

const KEYS: usize = 20_000;
/// Keys that a cache has at most.
const CAPACITY: usize = 4_000;
const REQUESTS: usize = 150_000;
/// Requests before those that count.
const WARM_UP: usize = 50_000;

/// Requests for keys, whose popularity follows Zipf's law with an exponent of 0.99.
fn requests(random: &mut Rng) -> Vec<usize> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=KEYS)
        .map(|rank| {
            sum += (rank as f64).powf(-0.99);
            sum
        })
        .collect();
    let request = |at: f64| sums.partition_point(|one| *one < at).min(KEYS - 1);
    (0..REQUESTS).map(|_| request(random.f64() * sum)).collect()
}

/// Share of hits of a cache that evicts the least recently used key.
fn exact(requests: &[usize]) -> f64 {
    let (mut used_at, mut by_time) = (HashMap::new(), BTreeMap::new());
    let mut hits = 0;
    for (time, key) in requests.iter().enumerate() {
        match used_at.insert(*key, time) {
            Some(before) => {
                hits += usize::from(time >= WARM_UP);
                by_time.remove(&before);
            }
            None if used_at.len() > CAPACITY => {
                let (_, oldest) = by_time.pop_first().expect("the cache is full");
                used_at.remove(&oldest);
            }
            None => {}
        }
        by_time.insert(time, *key);
    }
    hits as f64 / (REQUESTS - WARM_UP) as f64
}

/// Share of hits with a policy; each request takes `request_ms`.
fn share(policy: &str, requests: &[usize], request_ms: f64) -> f64 {
    let mut local = Local::new();
    let options = EvictionOptions { policy: Policy::of(policy), ..EvictionOptions::default() };
    local.store.set_eviction(0, options, 0);
    let (mut hits, mut tended_ms) = (0, 0);
    for (time, key) in requests.iter().enumerate() {
        let now_ms = (time as f64 * request_ms) as u64;
        local.now_ms = Some(now_ms);
        if now_ms >= tended_ms + 100 || time < WARM_UP {
            local.store.shard_mut(0).tend_uses(now_ms);
            tended_ms = now_ms;
        }
        let key = format!("key{key}").into_bytes();
        if local.call(&[b"GET", &key]) != b"$-1\r\n" {
            hits += usize::from(time >= WARM_UP);
            continue;
        }
        while local.store.shard(0).keys() >= CAPACITY {
            let shard = local.store.shard_mut(0);
            assert_ne!(shard.evict(now_ms, &mut local.effects), Evicted::NoneLeft);
        }
        local.call(&[b"SET", &key, b"a value that is stored in a block", b"EX", b"1000000"]);
        local.effects.events.clear();
    }
    hits as f64 / (REQUESTS - WARM_UP) as f64
}

#[test]
fn policies_come_near_to_an_exact_list() {
    let requests = requests(&mut Rng::with_seed(seed()));
    let exact = exact(&requests);
    println!("exact list: {exact:.4}");
    for (policy, request_ms, least) in [
        ("allkeys-lru", 20.0, exact - 0.02),
        ("volatile-lru", 20.0, exact - 0.02),
        ("allkeys-lfu", 20.0, exact - 0.02),
        // The clock of 1 s hardly moves: between a random choice and an exact one.
        ("allkeys-lru", 0.02, exact - 0.10),
        ("allkeys-lfu", 0.02, exact - 0.06),
        ("allkeys-random", 20.0, exact - 0.12),
    ] {
        let share = share(policy, &requests, request_ms);
        println!("{policy}, {request_ms} ms for a request: {share:.4}");
        assert!((least..0.95).contains(&share), "{policy}: {share:.3}, exact list {exact:.3}");
    }
}
