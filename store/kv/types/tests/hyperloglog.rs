// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Approximate counts of strings that grow from sparse to dense.

use freeport_kv_types::Limits;
use freeport_kv_types::hyperloglog::{self, InvalidString};
use freeport_testbed::seed;

fn of(limits: &Limits, elements: std::ops::Range<u32>) -> Vec<u8> {
    let mut bytes = hyperloglog::new();
    for at in elements {
        hyperloglog::add(limits, &mut bytes, format!("element {at}").as_bytes()).expect("valid");
    }
    bytes
}

/// Whether the registers are dense.
fn is_dense(bytes: &[u8]) -> bool {
    bytes[4] == 0
}

#[test]
fn counts_are_off_by_few_percent() {
    let limits = Limits::default();
    assert_eq!(hyperloglog::count(&hyperloglog::new()), Ok(0));
    for number in [1u32, 10, 100, 1000, 10_000, 100_000] {
        let bytes = of(&limits, 0..number);
        let count = hyperloglog::count(&bytes).expect("valid") as f64;
        let error = (count - f64::from(number)).abs() / f64::from(number);
        assert!(error < 0.025, "{count} instead of {number}");
        assert_eq!(is_dense(&bytes), number >= 10_000, "{number} elements");
        assert!(is_dense(&bytes) || bytes.len() <= 3000, "{} bytes", bytes.len());
    }
}

/// The encoding changes nothing but the size.
#[test]
fn sparse_and_dense_registers_count_the_same() {
    let dense = Limits { sparse_bytes: 0, ..Limits::default() };
    let sparse = Limits { sparse_bytes: usize::MAX, ..Limits::default() };
    for number in [1, 17, 400, 3000] {
        let (one, other) = (of(&dense, 0..number), of(&sparse, 0..number));
        assert!(is_dense(&one));
        assert_eq!(hyperloglog::count(&one), hyperloglog::count(&other), "{number} elements");
        assert_eq!(hyperloglog::count_union(&[&one, &other]), hyperloglog::count(&one));
    }
}

#[test]
fn merged_strings_count_all_elements() {
    let limits = Limits::default();
    let (one, other) = (of(&limits, 0..600), of(&limits, 300..1000));
    let both = of(&limits, 0..1000);
    let mut merged = one.clone();
    hyperloglog::merge(&limits, &mut merged, &[&other]).expect("valid");
    assert!(!is_dense(&merged));
    assert_eq!(hyperloglog::count(&merged), hyperloglog::count(&both));
    assert_eq!(hyperloglog::count_union(&[&one, &other]), hyperloglog::count(&both));
    let dense = of(&limits, 0..20_000);
    let mut merged = hyperloglog::new();
    hyperloglog::merge(&limits, &mut merged, &[&one, &dense]).expect("valid");
    assert!(is_dense(&merged));
    assert_eq!(hyperloglog::count(&merged), hyperloglog::count(&dense));
}

#[test]
fn counts_are_stored_until_registers_change() {
    let limits = Limits::default();
    let mut bytes = of(&limits, 0..10);
    assert_eq!(hyperloglog::stored_count(&bytes), None);
    let count = hyperloglog::count(&bytes).expect("valid");
    hyperloglog::store_count(&mut bytes, count).expect("valid");
    assert_eq!(hyperloglog::stored_count(&bytes), Some(10));
    assert_eq!(hyperloglog::add(&limits, &mut bytes, b"element 3"), Ok(false));
    assert_eq!(hyperloglog::stored_count(&bytes), Some(10));
    assert_eq!(hyperloglog::add(&limits, &mut bytes, b"element 10"), Ok(true));
    assert_eq!(hyperloglog::stored_count(&bytes), None);
    assert_eq!(hyperloglog::count(&bytes), Ok(11));
}

#[test]
fn other_strings_are_refused() {
    let limits = Limits::default();
    let wrong = Err(InvalidString::WrongType);
    let mut dense = of(&Limits { sparse_bytes: 0, ..limits.clone() }, 0..5);
    assert_eq!(hyperloglog::count(b"a plain string of some length"), wrong);
    assert_eq!(hyperloglog::count(b"HYLL"), wrong);
    assert_eq!(hyperloglog::count(&dense[..dense.len() - 1]), wrong);
    dense[4] = 7;
    assert_eq!(hyperloglog::count(&dense), wrong);
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..2000 {
        let mut bytes = of(&limits, 0..20);
        let at = random.usize(0..bytes.len());
        bytes[at] ^= random.u8(1..);
        bytes.truncate(random.usize(at..=bytes.len()));
        let valid = of(&limits, 0..3);
        // Whether it is refused depends on the byte; it is never read outside.
        let added = hyperloglog::add(&limits, &mut bytes, b"another");
        let counted = hyperloglog::count_union(&[&bytes, &valid]);
        assert!(added.is_ok() || counted.is_err());
        let merged = hyperloglog::merge(&limits, &mut bytes, &[&valid]);
        assert_eq!(merged.is_ok(), counted.is_ok());
    }
}
