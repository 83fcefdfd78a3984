// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on vectors of bits, against a search bit by bit.

use freeport_kv_types::Limits;
use freeport_kv_types::bits::{self, Bounds, OffsetOutOfRange, Operation, Unit};
use freeport_testbed::{seed, usual_or_long};

/// Returns bytes of which many are 0 or 255.
fn bytes(random: &mut fastrand::Rng, most: usize) -> Vec<u8> {
    let len = random.usize(0..most);
    let likely = if random.bool() { 0 } else { 255 };
    let rare = random.u32(1..100);
    (0..len).map(|_| if random.u32(0..rare) == 0 { random.u8(..) } else { likely }).collect()
}

/// Returns the bits of a range, by the rules in Redis' reference.
fn range(bytes: &[u8], bounds: Bounds) -> Vec<u64> {
    let unit = if bounds.unit == Unit::Bit { 1 } else { 8 };
    let len = bytes.len() as i64 * 8 / unit;
    let absolute = |index: i64| if index < 0 { (index + len).max(0) } else { index };
    let (start, end) = (absolute(bounds.start), absolute(bounds.end).min(len - 1));
    (start * unit..(end + 1) * unit).map(|bit| bit as u64).collect()
}

#[test]
fn counts_and_positions_match_single_bits() {
    let first = seed();
    for seed in first..first + usual_or_long(1000, 50_000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let most = if random.u32(0..8) == 0 { 600 } else { 40 };
        let bytes = bytes(&mut random, most);
        let whole: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
        assert_eq!(bits::count(&bytes), whole, "seed {seed}");
        let (unit, most) = if random.bool() { (Unit::Bit, 8 * most) } else { (Unit::Byte, most) };
        let mut index = || random.i64(-(most as i64)..most as i64);
        let bounds = Bounds { start: index(), end: index(), unit };
        let inside = range(&bytes, bounds);
        let expected = inside.iter().filter(|&&bit| bits::get(&bytes, bit)).count() as u64;
        let is_reversed = bounds.start < 0 && bounds.end < 0 && bounds.start > bounds.end;
        let expected = if is_reversed { 0 } else { expected };
        assert_eq!(bits::count_range(&bytes, bounds), expected, "seed {seed}, {bounds:?}");
        for bit in [false, true] {
            let expected = inside.iter().copied().find(|&at| bits::get(&bytes, at) == bit);
            let found = bits::position(&bytes, bit, bounds.start, Some(bounds.end), unit);
            assert_eq!(found, expected, "seed {seed}, {bounds:?}");
            let inside = range(&bytes, Bounds { end: -1, ..bounds });
            let padding = (!bit && !inside.is_empty()).then_some(bytes.len() as u64 * 8);
            let expected = inside.into_iter().find(|&at| bits::get(&bytes, at) == bit);
            let found = bits::position(&bytes, bit, bounds.start, None, unit);
            assert_eq!(found, expected.or(padding), "seed {seed}, {bounds:?}");
        }
    }
}

#[test]
fn operations_match_single_bits() {
    let first = seed();
    for seed in first..first + usual_or_long(200, 10_000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(1..5);
        let strings: Vec<Vec<u8>> = (0..count).map(|_| bytes(&mut random, 30)).collect();
        let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
        let longest = strings.iter().map(|string| string.len()).max().expect("at least one");
        let expect = |operation, bit_of: &dyn Fn(usize) -> bool| {
            let result = bits::operate(operation, &strings);
            assert_eq!(result.len(), longest, "seed {seed}, {operation:?}");
            for bit in 0..longest as u64 * 8 {
                let ones = strings.iter().filter(|string| bits::get(string, bit)).count();
                assert_eq!(bits::get(&result, bit), bit_of(ones), "seed {seed}, {operation:?}");
            }
        };
        expect(Operation::And, &|ones| ones == count);
        expect(Operation::Or, &|ones| ones > 0);
        expect(Operation::Xor, &|ones| ones % 2 == 1);
        let inverted = bits::operate(Operation::Not, &strings[..1]);
        assert!(inverted.iter().zip(strings[0]).all(|(one, other)| *one == !other));
        assert_eq!(inverted.len(), strings[0].len());
    }
}

#[test]
fn bits_are_set_behind_the_end() {
    let limits = Limits { text_bytes: 3, ..Limits::default() };
    let mut bytes = vec![];
    assert_eq!(bits::set(&limits, &mut bytes, 0, false), Ok(false));
    assert_eq!(bytes, [0]);
    assert_eq!(bits::set(&limits, &mut bytes, 15, true), Ok(false));
    assert_eq!(bits::set(&limits, &mut bytes, 15, true), Ok(true));
    assert_eq!(bytes, [0, 1]);
    assert_eq!(bits::set(&limits, &mut bytes, 24, true), Err(OffsetOutOfRange));
    assert_eq!(bits::set(&limits, &mut bytes, u64::MAX, true), Err(OffsetOutOfRange));
    assert_eq!(bits::set(&limits, &mut bytes, 15, false), Ok(true));
    assert!(!bits::get(&bytes, 15) && !bits::get(&bytes, u64::MAX));
}
