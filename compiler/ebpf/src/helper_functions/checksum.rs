// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Difference of an Internet checksum for changed bytes (RFC 1071, RFC 1624).

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::run::Run;

/// `bpf_csum_diff`: sums the new bytes and the complement of the old ones, folded to 16 bits.
pub fn difference(run: &mut Run, _: &'static str) -> Called {
    let (from_size, to_size) = (run.argument(2) as u32 as usize, run.argument(4) as u32 as usize);
    let seed = run.argument(5) as u32;
    let from = run.read(run.argument(1), from_size)?;
    let to = run.read(run.argument(3), to_size)?;
    if !from_size.is_multiple_of(4) || !to_size.is_multiple_of(4) {
        return returned(Err(ErrorNumber::EINVAL));
    }
    Ok(Some(match (from_size, to_size) {
        (0, 0) => seed.into(),
        (_, 0) => fold(!sum(from, !seed)),
        (0, _) => fold(sum(to, seed)),
        _ => fold(add(sum(to, seed), !sum(from, 0))),
    }))
}

/// Returns the one's complement sum of two numbers.
fn add(a: u32, b: u32) -> u32 {
    let (sum, carried) = a.overflowing_add(b);
    sum + u32::from(carried)
}

/// Returns the one's complement sum of 32-bit words; the number of bytes is a multiple of 4.
fn sum(bytes: &[u8], seed: u32) -> u32 {
    let words = bytes.chunks_exact(4);
    let wide = words.fold(u64::from(seed), |sum, word| {
        sum + u64::from(u32::from_le_bytes(word.try_into().expect("chunks of four")))
    });
    add(wide as u32, (wide >> 32) as u32)
}

/// Folds the sum to 16 bits.
fn fold(sum: u32) -> u64 {
    let once = (sum & 0xffff) + (sum >> 16);
    u64::from((once + (once >> 16)) & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the checksum as RFC 1071 defines it: the sum of 16-bit words.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for word in bytes.chunks(2) {
            sum += u32::from(u16::from_le_bytes([word[0], word[1]]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn sums_of_any_words_are_those_of_their_halves() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..4 * random.usize(1..40)).map(|_| random.u8(..)).collect();
            assert_eq!(fold(sum(&bytes, 0)), u64::from(plain(&bytes)));
        }
        assert_eq!(fold(sum(&[0xff; 64], 0)), 0xffff);
        assert_eq!(fold(sum(&[0; 64], 0)), 0);
    }

    #[test]
    fn a_difference_brings_an_old_checksum_to_the_new_one() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..2_000 {
            let old: Vec<u8> = (0..20).map(|_| random.u8(1..)).collect();
            let mut new = old.clone();
            new[8..12].copy_from_slice(&[random.u8(..), 1, random.u8(..), 2]);
            let checksum = !plain(&old);
            let changed = add(sum(&new[8..12], u32::from(!checksum)), !sum(&old[8..12], 0));
            assert_eq!(fold(changed), u64::from(plain(&new)));
        }
    }
}
