// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scans visit every pair that stays, while the index grows between their steps.

use std::collections::HashMap;

use freeport_kv_engine::{Engine, Index, Options};

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

#[test]
fn a_scan_without_changes_visits_every_pair_once() {
    for index in [Index::Growing { fill: 0.8 }, Index::Fixed { ratio: 0.01 }] {
        let options = Options { memory_bytes: 32 << 20, index, ..Options::default() };
        let mut engine = Engine::new(options).expect("options are sound");
        for number in 0..30_000 {
            engine.put(&key(number), &number.to_le_bytes()).expect("there is memory");
        }
        let mut seen = HashMap::new();
        let mut cursor = 0;
        loop {
            cursor = engine.scan(cursor, |key, value| {
                assert_eq!(key, value.bytes);
                *seen.entry(key.to_vec()).or_insert(0) += 1;
            });
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), 30_000);
        assert!(seen.values().all(|&times| times == 1));
    }
}

#[test]
fn a_scan_visits_every_pair_that_stays_while_the_index_grows() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    (0..5_000).for_each(|number| {
        engine.put(&key(number), b"stays").expect("there is memory");
    });
    let mut seen = HashMap::new();
    let (mut cursor, mut more) = (0, 5_000);
    loop {
        cursor = engine.scan(cursor, |key, _| *seen.entry(key.to_vec()).or_insert(0) += 1);
        if cursor == 0 {
            break;
        }
        for _ in 0..40 {
            engine.put(&key(more), b"comes").expect("there is memory");
            engine.delete(&key(more - 20));
            more += 1;
        }
        (0..5_000).filter(|number| number % 7 == 0).for_each(|number| {
            engine.put(&key(number), b"stays, in a block").expect("there is memory");
        });
    }
    assert!(more > 20_000, "the index grew");
    let missing = (0..4_980).find(|&number| !seen.contains_key(&key(number)[..]));
    assert_eq!(missing, None);
}

#[test]
fn a_cursor_that_no_scan_gave_ends_too() {
    for index in [Index::Growing { fill: 0.8 }, Index::Fixed { ratio: 0.01 }] {
        let engine =
            Engine::new(Options { index, ..Options::default() }).expect("options are sound");
        let mut cursor = u64::MAX - 5;
        let mut steps = 0_u64;
        loop {
            cursor = engine.scan(cursor, |_, _| ());
            steps += 1;
            if cursor == 0 {
                break;
            }
            assert!(steps < 1 << 20, "a scan has an end");
        }
    }
}

#[test]
fn random_cursors_reach_every_pair() {
    for index in [Index::Growing { fill: 0.8 }, Index::Fixed { ratio: 0.01 }] {
        let options = Options { memory_bytes: 1 << 20, index, ..Options::default() };
        let mut engine = Engine::new(options).expect("options are sound");
        for number in 0..500 {
            engine.put(&key(number), b"").expect("there is memory");
        }
        let mut random = fastrand::Rng::with_seed(7);
        let mut seen = HashMap::new();
        for _ in 0..5_000 {
            let cursor = engine.cursor_from(random.u64(..));
            engine.scan(cursor, |key, _| *seen.entry(key.to_vec()).or_insert(0) += 1);
        }
        assert_eq!(seen.len(), 500);
        // Any number is a cursor.
        for cursor in [u64::MAX, u64::MAX - 1, 1 << 63] {
            engine.scan(cursor, |_, _| {});
        }
    }
}
