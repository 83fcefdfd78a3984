// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of expiry.

use freeport_kv_keyspace::{Expiry, Keyspace, Options};
use freeport_kv_types::{Hash, Stream};

fn keyspace() -> Keyspace {
    Keyspace::new(Options::default()).expect("options are sound")
}

#[test]
fn a_value_is_gone_at_its_time_and_its_memory_later() {
    let mut keyspace = keyspace();
    keyspace.set_string(b"key", b"value", Expiry::AtMs(100), 0).expect("there is memory");
    assert_eq!(keyspace.string(b"key", 99), Ok(Some(&b"value"[..])));
    assert_eq!(keyspace.string(b"key", 100), Ok(None));
    assert_eq!((keyspace.len(), keyspace.expiring()), (1, 1));
    assert!(!keyspace.remove(b"key", 100));
    assert_eq!((keyspace.len(), keyspace.expiring()), (0, 0));
}

#[test]
fn the_search_removes_exactly_what_has_expired() {
    let mut keyspace = keyspace();
    for number in 0..5_000_u32 {
        let key = number.to_le_bytes();
        let expiry = match number % 3 {
            0 => Expiry::Never,
            1 => Expiry::AtMs(50),
            _ => Expiry::AtMs(5_000),
        };
        keyspace.set_string(&key, b"value", expiry, 0).expect("there is memory");
    }
    let mut removed = vec![];
    // One round visits every chain.
    keyspace.expire_some(100, 4_096, |key| removed.push(key.to_vec()));
    removed.sort();
    let mut expected: Vec<Vec<u8>> =
        (0..5_000_u32).filter(|it| it % 3 == 1).map(|it| it.to_le_bytes().to_vec()).collect();
    expected.sort();
    assert_eq!(removed, expected);
    assert_eq!((keyspace.len(), keyspace.expiring()), (5_000 - removed.len(), 1_666));
}

#[test]
fn a_change_keeps_the_time_and_a_large_value_does_too() {
    let mut keyspace = keyspace();
    let add = |keyspace: &mut Keyspace, field: String| {
        keyspace
            .change(b"hash", 10, |hash: &mut Hash, limits| hash.set(limits, field.as_bytes(), b"v"))
            .expect("there is memory");
    };
    add(&mut keyspace, "first".into());
    assert_eq!(keyspace.set_expiry(b"hash", Some(1_000), 10), Ok(true));
    (0..1_000).for_each(|number| add(&mut keyspace, format!("field {number}")));
    assert_eq!(keyspace.expires_ms(b"hash", 10), Some(Some(1_000)));
    assert_eq!(keyspace.large_values(), 1);
    assert_eq!(keyspace.set_expiry(b"hash", None, 10), Ok(true));
    assert_eq!(keyspace.expires_ms(b"hash", u64::MAX), Some(None));
    assert_eq!(keyspace.set_expiry(b"hash", Some(5), 10), Ok(true));
    assert_eq!((keyspace.len(), keyspace.large_values(), keyspace.expiring()), (0, 0, 0));
}

#[test]
fn nothing_is_made_of_a_change_that_does_nothing() {
    let mut keyspace = keyspace();
    let removed = keyspace.change(b"hash", 0, |hash: &mut Hash, _| hash.remove(b"field"));
    assert_eq!((removed, keyspace.len()), (Ok(false), 0));
    let length = keyspace.change(b"stream", 0, |stream: &mut Stream, _| stream.view().len());
    assert_eq!((length, keyspace.len()), (Ok(0), 0));
}

#[test]
fn a_write_in_place_of_a_value_whose_time_has_passed_is_noted() {
    let mut keyspace = keyspace();
    let expiring = |keyspace: &mut Keyspace, key: &[u8]| {
        keyspace.set_string(key, b"value", Expiry::AtMs(10), 0).expect("there is memory");
        assert!(!keyspace.take_lapsed());
    };
    expiring(&mut keyspace, b"key");
    keyspace.set_string(b"key", b"new", Expiry::Never, 9).expect("there is memory");
    assert!(!keyspace.take_lapsed());
    expiring(&mut keyspace, b"key");
    keyspace.set_string(b"key", b"new", Expiry::Never, 10).expect("there is memory");
    assert!(keyspace.take_lapsed() && !keyspace.take_lapsed());
    expiring(&mut keyspace, b"key");
    let removed = keyspace.change(b"key", 10, |hash: &mut Hash, _| hash.remove(b"field"));
    assert_eq!((removed, keyspace.len()), (Ok(false), 0));
    assert!(keyspace.take_lapsed());
    expiring(&mut keyspace, b"key");
    assert!(!keyspace.remove(b"key", 10) && keyspace.take_lapsed());
    expiring(&mut keyspace, b"to");
    keyspace.set_string(b"from", b"value", Expiry::Never, 10).expect("there is memory");
    assert_eq!(keyspace.rename(b"from", b"to", 10), Ok(true));
    assert!(keyspace.take_lapsed());
}
