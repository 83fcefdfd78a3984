// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole values that take the place of others.

use freeport_kv_keyspace::{Error, Expiry, Keyspace, Kind, Options};
use freeport_kv_types::zset::AddOptions;
use freeport_kv_types::{List, ZSet};

fn keyspace(memory_bytes: usize) -> Keyspace {
    let engine = freeport_kv_engine::Options { memory_bytes, ..Default::default() };
    Keyspace::new(Options { engine, ..Options::default() }).expect("options are sound")
}

/// A set of the keyspace, large above 128 members.
fn set(keyspace: &Keyspace, members: u32) -> ZSet {
    let mut set = ZSet::default();
    for number in 0..members {
        let member = number.to_string();
        set.add(keyspace.limits(), member.as_bytes(), 1.0, AddOptions::default())
            .expect("the score is a number");
    }
    set
}

#[test]
fn a_value_takes_the_place_of_any_other() {
    let mut keyspace = keyspace(64 << 20);
    keyspace.set_string(b"key", b"text", Expiry::AtMs(5), 0).expect("there is memory");
    for (members, large_values) in [(10, 0), (1000, 1), (2000, 1), (20, 0), (1000, 1)] {
        let value = set(&keyspace, members);
        keyspace.store(b"key", value).expect("there is memory");
        let found = keyspace.read::<ZSet>(b"key", 9).expect("it is a sorted set");
        assert_eq!(found.map(|set| set.len()), Some(members as usize));
        assert_eq!(keyspace.expires_ms(b"key", 9), Some(None));
        assert_eq!((keyspace.large_values(), keyspace.expiring()), (large_values, 0));
    }
    keyspace.store(b"key", ZSet::default()).expect("nothing is stored");
    assert_eq!((keyspace.kind(b"key", 9), keyspace.large_values()), (None, 0));
    keyspace.store(b"none", List::default()).expect("nothing is stored");
    assert!(keyspace.is_empty());
}

#[test]
fn a_refused_value_leaves_the_one_before() {
    let mut keyspace = keyspace(1 << 20);
    keyspace.set_string(b"key", b"text", Expiry::AtMs(1 << 40), 0).expect("there is memory");
    let large = set(&keyspace, 100_000);
    assert_eq!(keyspace.store(b"key", large), Err(Error::OutOfMemory));
    assert_eq!(keyspace.string(b"key", 0), Ok(Some(&b"text"[..])));
    assert_eq!(keyspace.expires_ms(b"key", 0), Some(Some(1 << 40)));
    assert_eq!((keyspace.kind(b"key", 0), keyspace.large_values()), (Some(Kind::String), 0));
}
