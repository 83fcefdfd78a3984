// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random operations on hashes of every form, against a map of the standard library.

use freeport_kv_types::hash::IncrementError;
use freeport_kv_types::{Entry, Extended, Hash, HashRef, Limits, packed};
use freeport_testbed::{seed, usual_or_long};
use std::collections::{BTreeMap, HashMap};

type Model = HashMap<Vec<u8>, Vec<u8>>;

/// Limits under which hashes are always packed, become large, and are always large.
fn all_limits() -> [Limits; 3] {
    let with = |hash_entries, hash_value_bytes| Limits {
        hash_entries,
        hash_value_bytes,
        hash_seed: 5,
        ..Limits::default()
    };
    [with(usize::MAX, usize::MAX), with(20, 30), with(0, 0)]
}

fn field(random: &mut fastrand::Rng) -> Vec<u8> {
    let range = if random.bool() { 20 } else { 400 };
    let number = random.u32(0..range);
    let text = if random.bool() { number.to_string() } else { format!("field-{number}") };
    text.into_bytes()
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u32(0..10) {
        0 => vec![b'v'; random.usize(0..60)],
        1..5 => random.i32(..).to_string().into_bytes(),
        _ => format!("value {}", random.u32(..)).into_bytes(),
    }
}

fn operate(random: &mut fastrand::Rng, hash: &mut Hash, limits: &Limits, model: &mut Model) {
    let (field, value) = (field(random), value(random));
    match random.u32(0..20) {
        0..8 => {
            let is_new = hash.set(limits, &field, &value);
            assert_eq!(is_new, model.insert(field, value).is_none());
        }
        8..10 => {
            let is_new = hash.set_absent(limits, &field, &value);
            assert_eq!(is_new, !model.contains_key(&field));
            model.entry(field).or_insert(value);
        }
        10..18 => assert_eq!(hash.remove(&field), model.remove(&field).is_some()),
        _ => {
            assert_eq!(hash.view().get(&field).map(Entry::to_vec).as_ref(), model.get(&field));
            assert_eq!(hash.view().contains(&field), model.contains_key(&field));
        }
    }
    assert_eq!(hash.view().len(), model.len());
}

fn sorted<'a>(pairs: impl Iterator<Item = [Entry<'a>; 2]>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    for [field, value] in pairs {
        assert_eq!(all.insert(field.to_vec(), value.to_vec()), None, "{field:?} twice");
    }
    all
}

/// Compares the whole contents, as each way of reading them gives them.
fn compare(view: HashRef<'_>, model: &Model) {
    let expected = model.clone().into_iter().collect();
    assert_eq!(sorted(view.iter()), expected);
    assert!(model.iter().all(|(field, value)| view.get(field).is_some_and(|it| it == **value)));
    let mut scanned = vec![];
    let mut cursor = 0;
    loop {
        let mut emit = |pair: [Entry<'_>; 2]| scanned.push(pair.map(Entry::to_vec));
        cursor = view.scan(cursor, 7, &mut emit);
        if cursor == 0 {
            break;
        }
    }
    scanned.sort();
    let expected: Vec<_> = expected.into_iter().map(|(field, value)| [field, value]).collect();
    assert_eq!(scanned, expected);
}

#[test]
fn random_operations_match_a_map() {
    let first = seed();
    for seed in first..first + usual_or_long(10, 500) {
        for limits in &all_limits() {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut hash, mut model) = (Hash::default(), Model::new());
            // A failure names the seed.
            println!("seed {seed}, up to {} entries", limits.hash_entries);
            for step in 0..600 {
                operate(&mut random, &mut hash, limits, &mut model);
                if step % 50 == 0 {
                    compare(hash.view(), &model);
                }
            }
            let mut bytes = vec![];
            hash.view().serialize(&mut bytes);
            let read = Hash::deserialize(&bytes, limits).expect("what was written");
            assert_eq!(read.view().encoding(), hash.view().encoding());
            compare(read.view(), &model);
        }
    }
}

#[test]
fn limits_are_those_of_redis() {
    let limits = Limits::default();
    let mut hash = Hash::default();
    for at in 0..512 {
        hash.set(&limits, format!("{at}").as_bytes(), &[b'x'; 64]);
    }
    assert_eq!(hash.view().encoding(), "listpack");
    hash.set(&limits, b"512", b"");
    assert_eq!(hash.view().encoding(), "hashtable");
    hash.remove(b"512");
    assert_eq!(hash.view().encoding(), "hashtable");
    let mut hash = Hash::default();
    hash.set(&limits, b"a", &[b'x'; 65]);
    assert_eq!(hash.view().encoding(), "hashtable");
}

