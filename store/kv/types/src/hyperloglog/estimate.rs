// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes of elements, and the estimate of their number from registers.

use super::{INDEX_BITS, REGISTERS, Registers, VALUE_BITS};

/// Seed of the hash function, which all servers have to share.
const SEED: u64 = 0xadc8_3b19;

/// Returns the register of an element, and the value that it has at least.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element);
    let index = hash as usize & (REGISTERS - 1);
    // A bit behind the last one ends the count of zeros.
    let rest = hash >> INDEX_BITS | 1 << VALUE_BITS;
    (index, rest.trailing_zeros() as u8 + 1)
}

/// MurmurHash64A, by Austin Appleby.
fn murmur(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for &word in words {
        let mut word = u64::from_le_bytes(word).wrapping_mul(FACTOR);
        word = (word ^ word >> SHIFT).wrapping_mul(FACTOR);
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// Returns the estimate, from the number of registers that have each value (Ertl, "New cardinality
/// estimation algorithms for HyperLogLog sketches", 2017, algorithm 6). It needs no corrections for
/// small or large numbers.
pub(super) fn count(registers: &Registers) -> u64 {
    /// 1 / (2 ln 2).
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let mut times = [0u32; 64];
    for &value in registers {
        times[usize::from(value & 63)] += 1;
    }
    let m = REGISTERS as f64;
    let largest = VALUE_BITS as usize + 1;
    let mut z = m * tau((m - f64::from(times[largest])) / m);
    for value in (1..largest).rev() {
        z = (z + f64::from(times[value])) * 0.5;
    }
    z += m * sigma(f64::from(times[0]) / m);
    (ALPHA * m * m / z).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let last = z;
        z += x * y;
        y += y;
        if z == last {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let last = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == last {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_elements_and_full_registers() {
        assert_eq!(count(&[0; REGISTERS]), 0);
        assert!(count(&[51; REGISTERS]) > 1 << 60);
        // A value that only a damaged string has.
        count(&[63; REGISTERS]);
    }

    #[test]
    fn values_are_numbers_of_zeros() {
        let mut times = [0; 64];
        for at in 0..10_000u32 {
            let (index, value) = place(&at.to_le_bytes());
            assert!(index < REGISTERS);
            times[usize::from(value)] += 1;
        }
        assert!((4800..5200).contains(&times[1]) && (2300..2700).contains(&times[2]), "{times:?}");
    }
}
