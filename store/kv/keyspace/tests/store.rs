// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that replace others, and large values that are emptied at once.

use freeport_kv_keyspace::{Error, Expiry, Keyspace, Kind, Options};
use freeport_kv_types::list::End;
use freeport_kv_types::{Limits, List, Set};

const NOW_MS: u64 = 1_000;

fn keyspace(memory_bytes: usize) -> Keyspace {
    let engine = freeport_kv_engine::Options { memory_bytes, ..Default::default() };
    Keyspace::new(Options { engine, ..Options::default() }).expect("options are sound")
}

fn set(members: i64) -> Set {
    let mut set = Set::default();
    for member in 0..members {
        set.add(&Limits::default(), member);
    }
    set
}

#[test]
fn a_value_of_either_form_replaces_values_of_all_types() {
    for members in [3, 2_000] {
        let mut keyspace = keyspace(1 << 26);
        let value = b"text";
        keyspace
            .set_string(b"string", value, Expiry::AtMs(9_999), NOW_MS)
            .expect("there is memory");
        keyspace
            .change(b"list", NOW_MS, |list: &mut List, limits| {
                (0..1_000).for_each(|_| list.push(limits, End::Back, &[7; 100]));
            })
            .expect("there is memory");
        keyspace.store(b"set", set(2_000), NOW_MS).expect("there is memory");
        assert_eq!((keyspace.large_values(), keyspace.expiring()), (2, 1));
        for key in [&b"string"[..], b"list", b"set", b"new"] {
            keyspace.store(key, set(members), NOW_MS).expect("there is memory");
            assert_eq!(keyspace.kind(key, NOW_MS), Some(Kind::Set));
            let view = keyspace.read::<Set>(key, NOW_MS).expect("a set").expect("it is there");
            assert_eq!(view.len() as i64, members);
        }
        let large = if members > 512 { 4 } else { 0 };
        assert_eq!((keyspace.large_values(), keyspace.expiring()), (large, 0));
        for key in [&b"string"[..], b"list", b"set", b"new", b"none"] {
            keyspace.store(key, Set::default(), NOW_MS).expect("nothing grows");
        }
        assert_eq!((keyspace.len(), keyspace.large_values()), (0, 0));
    }
}

#[test]
fn a_large_value_that_is_emptied_at_once_leaves_no_key() {
    let mut keyspace = keyspace(1 << 26);
    keyspace.store(b"set", set(2_000), NOW_MS).expect("there is memory");
    keyspace.set_expiry(b"set", Some(9_999), NOW_MS).expect("there is memory");
    let popped = keyspace
        .shrink(b"set", NOW_MS, |set: &mut Set, _| set.pop_many(5_000, &mut |range| range - 1))
        .expect("it shrinks");
    assert_eq!(popped.len(), 2_000);
    assert_eq!((keyspace.len(), keyspace.large_values(), keyspace.expiring()), (0, 0, 0));
    keyspace.store(b"set", set(1), NOW_MS).expect("there is memory");
    assert_eq!(keyspace.expires_ms(b"set", NOW_MS), Some(None));
}

#[test]
fn a_value_without_room_leaves_the_one_before() {
    let mut keyspace = keyspace(1 << 20);
    keyspace.set_string(b"key", b"text", Expiry::AtMs(9_999), NOW_MS).expect("there is memory");
    let before = keyspace.memory_bytes();
    assert_eq!(keyspace.store(b"key", set(1_000_000), NOW_MS), Err(Error::OutOfMemory));
    assert_eq!(keyspace.string(b"key", NOW_MS), Ok(Some(&b"text"[..])));
    assert_eq!((keyspace.large_values(), keyspace.expiring()), (0, 1));
    assert_eq!(keyspace.memory_bytes(), before);
}
