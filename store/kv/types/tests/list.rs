// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists of both forms against a deque, with the same operations.

use freeport_kv_types::list::{End, List, ListRef, Search};
use freeport_kv_types::{Limits, indexes};
use freeport_testbed::{seed, usual_or_long};
use std::collections::VecDeque;
use std::num::NonZeroI64;

type Model = VecDeque<Vec<u8>>;

fn limits(node_bytes: usize) -> Limits {
    Limits { list_node_bytes: node_bytes, ..Limits::default() }
}

fn values(list: ListRef<'_>) -> Vec<Vec<u8>> {
    list.iter().map(|entry| entry.to_vec()).collect()
}

fn random_value(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u8(..20) {
        0 => vec![b'x'; random.usize(..400)],
        1..10 => random.i32(-5..5).to_string().into_bytes(),
        _ => format!("value {}", random.u8(..20)).into_bytes(),
    }
}

fn random_end(random: &mut fastrand::Rng) -> End {
    if random.bool() { End::Front } else { End::Back }
}

fn random_index(random: &mut fastrand::Rng, len: usize) -> i64 {
    let len = len as i64;
    random.i64(-len - 2..=len + 2)
}

/// One operation on the model, and its result as text.
fn change_model(random: &mut fastrand::Rng, model: &mut Model) -> String {
    let len = model.len();
    match random.u8(..24) {
        0..12 => {
            match (random_end(random), random_value(random)) {
                (End::Front, value) => model.push_front(value),
                (End::Back, value) => model.push_back(value),
            }
            String::new()
        }
        12..16 => {
            let popped = match random_end(random) {
                End::Front => model.pop_front(),
                End::Back => model.pop_back(),
            };
            format!("{popped:?}")
        }
        16..19 => {
            let side = random_end(random);
            let (pivot, value) = (random_value(random), random_value(random));
            let found = model.iter().position(|other| *other == pivot);
            if let Some(index) = found {
                model.insert(index + usize::from(side == End::Back), value);
            }
            format!("{}", found.is_some())
        }
        19..22 => {
            let (index, value) = (random_index(random, len), random_value(random));
            let found = indexes::position(len, index);
            if let Some(index) = found {
                model[index] = value;
            }
            format!("{}", found.is_some())
        }
        22 => {
            let (count, value) = (random.i64(-3..4), random_value(random));
            let mut equal: Vec<_> = (0..len).filter(|&index| model[index] == value).collect();
            if count < 0 {
                equal.reverse();
            }
            equal.truncate(if count == 0 { len } else { count.unsigned_abs() as usize });
            equal.sort_unstable();
            equal.iter().rev().for_each(|&index| drop(model.remove(index)));
            format!("{}", equal.len())
        }
        _ if random.u8(..8) == 0 => {
            let range = indexes::range(len, random_index(random, len), random_index(random, len));
            model.truncate(range.end);
            model.drain(..range.start);
            String::new()
        }
        _ => {
            let start = random.usize(..=len);
            let end = (start + random.usize(..60)).min(len);
            format!("{}", model.drain(start..end).count())
        }
    }
}

/// The same operation on a list.
fn change_list(random: &mut fastrand::Rng, list: &mut List, limits: &Limits) -> String {
    let len = list.len();
    match random.u8(..24) {
        0..12 => {
            let end = random_end(random);
            list.push(limits, end, &random_value(random));
            String::new()
        }
        12..16 => format!("{:?}", list.pop(limits, random_end(random))),
        16..19 => {
            let side = random_end(random);
            let (pivot, value) = (random_value(random), random_value(random));
            format!("{}", list.insert(limits, side, &pivot, &value))
        }
        19..22 => {
            let (index, value) = (random_index(random, len), random_value(random));
            format!("{}", list.set(limits, index, &value))
        }
        22 => {
            let (count, value) = (random.i64(-3..4), random_value(random));
            format!("{}", list.remove(limits, count, &value))
        }
        _ if random.u8(..8) == 0 => {
            let range = indexes::range(len, random_index(random, len), random_index(random, len));
            list.trim(limits, range);
            String::new()
        }
        _ => {
            let start = random.usize(..=len);
            format!("{}", list.remove_range(limits, start..start + random.usize(..60)))
        }
    }
}

#[test]
fn operations_give_what_a_deque_gives() {
    let forms = [limits(0), limits(100), limits(usize::MAX / 2)];
    let first = seed();
    for seed in first..first + usual_or_long(12, 400) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model::new();
        let mut lists = forms.each_ref().map(|_| List::default());
        for step in 0..1500 {
            let choice = random.u64(..);
            let expected = change_model(&mut fastrand::Rng::with_seed(choice), &mut model);
            for (list, limits) in lists.iter_mut().zip(&forms) {
                let found = change_list(&mut fastrand::Rng::with_seed(choice), list, limits);
                assert_eq!(found, expected, "seed {seed}, step {step}");
                assert_eq!(list.len(), model.len(), "seed {seed}, step {step}");
            }
            if step % 40 == 0 {
                lists.iter().for_each(|list| assert_queries(list, &model, choice));
            }
        }
        assert_eq!(
            lists.each_ref().map(|list| list.view().encoding()),
            ["quicklist", "quicklist", "listpack"]
        );
    }
}

