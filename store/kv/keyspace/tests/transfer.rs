// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that are copied, moved, serialized and looked at whatever their type.

use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::{Detached, Error, Expiry, Keyspace, Kind, Options, ValueRef};
use freeport_kv_types::list::End;
use freeport_kv_types::stream::NewId;
use freeport_kv_types::zset::AddOptions;
use freeport_kv_types::{Hash, Limits, List, Set, Stream, ZSet};

fn keyspace(memory_bytes: usize) -> Keyspace {
    let engine = EngineOptions { memory_bytes, ..EngineOptions::default() };
    Keyspace::new(Options { engine, ..Options::default() }).expect("options are sound")
}

/// Stores a value of each type with some elements, and returns the keys.
fn fill(keyspace: &mut Keyspace, elements: u32) -> [&'static [u8]; 6] {
    let texts: Vec<String> = (0..elements).map(|it| format!("element {it}")).collect();
    let text = "text".repeat(elements as usize);
    keyspace.set_string(b"string", text.as_bytes(), Expiry::AtMs(9_000), 0).expect("memory");
    let set_hash = |hash: &mut Hash, limits: &Limits| {
        for text in &texts {
            hash.set(limits, text.as_bytes(), b"value");
        }
    };
    keyspace.change(b"hash", 0, set_hash).expect("memory");
    let push = |list: &mut List, limits: &Limits| {
        texts.iter().for_each(|text| list.push(limits, End::Back, text.as_bytes()));
    };
    keyspace.change(b"list", 0, push).expect("memory");
    let add = |set: &mut Set, limits: &Limits| {
        for text in &texts {
            set.add(limits, text.as_bytes());
        }
    };
    keyspace.change(b"set", 0, add).expect("memory");
    let rank = |set: &mut ZSet, limits: &Limits| {
        for (text, score) in texts.iter().zip(0_u32..) {
            let options = AddOptions::default();
            set.add(limits, text.as_bytes(), f64::from(score), options).expect("a number");
        }
    };
    keyspace.change(b"zset", 0, rank).expect("memory");
    let log = |stream: &mut Stream, limits: &Limits| {
        for text in &texts {
            stream.add(limits, NewId::Auto, &[b"field", text.as_bytes()], 5).expect("ids ascend");
        }
    };
    keyspace.change(b"stream", 0, log).expect("memory");
    [b"string", b"hash", b"list", b"set", b"zset", b"stream"]
}

fn serialized(keyspace: &Keyspace, key: &[u8]) -> Option<(Kind, Vec<u8>)> {
    let value = keyspace.value(key, 0)?;
    let mut bytes = vec![];
    value.serialize(&mut bytes);
    Some((value.kind(), bytes))
}

#[test]
fn copies_and_moved_values_are_equal_and_independent() {
    for elements in [3, 3_000] {
        let (mut one, mut other) = (keyspace(64 << 20), keyspace(64 << 20));
        for key in fill(&mut one, elements) {
            let expected = serialized(&one, key).expect("it is there");
            other.set_string(b"copy", b"old", Expiry::AtMs(5), 0).expect("memory");
            other.insert(b"copy", one.copy(key, 0).expect("it is there"), 0).expect("memory");
            assert_eq!(serialized(&other, b"copy"), Some(expected.clone()));
            assert_eq!(other.expires_ms(b"copy", 0), one.expires_ms(key, 0));
            other.set_string(b"moved", b"old", Expiry::Never, 0).expect("memory");
            let expires = one.expires_ms(key, 0);
            assert_eq!(one.move_to(key, (&mut other, b"moved"), 0), Ok(true));
            assert!(one.value(key, 0).is_none());
            assert_eq!(serialized(&other, b"moved"), Some(expected.clone()));
            assert_eq!(other.expires_ms(b"moved", 0), expires);
            assert!(other.remove(b"moved", 0));
            assert_eq!(serialized(&other, b"copy"), Some(expected));
            assert!(other.remove(b"copy", 0));
            assert_eq!(one.move_to(key, (&mut other, b"moved"), 0), Ok(false));
        }
        for keyspace in [one, other] {
            let counts = (keyspace.len(), keyspace.expiring(), keyspace.large_values());
            assert_eq!(counts, (0, 0, 0));
        }
    }
}

