// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions on values of keys: every kind of operation, and refused ones.

use freeport_kv_functions::{Deltas, Element, Filter, Function, Reduce, Registry, Update};
use freeport_kv_keyspace::{Error, Expiry, Keyspace, OperationError, Options};
use freeport_kv_types::Hash;

const NOW_MS: u64 = 1_000;

fn vector(elements: &[u32]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}

/// A keyspace with a vector that does not expire, one that does, and a counter.
fn keyspace(elements: &[u32]) -> Keyspace {
    let mut keyspace = Keyspace::new(Options::default()).expect("options are sound");
    let value = vector(elements);
    for (key, expiry) in [(b"plain", Expiry::Never), (b"timed", Expiry::AtMs(NOW_MS + 1))] {
        keyspace.set_string(key, &value, expiry, NOW_MS).expect("there is memory");
    }
    keyspace
        .set_string(b"counter", &7_u64.to_le_bytes(), Expiry::Never, NOW_MS)
        .expect("there is memory");
    keyspace
}

#[test]
fn a_counter_returns_its_original_value() {
    let mut keyspace = keyspace(&[]);
    let registry = Registry::built_in();
    let add = registry.update(Update::Add.id()).expect("built in");
    for expected in 7..100_u64 {
        let original = keyspace
            .update_scalar(b"counter", NOW_MS, &add, (Element::U64, &1_u64.to_le_bytes()))
            .expect("a counter");
        assert_eq!(original.map(|scalar| scalar.bits()), Some(expected));
    }
    let swap = registry.update(Update::CompareExchange.id()).expect("built in");
    let expected_and_new = [100_u64.to_le_bytes(), 5_u64.to_le_bytes()].concat();
    for (original, after) in [(100, 5), (5, 5)] {
        let was = keyspace
            .update_scalar(b"counter", NOW_MS, &swap, (Element::U64, &expected_and_new))
            .expect("a counter");
        assert_eq!(was.map(|scalar| scalar.bits()), Some(original));
        let bytes = keyspace.string(b"counter", NOW_MS).expect("a string").expect("it is there");
        assert_eq!(bytes, u64::to_le_bytes(after));
    }
}

#[test]
fn vectors_are_updated_folded_and_filtered_in_every_form() {
    // Inline, in a short block, and in a long one.
    for count in [1, 2, 30, 5_000] {
        let elements: Vec<u32> = (0..count).collect();
        for key in [&b"plain"[..], b"timed"] {
            let mut keyspace = keyspace(&elements);
            let registry = Registry::built_in();
            let add = registry.update(Update::Add.id()).expect("built in");
            let mut original = vec![];
            let delta = 3_u32.to_le_bytes();
            let same = (Element::U32, Deltas::Same(&delta));
            let done = keyspace.update_vector(key, NOW_MS, &add, same, Some(&mut original));
            assert_eq!((done, &original), (Ok(true), &vector(&elements)));
            let deltas = vector(&elements);
            let each = (Element::U32, Deltas::Each(&deltas));
            assert_eq!(keyspace.update_vector(key, NOW_MS, &add, each, None), Ok(true));
            let expected: Vec<u32> = elements.iter().map(|element| 2 * element + 3).collect();
            assert_eq!(keyspace.string(key, NOW_MS), Ok(Some(&vector(&expected)[..])));

            let sum = registry.reduce(Reduce::Sum.id()).expect("built in");
            let sigma = 10_u64.to_le_bytes();
            let folded = keyspace.reduce(key, NOW_MS, &sum, (Element::U32, &sigma));
            let total: u64 = expected.iter().map(|&element| u64::from(element)).sum();
            assert_eq!(folded.map(|sum| sum.map(|sum| sum.bits())), Ok(Some(total + 10)));

            let mut kept = vec![];
            let above: Function<'_, Filter> =
                registry.filter(Filter::Greater.id()).expect("built in");
            let limit = 9_u32.to_le_bytes();
            let done = keyspace.filter(key, NOW_MS, &above, (Element::U32, &limit), &mut kept);
            let large: Vec<u32> = expected.iter().copied().filter(|&it| it > 9).collect();
            assert_eq!((done, kept), (Ok(true), vector(&large)));
        }
    }
}

#[test]
fn a_refused_operation_changes_nothing() {
    let mut keyspace = keyspace(&[1, 2, 3]);
    let registry = Registry::built_in();
    let add = registry.update(Update::Add.id()).expect("built in");
    let before = vector(&[1, 2, 3]);
    let short = (Element::U32, Deltas::Each(&before[..8]));
    let refused = keyspace.update_vector(b"plain", NOW_MS, &add, short, None);
    assert!(matches!(refused, Err(OperationError::Function(_))), "{refused:?}");
    let odd = (Element::U64, Deltas::Same(&before[..8]));
    let refused = keyspace.update_vector(b"plain", NOW_MS, &add, odd, None);
    assert!(matches!(refused, Err(OperationError::Function(_))), "{refused:?}");
    assert_eq!(keyspace.string(b"plain", NOW_MS), Ok(Some(&before[..])));

    let one = 1_u32.to_le_bytes();
    let missing = keyspace.update_scalar(b"none", NOW_MS, &add, (Element::U32, &one));
    assert_eq!(missing, Ok(None));
    let gone = keyspace.update_scalar(b"timed", NOW_MS + 1, &add, (Element::U32, &one));
    assert_eq!(gone, Ok(None));
    keyspace
        .change(b"hash", NOW_MS, |hash: &mut Hash, limits| hash.set(limits, b"f", b"v"))
        .expect("there is memory");
    let wrong = keyspace.update_scalar(b"hash", NOW_MS, &add, (Element::U32, &one));
    assert_eq!(wrong, Err(OperationError::Value(Error::WrongType)));
}
