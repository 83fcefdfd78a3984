// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random operations on sets of every form, against a set of the standard library.

use freeport_kv_types::set::{Set, SetRef, algebra};
use freeport_kv_types::{Entry, Limits};
use freeport_testbed::{seed, usual_or_long};
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeSet<Vec<u8>>;

/// Limits under which sets stay integers or packed, pass through all forms, and are always large.
fn all_limits() -> [Limits; 4] {
    let with = |set_integers, set_entries, set_value_bytes| Limits {
        set_integers,
        set_entries,
        set_value_bytes,
        hash_seed: 5,
        ..Limits::default()
    };
    let most = usize::MAX;
    [with(most, most, most), with(30, 40, 12), with(0, 20, 10), with(0, 0, 0)]
}

/// Returns an integer, or with `texts` sometimes another text.
fn member(random: &mut fastrand::Rng, texts: bool) -> Vec<u8> {
    let number = random.i64(-60..60) << [0, 0, 9, 33][random.usize(0..4)];
    if texts && random.u32(0..4) == 0 {
        return format!("member {}", random.u32(0..200)).into_bytes();
    }
    number.to_string().into_bytes()
}

fn members(view: SetRef<'_>) -> Model {
    let mut all = Model::new();
    for member in view.iter() {
        assert!(all.insert(member.to_vec()), "{member:?} twice");
    }
    all
}

fn operate(
    random: &mut fastrand::Rng,
    set: &mut Set,
    limits: &Limits,
    model: &mut Model,
    texts: bool,
) {
    let member = member(random, texts);
    match random.u32(0..20) {
        0..10 => assert_eq!(set.add(limits, &member), model.insert(member)),
        10..18 => assert_eq!(set.remove(&member), model.remove(&member)),
        18 => {
            let mut choose = |n: usize| random.usize(0..n);
            let popped = set.pop(&mut choose);
            assert_eq!(popped.is_some(), !model.is_empty());
            assert!(popped.is_none_or(|member| model.remove(&member)));
        }
        _ => {
            let count = random.usize(0..5);
            let popped = set.pop_many(count, &mut |n: usize| random.usize(0..n));
            assert_eq!(popped.len(), count.min(model.len()));
            assert!(popped.iter().all(|member| model.remove(member)));
        }
    }
    assert_eq!(set.view().len(), model.len());
}

#[test]
fn random_operations_match_a_set() {
    let first = seed();
    for seed in first..first + usual_or_long(15, 500) {
        for limits in &all_limits() {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut set, mut model) = (Set::default(), Model::new());
            // A failure names the seed.
            println!("seed {seed}, up to {} entries", limits.set_entries);
            for step in 0..400 {
                operate(&mut random, &mut set, limits, &mut model, step > 150);
                let member = member(&mut random, true);
                assert_eq!(set.view().contains(&member), model.contains(&member));
                if step % 20 == 0 {
                    assert_eq!(members(set.view()), model);
                }
            }
            let mut scanned = vec![];
            let mut cursor = 0;
            loop {
                cursor = set.view().scan(cursor, 5, |member| scanned.push(member.to_vec()));
                if cursor == 0 {
                    break;
                }
            }
            scanned.sort();
            assert!(scanned.iter().eq(model.iter()));
            let mut bytes = vec![];
            set.view().serialize(&mut bytes);
            let read = Set::deserialize(&bytes, limits).expect("what was written");
            assert_eq!(read.view().encoding(), set.view().encoding());
            assert_eq!(members(read.view()), model);
        }
    }
}

