// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unsigned integers in groups of seven bits, lowest first (LEB128). The high bit of a byte says
//! that another follows. Small numbers take one byte, and each number has one encoding.

/// Number of bytes of the longest encoding.
pub const MAX_BYTES: usize = 10;

/// Returns the number of bytes that encode `value`.
pub fn size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends `value` to `out`.
pub fn write(value: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + size(value), 0);
    put(value, &mut out[start..]);
}

/// Fills `out`, which has the size of `value`.
pub(crate) fn put(mut value: u64, out: &mut [u8]) {
    let last = out.len() - 1;
    for byte in &mut out[..last] {
        *byte = value as u8 | 0x80;
        value >>= 7;
    }
    out[last] = value as u8;
}

/// Returns the integer at the start of `bytes` and the number of bytes that it takes; `None` if
/// they end before it does, or if it has a longer encoding than necessary.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    match bytes.first() {
        Some(&byte @ 0..0x80) => Some((u64::from(byte), 1)),
        _ => read_long(bytes),
    }
}

fn read_long(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(MAX_BYTES) {
        let group = u64::from(byte & 0x7f);
        if at == MAX_BYTES - 1 && group > 1 {
            return None;
        }
        value |= group << (7 * at);
        if byte < 0x80 {
            return (size(value) == at + 1).then_some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_survive() {
        for shift in 0..64 {
            for value in [1 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut out = vec![];
                write(value, &mut out);
                assert_eq!(out.len(), size(value));
                assert_eq!(read(&out), Some((value, out.len())));
                assert_eq!(read(&out[..out.len() - 1]), None, "{value} cut");
            }
        }
    }

    #[test]
    fn a_longer_encoding_than_necessary_is_refused() {
        assert_eq!(read(&[0x80, 0]), None);
        assert_eq!(read(&[0xff, 0]), None);
        assert_eq!(read(&[0xff; 11]), None);
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), None);
    }
}
