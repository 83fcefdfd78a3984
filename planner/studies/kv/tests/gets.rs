// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Gets by all alternatives: equal results, counted round trips, misses and limits.

use crate::stores::{Store, small};
use freeport_study_kv::{Alternative, KvError, LimitError, Options};
use freeport_study_verbs::{Counts, Verbs};
use std::collections::BTreeMap;
use std::rc::Rc;

/// One history, with gets by all alternatives after each change.
#[test]
fn all_alternatives_return_the_same() {
    for (bucket_entries, index_copies) in [(4, 2), (1, 1), (2, 3)] {
        let mut store = Store::begin(Options { bucket_entries, index_copies, ..small() }, 1);
        let (verbs, client) = store.client(0);
        let test = async move {
            let mut random = fastrand::Rng::with_seed(7);
            let mut expected = BTreeMap::new();
            for _ in 0..150 {
                let key = format!("key {}", random.u32(..20)).into_bytes();
                match random.u32(..4) {
                    0 => {
                        let there = client.delete(&key).await.expect("it works");
                        assert_eq!(there, expected.remove(&key).is_some());
                    }
                    _ => {
                        let value: Vec<u8> =
                            (0..random.usize(..200)).map(|_| random.u8(..)).collect();
                        client.put(&key, &value).await.expect("it works");
                        expected.insert(key.clone(), value);
                    }
                }
                let other = format!("key {}", random.u32(..20)).into_bytes();
                for key in [key, other] {
                    for alternative in Alternative::ALL {
                        let found = client.get(alternative, &key).await.expect("it works");
                        assert_eq!(found.as_ref(), expected.get(&key), "{alternative}");
                    }
                }
            }
        };
        store.result(&verbs, test);
        assert!(store.server.cached() > 3);
    }
}

/// Table 3.5 of the study.
#[test]
fn round_trips_are_those_of_the_study() {
    let mut store = Store::begin(Options { buckets: 4096, ..small() }, 1);
    let (verbs, client) = store.client(0);
    let client = Rc::new(client);
    // Not cached: it is too long.
    let (hot, cold) = (b"hot".as_slice(), b"cold".as_slice());
    let putting = Rc::clone(&client);
    store.result(&verbs, async move {
        putting.put(hot, b"value").await.expect("it works");
        putting.put(cold, &[1; 1000]).await.expect("it works");
    });
    let cases = [
        (Alternative::HostReads, hot, [2, 0]),
        (Alternative::CallHost, hot, [0, 1]),
        (Alternative::CallIndex, hot, [0, 1]),
        (Alternative::SplitReads, hot, [2, 0]),
        (Alternative::CallCache, hot, [0, 1]),
        (Alternative::CallCache, cold, [1, 1]),
        // The first get learns the address.
        (Alternative::CacheReads, hot, [0, 1]),
        (Alternative::CacheReads, hot, [1, 0]),
    ];
    for (alternative, key, [reads, calls]) in cases {
        let before = verbs.counts();
        let getting = Rc::clone(&client);
        let value = store.result(&verbs, async move { getting.get(alternative, key).await });
        assert!(value.expect("it works").is_some());
        let counts = verbs.counts().since(before);
        let expected = Counts { reads, calls, bytes: counts.bytes, ..Counts::default() };
        assert_eq!(counts, expected, "{alternative}");
    }
    assert_eq!((client.answers(), client.misses(), client.retries()), (3, 1, 0));
    let outcome = store.world.outcome();
    let host = outcome.uses.iter().find(|busy| busy.name == "cores of the host");
    assert_eq!(host.map(|busy| busy.share), Some(0.0), "the host does nothing");
    assert!(outcome.uses.iter().any(|busy| busy.name == "cores of the SoC" && busy.share > 0.0));
}

/// A put invalidates all copies, and readers of a learned address notice that.
#[test]
fn cached_copies_are_coherent() {
    let options = Options { item_copies: 4, ..small() };
    let mut store = Store::begin(options, 1);
    let (verbs, client) = store.client(0);
    let (other_verbs, other) = store.client(1);
    let client = Rc::new(client);
    for round in 0_u8..6 {
        let client = Rc::clone(&client);
        store.result(&verbs, async move {
            client.put(b"key", &[round; 30]).await.expect("it works");
            for _ in 0..8 {
                let found = client.get(Alternative::CacheReads, b"key").await.expect("it works");
                assert_eq!(found, Some(vec![round; 30]));
            }
            // Another key takes the places of the copies.
            client.delete(b"key").await.expect("it works");
            client.put(&[round], &[0; 30]).await.expect("it works");
            client.put(b"key", &[round + 100; 30]).await.expect("it works");
            // Each get reads a copy at random.
            for _ in 0..8 {
                let found = client.get(Alternative::CacheReads, b"key").await.expect("it works");
                assert_eq!(found, Some(vec![round + 100; 30]));
            }
        });
    }
    assert_eq!(client.retries(), 6, "one for each time that an address was stale");
    assert_eq!(store.server.cached(), 7);
    store.result(&other_verbs, async move {
        assert!(other.delete(b"key").await.expect("it works"));
    });
    assert_eq!(store.server.cached(), 6);
    store.result(&verbs, async move {
        assert_eq!(client.get(Alternative::CacheReads, b"key").await, Ok(None));
    });
}

