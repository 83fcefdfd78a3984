// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Radix sort of addresses (KV-Direct 5.3.3).

/// Bits that one pass sorts by. Three passes sort 33 bits, and the 2048 counters of a pass stay in
/// the first-level cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
const PASSES: usize = 3;
/// Below this length, sorting by comparison is faster.
const SHORT: usize = 1 << 10;

/// Sorts keys by their bits from `low_bit` on, of which at most 33 may be set. Bits below follow
/// their key in no certain order.
pub(crate) fn sort(keys: &mut Vec<u64>, low_bit: u32) {
    if keys.len() < SHORT {
        keys.sort_unstable();
        return;
    }
    let digit = |key: u64, pass: usize| {
        (key >> (low_bit + DIGIT_BITS * pass as u32)) as usize & (DIGITS - 1)
    };
    let mut counts = [[0_usize; DIGITS]; PASSES];
    for &key in keys.iter() {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(key, pass)] += 1;
        }
    }
    let mut sorted = vec![0; keys.len()];
    for (pass, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&keys.len()) {
            continue;
        }
        let mut before = 0;
        for count in counts.iter_mut() {
            (*count, before) = (before, before + *count);
        }
        for &key in keys.iter() {
            let place = &mut counts[digit(key, pass)];
            sorted[*place] = key;
            *place += 1;
        }
        std::mem::swap(keys, &mut sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_and_spread_are_sorted() {
        for (seed, bits) in [(1, 1), (2, 10), (3, 11), (4, 12), (5, 22), (6, 31), (7, 33)] {
            for length in [0, 1, 2, 100, SHORT - 1, SHORT, 20_000] {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut keys: Vec<u64> =
                    (0..length).map(|_| random.u64(..1 << bits) << 8 | random.u64(..256)).collect();
                let mut expected = keys.clone();
                expected.sort_by_key(|key| key >> 8);
                sort(&mut keys, 8);
                let of = |keys: &[u64]| keys.iter().map(|key| key >> 8).collect::<Vec<_>>();
                assert_eq!(of(&keys), of(&expected), "{length} keys of {bits} bits");
                keys.sort_unstable();
                expected.sort_unstable();
                assert_eq!(keys, expected, "the same keys: {length} of {bits} bits");
            }
        }
    }
}