#[test]
fn serialized_values_are_read_and_damaged_ones_refused() {
    let limits = Limits::default();
    let mut keyspace = keyspace(64 << 20);
    for elements in [2, 2_000] {
        for key in fill(&mut keyspace, elements) {
            let (kind, bytes) = serialized(&keyspace, key).expect("it is there");
            let value = Detached::deserialize(kind, &bytes, &limits).expect("it was serialized");
            keyspace.insert(b"again", value, 0).expect("memory");
            let again = serialized(&keyspace, b"again").expect("it was stored");
            // Tables may have another order: the bytes are the same apart from that.
            let sorted = |mut bytes: Vec<u8>| {
                bytes.sort_unstable();
                bytes
            };
            assert_eq!((again.0, sorted(again.1)), (kind, sorted(bytes.clone())));
            if kind != Kind::String {
                let cut = &bytes[..bytes.len() - 1];
                assert!(Detached::deserialize(kind, cut, &limits).is_err(), "{kind:?}");
                assert!(Detached::deserialize(kind, &[], &limits).is_err(), "{kind:?}");
            }
        }
    }
    for kind in [Kind::Hash, Kind::List, Kind::Set, Kind::SortedSet] {
        // The packed form without elements is the empty string.
        assert!(Detached::deserialize(kind, &[0], &limits).is_err(), "{kind:?}");
    }
    let short = Limits { text_bytes: 3, ..limits };
    assert!(Detached::deserialize(Kind::String, b"four", &short).is_err());
}

#[test]
fn what_does_not_fit_stays_where_it_is() {
    let (mut one, mut small) = (keyspace(64 << 20), keyspace(1 << 20));
    for key in fill(&mut one, 30_000) {
        let expected = serialized(&one, key).expect("it is there");
        small.set_string(b"key", b"old", Expiry::Never, 0).expect("memory");
        let mut number = 0_u32;
        while small.set_string(&number.to_le_bytes(), &[1; 2_000], Expiry::Never, 0).is_ok() {
            number += 1;
        }
        assert_eq!(one.move_to(key, (&mut small, b"key"), 0), Err(Error::OutOfMemory));
        let copy = one.copy(key, 0).expect("it is there");
        assert_eq!(small.insert(b"key", copy, 0), Err(Error::OutOfMemory));
        assert_eq!(serialized(&one, key), Some(expected));
        assert_eq!(small.string(b"key", 0), Ok(Some(&b"old"[..])));
    }
}

#[test]
fn encodings_and_memory_depend_on_the_form() {
    let mut keyspace = keyspace(64 << 20);
    let encodings = |keyspace: &Keyspace, keys: [&[u8]; 6]| {
        keys.map(|key| keyspace.value(key, 0).map_or("", ValueRef::encoding))
    };
    let keys = fill(&mut keyspace, 2);
    let small = ["embstr", "listpack", "listpack", "listpack", "listpack", "stream"];
    assert_eq!(encodings(&keyspace, keys), small);
    for key in keys {
        let bytes = keyspace.memory_of(key, 0).expect("it is there");
        assert!((20..200).contains(&bytes), "{bytes}");
    }
    fill(&mut keyspace, 3_000);
    let large = ["raw", "hashtable", "quicklist", "hashtable", "skiplist", "stream"];
    assert_eq!(encodings(&keyspace, keys), large);
    for key in keys {
        let bytes = keyspace.memory_of(key, 0).expect("it is there");
        assert!((12_000..1_000_000).contains(&bytes), "{bytes}");
    }
    keyspace.set_string(b"string", b"-17", Expiry::Never, 0).expect("memory");
    assert_eq!(keyspace.value(b"string", 0).map(ValueRef::encoding), Some("int"));
    assert_eq!(keyspace.memory_of(b"none", 0), None);
}

#[test]
fn every_key_is_chosen_about_as_often() {
    let mut keyspace = keyspace(64 << 20);
    let mut random = fastrand::Rng::with_seed(5);
    let mut choose = |n: usize| random.usize(0..n);
    assert_eq!(keyspace.random_key(0, &mut choose), None);
    for number in 0..500_u32 {
        let expiry = if number < 300 { Expiry::AtMs(10) } else { Expiry::Never };
        keyspace.set_string(&number.to_le_bytes(), b"", expiry, 0).expect("memory");
    }
    let mut times = vec![0_u32; 500];
    for _ in 0..100_000 {
        let key = keyspace.random_key(10, &mut choose).expect("200 keys live");
        times[u32::from_le_bytes(key.try_into().expect("four bytes")) as usize] += 1;
    }
    assert!(times[..300].iter().all(|times| *times == 0));
    assert!(times[300..].iter().all(|times| (350..650).contains(times)), "{times:?}");
    for number in 301..500_u32 {
        keyspace.remove(&number.to_le_bytes(), 0);
    }
    // The last living key is found among those that have expired.
    let last = 300_u32.to_le_bytes().to_vec();
    assert_eq!(keyspace.random_key(10, &mut choose), Some(last.clone()));
    keyspace.remove(&last, 0);
    assert_eq!(keyspace.random_key(10, &mut choose), None);
}