#[test]
fn limits_are_errors_that_name_them() {
    let tight = |soc_memory| Options { soc_memory, ..small() };
    // 2 copies of 64 buckets of 64 B.
    let least = 2 * 64 * 64 + (8 << 10);
    assert!(tight(least).layout().is_ok());
    let error = tight(least - 1).layout().expect_err("too little");
    assert_eq!(error, LimitError::SocMemory { limit: least - 1, index: 8192, cache: 8192 });
    let error = Options { index_copies: 0, ..small() }.layout().expect_err("none");
    assert_eq!(error.to_string(), "index_copies is 0; it has to be 1 to 64");

    let error = Options { cached_item_max: u64::MAX, ..small() }.layout().expect_err("too long");
    assert!(error.to_string().ends_with("it has to be 1 to 2^24 B"), "{error}");

    let mut options = Options { item_memory: 1024, value_max: 100, ..small() };
    assert_eq!(options.set("patience_ms", 7), Ok(()));
    assert_eq!(options.patience, std::time::Duration::from_millis(7));
    let mut store = Store::begin(options, 1);
    let (verbs, client) = store.client(0);
    let test = async move {
        assert_eq!(client.put(b"", b"").await, Err(KvError::Key(0)));
        assert_eq!(client.get(Alternative::CallHost, &[1; 256]).await, Err(KvError::Key(256)));
        let long = client.put(b"key", &[1; 101]).await;
        assert_eq!(long, Err(KvError::Value { bytes: 101, limit: 100 }));
        client.put(&[1; 255], &[1; 100]).await.expect("the longest");
        let mut stored = vec![];
        let error = loop {
            let key = [stored.len() as u8];
            match client.put(&key, &[2; 100]).await {
                Ok(()) => stored.push(key),
                Err(error) => break error,
            }
        };
        let full = "no 120 B are free (item_memory = 1024 B)";
        assert_eq!(error, KvError::Full(full.into()));
        // Nothing is lost, and what is deleted makes room.
        for key in &stored {
            let found = client.get(Alternative::HostReads, key).await;
            assert_eq!(found, Ok(Some(vec![2; 100])));
        }
        assert_eq!(client.get(Alternative::HostReads, &[stored.len() as u8]).await, Ok(None));
        assert_eq!(client.delete(&stored[0]).await, Ok(true));
        assert_eq!(client.put(b"another", &[3; 98]).await, Ok(()));
    };
    store.result(&verbs, test);

    let mut store = Store::begin(Options { buckets: 2, bucket_entries: 1, ..small() }, 1);
    let (verbs, client) = store.client(0);
    let test = async move {
        for key in [b"a", b"b"] {
            client.put(key, b"value").await.expect("it fits");
        }
        let error = client.put(b"c", b"value").await.expect_err("no bucket");
        let full = "the 2 buckets that can have the key are full; use more than 2 buckets or \
                    more than 1 entries in each (buckets, bucket_entries)";
        assert_eq!(error, KvError::Full(full.into()));
        assert_eq!(client.get(Alternative::SplitReads, b"c").await, Ok(None));
        assert_eq!(client.get(Alternative::SplitReads, b"b").await, Ok(Some(b"value".into())));
    };
    store.result(&verbs, test);
}

/// A get that never ends would hide that the processor died in the middle of a put.
#[test]
fn a_put_that_never_ends_makes_gets_fail() {
    let options = Options { patience: std::time::Duration::from_millis(1), ..small() };
    let mut store = Store::begin(options, 1);
    let (verbs, client) = store.client(0);
    let (putting, putter) = store.client(1);
    store.result(&verbs, {
        let client = store.client(2).1;
        async move { client.put(b"key", b"value").await.expect("it works") }
    });
    let retired = {
        putting.spawn(async move {
            let _ = putter.put(b"key", b"another").await;
        });
        let host = store.host.clone();
        let items = store.options.layout().expect("within the limits").items;
        store.world.run_until(|_| {
            let word = freeport_study_verbs::Memory::load_word(host.memory(), items);
            word >> 62 == 3
        })
    };
    assert!(retired, "the old item becomes dead");
    store.world.kill(freeport_study_verbs::Place::Soc);
    let got = store.result(&verbs, async move { client.get(Alternative::HostReads, b"key").await });
    assert_eq!(got, Err(KvError::Changing(1)));
}
