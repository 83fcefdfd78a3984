// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Short byte strings, copied and compared without a call. Calls, loops, and stores under a mask
//! would take longer than the rest of an operation.

/// Copies a byte string over another of equal length: a short one by two words that may overlap.
#[inline(always)]
pub fn copy(target: &mut [u8], source: &[u8]) {
    #[inline(always)]
    fn ends<const WORD: usize>(target: &mut [u8], source: &[u8]) {
        let (mut first, mut last) = ([0; WORD], [0; WORD]);
        first.copy_from_slice(&source[..WORD]);
        last.copy_from_slice(&source[source.len() - WORD..]);
        let end = target.len() - WORD;
        target[..WORD].copy_from_slice(&first);
        target[end..].copy_from_slice(&last);
    }
    match source.len() {
        8..=16 => ends::<8>(target, source),
        4..8 => ends::<4>(target, source),
        2..4 => ends::<2>(target, source),
        1 => target[0] = source[0],
        _ => target.copy_from_slice(source),
    }
}

/// Compares two byte strings of equal length.
#[inline(always)]
pub fn is_same(left: &[u8], right: &[u8]) -> bool {
    let length = right.len();
    if !(8..=32).contains(&length) {
        return left == right;
    }
    let differs = |at: usize| word(left, at) ^ word(right, at);
    let mut difference = differs(0) | differs(length - 8);
    if length > 16 {
        difference |= differs(8) | differs(length - 16);
    }
    difference == 0
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_are_copied_and_compared() {
        for length in 0..70 {
            let source: Vec<u8> = (0..length).map(|byte| byte + 1).collect();
            let mut target = vec![0; source.len() + 2];
            copy(&mut target[1..=source.len()], &source);
            assert_eq!(target[1..=source.len()], source, "{length} bytes");
            assert_eq!((target[0], target[source.len() + 1]), (0, 0), "{length} bytes");
            assert!(is_same(&target[1..=source.len()], &source));
            for at in 0..source.len() {
                let mut other = source.clone();
                other[at] ^= 0x40;
                assert!(!is_same(&other, &source), "{length} bytes, byte {at}");
            }
        }
    }
}
