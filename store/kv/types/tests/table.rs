// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scans and random choices of tables that grow and shrink.

use freeport_kv_types::{Entry, Table};
use freeport_testbed::{seed, usual_or_long};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

fn number(value: usize) -> [Entry<'static>; 1] {
    [Entry::Integer(value as i64)]
}

fn value(element: [Entry<'_>; 1]) -> usize {
    element[0].integer().expect("all elements are integers") as usize
}

fn add(table: &mut Table<1>, values: Range<usize>) {
    for at in values {
        table.add(number(at));
    }
}

fn remove(table: &mut Table<1>, values: Range<usize>) {
    for at in values {
        table.remove(number(at)[0]);
    }
}

/// Elements that are there throughout are returned exactly once, others at most once for each time
/// that they were added.
#[test]
fn a_scan_returns_each_lasting_element_once() {
    let first = seed();
    for seed in first..first + usual_or_long(10, 300) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut table = Table::new(seed);
        let lasting = random.usize(0..500);
        let others = random.usize(0..3000);
        add(&mut table, 0..lasting);
        add(&mut table, lasting..lasting + others);
        let mut left = lasting..lasting + others;
        let mut times = HashMap::new();
        let mut cursor = 0;
        let mut fresh = 10_000;
        loop {
            let count = random.usize(0..30);
            cursor =
                table.scan(cursor, count, |element| *times.entry(value(element)).or_insert(0) += 1);
            if cursor == 0 {
                break;
            }
            // Grows or shrinks by much, so that ranges split and merge.
            if random.bool() {
                let end = random.usize(left.start..=left.end);
                remove(&mut table, left.start..end);
                left.start = end;
            } else {
                let added = random.usize(0..400);
                add(&mut table, fresh..fresh + added);
                fresh += added;
            }
        }
        for at in 0..lasting {
            assert_eq!(times.get(&at), Some(&1), "seed {seed}, element {at}");
        }
        assert!(times.values().all(|&times| times == 1), "seed {seed}");
    }
}

#[test]
fn cursors_are_small_numbers() {
    let mut table = Table::new(1);
    add(&mut table, 0..10_000);
    let mut cursor = 0;
    loop {
        cursor = table.scan(cursor, 10, |_| {});
        assert!(cursor < 4096, "{cursor}");
        if cursor == 0 {
            break;
        }
    }
}

/// A client may send any number as a cursor.
#[test]
fn any_cursor_is_accepted() {
    let mut table = Table::new(1);
    let mut random = fastrand::Rng::with_seed(seed());
    for at in 0..300 {
        for cursor in [random.u64(..), u64::MAX, 1 << 63, at as u64] {
            table.scan(cursor, 10, |element| assert!(value(element) < at));
        }
        table.add(number(at));
    }
}

#[test]
fn every_element_is_chosen_about_as_often() {
    let mut random = fastrand::Rng::with_seed(seed());
    for len in [1usize, 2, 30, 200] {
        let mut table = Table::new(7);
        add(&mut table, 0..len);
        let mut times = vec![0u32; len];
        let mut choose = |n: usize| random.usize(0..n);
        for _ in 0..len * 1000 {
            times[value(table.random(&mut choose).expect("it has elements"))] += 1;
        }
        assert!(times.iter().all(|times| (800..1200).contains(times)), "{len}: {times:?}");
    }
}

#[test]
fn distinct_choices_are_distinct() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut choose = |n: usize| random.usize(0..n);
    let mut table = Table::new(7);
    add(&mut table, 0..1000);
    for count in [0, 1, 10, 300, 333, 334, 999, 1000, 5000] {
        let mut chosen = HashSet::new();
        let mut emit = |element| assert!(chosen.insert(value(element)));
        table.random_distinct(count, &mut choose, &mut emit);
        assert_eq!(chosen.len(), count.min(1000));
    }
}

/// A caller without good randomness gets elements all the same.
#[test]
fn constant_choices_end() {
    let mut table = Table::new(3);
    add(&mut table, 0..1000);
    remove(&mut table, 2..1000);
    assert!(table.random(&mut |n| n - 1).is_some());
    add(&mut table, 2..1000);
    let mut chosen = HashSet::new();
    table.random_distinct(100, &mut |_| 0, |element| assert!(chosen.insert(value(element))));
    assert_eq!(chosen.len(), 100);
}

/// The memory that a table reports is returned as it shrinks.
#[test]
fn memory_follows_the_contents() {
    let mut table = Table::<1>::new(3);
    let empty = table.memory_bytes();
    let name = |at: usize| format!("member:{at}").into_bytes();
    for at in 0..20_000 {
        table.add([Entry::new(&name(at))]);
    }
    let full = table.memory_bytes();
    assert!(full > 20_000 * 12 && full < 20_000 * 28, "{full}");
    for at in 0..20_000 {
        table.remove(Entry::new(&name(at)));
    }
    assert!(table.memory_bytes() < empty + 200, "{}", table.memory_bytes());
}
