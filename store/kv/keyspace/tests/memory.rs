// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory: small values are small, large ones count, and a full keyspace refuses.

use freeport_kv_keyspace::{Error, Expiry, Keyspace, Options};
use freeport_kv_types::{Hash, ZSet};

fn keyspace(memory_bytes: usize) -> Keyspace {
    let engine = freeport_kv_engine::Options { memory_bytes, ..Default::default() };
    Keyspace::new(Options { engine, ..Options::default() }).expect("options are sound")
}

#[test]
fn a_small_hash_takes_little_more_than_its_bytes() {
    let mut keyspace = keyspace(1 << 30);
    let empty = keyspace.memory_bytes();
    let count = 20_000_u32;
    for number in 0..count {
        let key = format!("user:{number:08}");
        keyspace
            .change(key.as_bytes(), 0, |hash: &mut Hash, limits| {
                hash.set(limits, b"name", b"someone");
                hash.set(limits, b"visits", b"17")
            })
            .expect("there is memory");
    }
    let bytes = (keyspace.memory_bytes() - empty) as f64 / f64::from(count);
    // 13 bytes of key, 19 of fields and values.
    assert!((32.0..72.0).contains(&bytes), "{bytes} bytes");
}

#[test]
fn large_values_count_and_their_memory_returns() {
    let mut keyspace = keyspace(1 << 30);
    let empty = keyspace.memory_bytes();
    keyspace
        .change(b"hash", 0, |hash: &mut Hash, limits| {
            for number in 0..10_000_u32 {
                hash.set(limits, &number.to_le_bytes(), &[7; 100]);
            }
        })
        .expect("there is memory");
    assert_eq!(keyspace.large_values(), 1);
    assert!(keyspace.memory_bytes() - empty > 1_000_000);
    assert!(keyspace.remove(b"hash", 0));
    assert!(keyspace.memory_bytes() - empty < 10_000);
}

#[test]
fn a_full_keyspace_refuses_and_stays_as_it_was() {
    let mut keyspace = keyspace(1 << 20);
    let mut number = 0_u32;
    let full = loop {
        let key = number.to_le_bytes();
        match keyspace.set_string(&key, &[1; 300], Expiry::AtMs(1 << 40), 0) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, Error::OutOfMemory);
    assert_eq!((keyspace.len(), keyspace.expiring()), (number as usize, number as usize));
    let add = |set: &mut ZSet, limits: &freeport_kv_types::Limits| {
        let members: Vec<Vec<u8>> = (0..5_000_u32).map(|it| it.to_be_bytes().to_vec()).collect();
        let elements: Vec<(&[u8], f64)> = members.iter().map(|it| (&it[..], 1.0)).collect();
        *set = ZSet::from_sorted(limits, &elements).expect("they are sorted");
    };
    let first = 0_u32.to_le_bytes();
    assert_eq!(keyspace.change(&first, 0, add), Err(Error::WrongType));
    assert_eq!(keyspace.change(b"zset", 0, add), Err(Error::OutOfMemory));
    assert_eq!((keyspace.len(), keyspace.large_values()), (number as usize, 0));
    assert_eq!(keyspace.string(&first, 0), Ok(Some(&[1; 300][..])));
}

#[test]
fn a_full_keyspace_takes_removals_of_elements() {
    let mut keyspace = keyspace(1 << 20);
    let field = |number: u32| number.to_be_bytes();
    let fill = |count: u32| {
        move |hash: &mut Hash, limits: &freeport_kv_types::Limits| {
            for number in 0..count {
                hash.set(limits, &field(number), &[7; 40]);
            }
        }
    };
    keyspace.change(b"large", 0, fill(2_000)).expect("there is memory");
    let mut packed = 0_u32;
    while keyspace.change(&packed.to_le_bytes(), 0, fill(20)).is_ok() {
        packed += 1;
    }
    assert!(packed > 100, "{packed}");
    let mut strings = 0_u32;
    let key = |number: u32| [b"string", &number.to_le_bytes()[..]].concat();
    while keyspace.set_string(&key(strings), b"x", Expiry::Never, 0).is_ok() {
        strings += 1;
    }
    for number in 0..20 {
        for key in 0..packed {
            let remove = |hash: &mut Hash, _: &_| hash.remove(&field(number));
            assert_eq!(
                keyspace.shrink(&key.to_le_bytes(), 0, remove),
                Ok(true),
                "{number} of {key}"
            );
        }
    }
    for number in 0..2_000 {
        let remove = |hash: &mut Hash, _: &_| hash.remove(&field(number));
        assert_eq!(keyspace.shrink(b"large", 0, remove), Ok(true), "{number}");
    }
    assert_eq!((keyspace.len(), keyspace.large_values()), (strings as usize, 0));
}

#[test]
fn a_string_is_lengthened_where_it_lies() {
    let mut keyspace = keyspace(1 << 30);
    for (key, expiry) in [(b"a", Expiry::Never), (b"b", Expiry::AtMs(50))] {
        keyspace.set_string(key, &[7; 1_000], expiry, 0).expect("there is memory");
        let before = keyspace.memory_bytes();
        assert_eq!(keyspace.lengthen_string(key, 0, 1_002), Ok(true));
        assert_eq!(keyspace.lengthen_string(key, 0, 900), Ok(false));
        assert_eq!(keyspace.lengthen_string(key, 0, 9_000), Ok(false));
        let mut expected = vec![7; 1_000];
        expected.extend([0; 2]);
        assert_eq!(keyspace.string(key, 0), Ok(Some(&expected[..])));
        assert_eq!(keyspace.memory_bytes(), before);
    }
    assert_eq!(keyspace.expires_ms(b"b", 0), Some(Some(50)));
    assert_eq!(keyspace.lengthen_string(b"b", 50, 1_003), Ok(false));
    keyspace.change(b"h", 0, |hash: &mut Hash, limits| hash.set(limits, b"f", b"v")).expect("room");
    assert_eq!(keyspace.lengthen_string(b"h", 0, 100), Err(Error::WrongType));
}

#[test]
fn large_values_and_strings_share_one_limit() {
    let limit = 1 << 20;
    let mut keyspace = keyspace(limit);
    keyspace
        .change(b"hash", 0, |hash: &mut Hash, limits| {
            for number in 0..4_000_u32 {
                hash.set(limits, &number.to_le_bytes(), &[7; 100]);
            }
        })
        .expect("there is memory");
    let with_large = keyspace.memory_bytes();
    assert!((limit / 3..limit).contains(&with_large), "{with_large} bytes");
    let full = (0..u32::MAX).find_map(|number| {
        keyspace.set_string(&number.to_le_bytes(), &[1; 300], Expiry::Never, 0).err()
    });
    assert_eq!(full, Some(Error::OutOfMemory));
    let used = keyspace.memory_bytes();
    assert!((limit - 1_000..=limit).contains(&used), "{used} bytes");
    // More is taken while the keyspace is stretched, and what was stored stays.
    keyspace.set_stretched(true);
    assert_eq!(keyspace.set_string(b"more", &[2; 50_000], Expiry::Never, 0), Ok(()));
    keyspace.set_stretched(false);
    assert_eq!(keyspace.set_string(b"other", &[2; 300], Expiry::Never, 0), Err(Error::OutOfMemory));
    assert_eq!(keyspace.string(b"more", 0).map(|value| value.map(<[u8]>::len)), Ok(Some(50_000)));
}