#[test]
fn forms_are_those_of_redis() {
    let limits = Limits::default();
    let of = |texts: &[&str]| {
        let mut set = Set::default();
        texts.iter().for_each(|text| assert!(set.add(&limits, text.as_bytes())));
        set
    };
    let numbers = |count: i64| {
        let mut set = Set::default();
        (0..count).for_each(|value| assert!(set.add(&limits, value)));
        set
    };
    assert_eq!(of(&["3", "-1"]).view().encoding(), "intset");
    assert_eq!(of(&["3", "a"]).view().encoding(), "listpack");
    assert_eq!(of(&["a", "3"]).view().encoding(), "listpack");
    assert_eq!(of(&["a", &"x".repeat(64)]).view().encoding(), "listpack");
    assert_eq!(of(&["a", &"x".repeat(65)]).view().encoding(), "hashtable");
    assert_eq!(numbers(512).view().encoding(), "intset");
    assert_eq!(numbers(513).view().encoding(), "hashtable");
    for (count, expected) in [(127, "listpack"), (128, "hashtable")] {
        let mut set = numbers(count);
        set.add(&limits, b"text");
        assert_eq!(set.view().encoding(), expected, "{count} integers and a text");
    }
    assert_eq!(Set::for_members(&limits, b"a", 129).view().encoding(), "hashtable");
    assert_eq!(Set::for_members(&limits, b"1", 512).view().encoding(), "listpack");
    let members: Vec<_> = of(&["30", "-1", "7"]).view().iter().map(Entry::to_vec).collect();
    assert_eq!(members, [b"-1".to_vec(), b"7".to_vec(), b"30".to_vec()]);
}

#[test]
fn algebra_matches_sorted_sets() {
    let first = seed();
    for seed in first..first + usual_or_long(150, 5000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let limits = &all_limits()[random.usize(0..4)];
        let (mut sets, mut models) = (vec![], vec![]);
        for _ in 0..random.usize(1..5) {
            let (mut set, mut model) = (Set::default(), Model::new());
            let texts = random.bool();
            for _ in 0..random.usize(0..100) {
                operate(&mut random, &mut set, limits, &mut model, texts);
            }
            sets.push(set);
            models.push(model);
        }
        let views: Vec<SetRef<'_>> = sets.iter().map(Set::view).collect();
        let fold = |combine: fn(&Model, &Model) -> Model| {
            models[1..].iter().fold(models[0].clone(), |all, model| combine(&all, model))
        };
        let expected = fold(|one, other| one | other);
        assert_eq!(members(algebra::union(&views, limits).view()), expected, "seed {seed}");
        let expected = fold(|one, other| one - other);
        assert_eq!(members(algebra::difference(&views, limits).view()), expected, "seed {seed}");
        let expected = fold(|one, other| one & other);
        let limit = random.usize(0..20);
        let mut found = Model::new();
        let emit = |member: Entry<'_>| assert!(found.insert(member.to_vec()), "seed {seed}");
        algebra::intersection(&views, limit, emit);
        assert!(found.is_subset(&expected), "seed {seed}");
        let most = if limit == 0 { usize::MAX } else { limit };
        assert_eq!(found.len(), expected.len().min(most), "seed {seed}");
    }
}

#[test]
fn random_members_of_every_form() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut choose = |n: usize| random.usize(0..n);
    for limits in &all_limits() {
        let mut set = Set::default();
        assert_eq!(set.view().random(&mut choose), None);
        assert_eq!(set.pop(&mut choose), None);
        (0..40i64).for_each(|value| assert!(set.add(limits, value)));
        let mut times = BTreeMap::new();
        for _ in 0..40_000 {
            let member = set.view().random(&mut choose).expect("it has members");
            *times.entry(member.integer()).or_insert(0) += 1;
        }
        assert_eq!(times.len(), 40);
        assert!(times.values().all(|times| (800..1200).contains(times)), "{times:?}");
        for count in [0, 5, 20, 40, 90] {
            let mut chosen = BTreeSet::new();
            set.view().random_distinct(count, &mut choose, |member| {
                assert!(chosen.insert(member.to_vec()));
            });
            assert_eq!(chosen.len(), count.min(40));
        }
    }
}

#[test]
fn damaged_sets_are_refused_or_read_safely() {
    let limits = &all_limits()[1];
    let first = seed();
    for seed in first..first + usual_or_long(150, 5000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut set, mut model) = (Set::default(), Model::new());
        for step in 0..random.usize(1..80) {
            operate(&mut random, &mut set, limits, &mut model, step > 40);
        }
        let mut bytes = vec![];
        set.view().serialize(&mut bytes);
        let at = random.usize(0..bytes.len());
        bytes[at] ^= random.u8(1..);
        if let Ok(set) = Set::deserialize(&bytes, limits) {
            assert_eq!(members(set.view()).len(), set.view().len(), "seed {seed}");
        }
    }
}