fn assert_queries(list: &List, model: &Model, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let view = list.view();
    let len = model.len();
    assert!(view.iter().map(|entry| entry.to_vec()).eq(model.iter().cloned()));
    assert!(view.iter().rev().map(|entry| entry.to_vec()).eq(model.iter().rev().cloned()));
    assert_eq!(view.end(End::Front).map(|entry| entry.to_vec()), model.front().cloned());
    assert_eq!(view.end(End::Back).map(|entry| entry.to_vec()), model.back().cloned());
    for _ in 0..10 {
        let index = random_index(&mut random, len);
        let expected = indexes::position(len, index).map(|index| model[index].clone());
        assert_eq!(view.get(index).map(|entry| entry.to_vec()), expected);

        let start = random.usize(..=len);
        let end = (start + random.usize(..50)).min(len);
        let mut elements = view.range(start..end);
        let mut expected = model.range(start..end);
        assert_eq!(elements.len(), expected.len());
        while elements.len() > 0 {
            let (found, expected) = match random.bool() {
                true => (elements.next(), expected.next()),
                false => (elements.next_back(), expected.next_back()),
            };
            assert_eq!(found.map(|entry| entry.to_vec()).as_ref(), expected);
        }
        assert_eq!(elements.next(), None);
        assert_eq!(elements.next_back(), None);

        let value = random_value(&mut random);
        let rank = [1, 2, -1, -2][random.usize(..4)];
        let search = Search {
            rank: NonZeroI64::new(rank).unwrap(),
            count: random.bool().then(|| random.usize(..3)),
            max_compared: random.bool().then(|| random.usize(..len + 2)),
        };
        let mut found = vec![];
        view.positions(&value, search, |index| found.push(index));
        assert_eq!(found, positions(model, &value, search));
    }
    let mut bytes = vec![];
    view.serialize(&mut bytes);
    let read = List::deserialize(&bytes, &limits(usize::MAX)).unwrap();
    assert_eq!(values(read.view()), values(view));
    assert_eq!(read.view().encoding(), view.encoding());
}

fn positions(model: &Model, value: &[u8], search: Search) -> Vec<usize> {
    let mut indexes: Vec<_> = (0..model.len()).collect();
    if search.rank.is_negative() {
        indexes.reverse();
    }
    indexes.truncate(search.max_compared.unwrap_or(usize::MAX));
    indexes.retain(|&index| model[index] == value);
    let skipped = search.rank.get().unsigned_abs() as usize - 1;
    let count = search.count.unwrap_or(usize::MAX);
    indexes.into_iter().skip(skipped).take(count).collect()
}

#[test]
fn a_list_is_packed_up_to_its_limit() {
    let limits = Limits::default();
    let mut list = List::default();
    while list.view().encoding() == "listpack" {
        list.push(&limits, End::Back, &[b'x'; 98]);
    }
    assert_eq!(list.len(), 81);
    list.pop(&limits, End::Back);
    assert_eq!(list.view().encoding(), "quicklist");
    assert!(!list.set(&limits, 80, b"1"));
}

#[test]
fn long_elements_have_nodes_of_their_own() {
    let limits = limits(8192);
    let mut list = List::default();
    for number in 0..10 {
        list.push(&limits, End::Back, &vec![number; 20_000]);
        list.push(&limits, End::Back, &[number]);
    }
    list.set(&limits, 3, &[9; 30_000]);
    list.insert(&limits, End::Back, &[5], &[8; 10_000]);
    let lengths: Vec<_> = list.view().iter().map(|entry| entry.len()).collect();
    let mut expected = [20_000, 1].repeat(10);
    expected[3] = 30_000;
    expected.insert(12, 10_000);
    assert_eq!(lengths, expected);
    assert_eq!(list.remove(&limits, 0, &[4; 20_000]), 1);
    assert_eq!(list.len(), 20);
}

#[test]
fn memory_is_that_of_the_elements() {
    let limits = Limits::default();
    for end in [End::Front, End::Back] {
        let mut list = List::default();
        for number in 0..50_000 {
            list.push(&limits, end, format!("value {number}").as_bytes());
        }
        let bytes = list.view().memory_bytes();
        assert!((12 * 50_000..14 * 50_000).contains(&bytes), "{bytes}");
        list.trim(&limits, 10..20);
        let bytes = list.view().memory_bytes();
        assert!(bytes < 1000, "{bytes}");
    }
}

#[test]
fn damaged_snapshots_are_refused() {
    for node_bytes in [0, 50, 10_000] {
        let limits = limits(node_bytes);
        let mut list = List::default();
        (0..40).for_each(|number| list.push(&limits, End::Back, &[b'a' + number; 3]));
        let mut bytes = vec![];
        list.view().serialize(&mut bytes);
        for end in 2..bytes.len() {
            assert!(List::deserialize(&bytes[..end], &limits).is_err(), "{end} bytes");
        }
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..2000 {
            let mut damaged = bytes.clone();
            damaged[random.usize(..bytes.len())] ^= 1 << random.u8(..8);
            if let Ok(read) = List::deserialize(&damaged, &limits) {
                assert_eq!(values(read.view()).len(), read.len());
            }
        }
    }
    let error = List::deserialize(&[1, 0xff, 0xff, 0x03, 0xff, 0xff, 0x7f], &limits(0)).err();
    assert_eq!(error.map(|error| error.offset), Some(4));
}