#[test]
fn fields_are_incremented() {
    for limits in &all_limits() {
        let mut hash = Hash::default();
        assert_eq!(hash.increment(limits, b"n", 5), Ok(5));
        assert_eq!(hash.increment(limits, b"n", -7), Ok(-2));
        assert_eq!(hash.increment(limits, b"n", i64::MIN), Err(IncrementError::Overflow));
        hash.set(limits, b"n", b"007");
        assert_eq!(hash.increment(limits, b"n", 1), Err(IncrementError::NotAnInteger));
        let tenth = Extended::parse(b"0.1").unwrap();
        assert_eq!(hash.increment_float(limits, b"n", tenth), Ok("7.1".into()));
        hash.set(limits, b"n", b"-.1");
        assert_eq!(hash.increment_float(limits, b"n", tenth), Ok("0".into()));
        assert_eq!(hash.view().get(b"n"), Some(Entry::Integer(0)));
        assert_eq!(hash.increment_float(limits, b"new", tenth), Ok("0.1".into()));
        hash.set(limits, b"n", b"x");
        assert_eq!(hash.increment_float(limits, b"n", tenth), Err(IncrementError::NotAFloat));
        let infinity = Extended::parse(b"inf").unwrap();
        assert_eq!(hash.increment_float(limits, b"new", infinity), Err(IncrementError::NotFinite));
        assert_eq!(hash.view().get(b"n"), Some(Entry::Bytes(b"x")));
    }
}

#[test]
fn random_fields_of_every_form() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut choose = |n: usize| random.usize(0..n);
    for limits in &all_limits() {
        let mut hash = Hash::default();
        assert_eq!(hash.view().random(&mut choose), None);
        for at in 0..40 {
            hash.set(limits, format!("{at}").as_bytes(), format!("v{at}").as_bytes());
        }
        let mut times = BTreeMap::new();
        for _ in 0..40_000 {
            let [field, value] = hash.view().random(&mut choose).expect("it has fields");
            assert_eq!(value.to_vec(), [b"v", field.to_vec().as_slice()].concat());
            *times.entry(field.to_vec()).or_insert(0) += 1;
        }
        assert_eq!(times.len(), 40);
        assert!(times.values().all(|times| (800..1200).contains(times)), "{times:?}");
        for count in [0, 5, 20, 40, 90] {
            let mut pairs = vec![];
            hash.view().random_distinct(count, &mut choose, |pair| pairs.push(pair));
            assert_eq!(sorted(pairs.into_iter()).len(), count.min(40));
        }
    }
}

/// A field that comes twice is found where it comes again.
#[test]
fn second_fields_are_refused() {
    let mut bytes = vec![0];
    for text in [b"a", b"1", b"b", b"2", b"a", b"3"] {
        let mut sequence = bytes.split_off(1);
        packed::push_back(&mut sequence, Entry::new(text));
        bytes.append(&mut sequence);
    }
    let refused = Hash::deserialize(&bytes, &Limits::default()).unwrap_err();
    assert_eq!((refused.offset, bytes[refused.offset + 1]), (10, b'a'));
    let mut many = vec![];
    (0..200).for_each(|at| packed::push_back(&mut many, Entry::Integer(at % 99 + 500)));
    let refused = Hash::deserialize(&[&[0], &many[..]].concat(), &Limits::default()).unwrap_err();
    assert_eq!(refused.offset, 1 + 2 + 198 * 4);
    let cut = [&[0, 1], &bytes[2..5]].concat();
    assert_eq!(Hash::deserialize(&cut, &Limits::default()).unwrap_err().offset, 5);
}

#[test]
fn damaged_hashes_are_refused_or_read_safely() {
    let limits = &all_limits()[1];
    let first = seed();
    for seed in first..first + usual_or_long(200, 10_000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut hash, mut model) = (Hash::default(), Model::new());
        for _ in 0..random.usize(1..60) {
            operate(&mut random, &mut hash, limits, &mut model);
        }
        let mut bytes = vec![];
        hash.view().serialize(&mut bytes);
        let at = random.usize(0..bytes.len());
        bytes[at] ^= random.u8(1..);
        if let Ok(hash) = Hash::deserialize(&bytes, limits) {
            assert_eq!(sorted(hash.view().iter()).len(), hash.view().len(), "seed {seed}");
        }
        bytes.truncate(at);
        assert!(at == 1 || Hash::deserialize(&bytes, limits).is_err(), "seed {seed}");
    }
}
