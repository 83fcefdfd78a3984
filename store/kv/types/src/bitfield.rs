// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Integers of any width at any bit of a string (BITFIELD). The highest bit of an integer comes
//! first. Bits behind the end of the string are 0.

use crate::bits::{OffsetOutOfRange, check_offset};
use crate::limits::Limits;
use crate::number::parse_integer;
use thiserror::Error;

/// Type of an integer: signed with 1 to 64 bits, or unsigned with 1 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    is_signed: bool,
    bits: u32,
}

/// A text that is no type. The text is that of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
)]
pub struct InvalidType;

/// Treatment of a value that a type cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Higher bits are lost.
    #[default]
    Wrap,
    /// The nearest value is taken.
    Saturate,
    /// Nothing changes, and there is no result.
    Fail,
}

impl FieldType {
    /// Reads a type such as `i16` or `u8`.
    ///
    /// # Errors
    /// [`InvalidType`].
    pub fn parse(text: &[u8]) -> Result<Self, InvalidType> {
        let (is_signed, bits) = match text {
            [b'i', bits @ ..] => (true, bits),
            [b'u', bits @ ..] => (false, bits),
            _ => return Err(InvalidType),
        };
        let most = if is_signed { 64 } else { 63 };
        match parse_integer(bits) {
            Some(bits) if (1..=most).contains(&bits) => Ok(Self { is_signed, bits: bits as u32 }),
            _ => Err(InvalidType),
        }
    }

    /// Number of bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    fn min(self) -> i128 {
        if self.is_signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    fn max(self) -> i128 {
        self.min() + (1 << self.bits) - 1
    }

    /// Returns the value that the low bits of `bits` are.
    fn value(self, bits: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.is_signed {
            (bits << unused) as i64 >> unused
        } else {
            (bits << unused >> unused) as i64
        }
    }

    /// Returns the value that takes the place of `value`; `None` if there is to be none.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        if (self.min()..=self.max()).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.value(value as u64)),
            Overflow::Saturate => Some(value.clamp(self.min(), self.max()) as i64),
            Overflow::Fail => None,
        }
    }
}

/// Returns the integer at bit `offset` (GET).
pub fn get(bytes: &[u8], kind: FieldType, offset: u64) -> i64 {
    let window = Window::new(kind, offset);
    kind.value((window.read(bytes) >> window.shift) as u64)
}

/// Sets the integer at bit `offset` (SET). Returns the old one; `None` if the value does not fit
/// and `overflow` is [`Overflow::Fail`]. Zeros fill the string up to the end of the integer, also
/// if it fails.
///
/// # Errors
/// [`OffsetOutOfRange`]; the string is unchanged.
pub fn set(
    limits: &Limits,
    bytes: &mut Vec<u8>,
    kind: FieldType,
    offset: u64,
    value: i64,
    overflow: Overflow,
) -> Result<Option<i64>, OffsetOutOfRange> {
    grow(limits, bytes, kind, offset)?;
    Ok(set_within(bytes, kind, offset, value, overflow))
}

/// As [`set`], for a string that has all bytes of the integer.
///
/// # Panics
/// It is too short.
pub fn set_within(
    bytes: &mut [u8],
    kind: FieldType,
    offset: u64,
    value: i64,
    overflow: Overflow,
) -> Option<i64> {
    let old = get(bytes, kind, offset);
    // As in Redis, a negative value is a large one to an unsigned type.
    let value = if kind.is_signed { i128::from(value) } else { i128::from(value as u64) };
    kind.fit(value, overflow).map(|value| {
        Window::new(kind, offset).write(bytes, kind, value);
        old
    })
}

/// Adds to the integer at bit `offset` (INCRBY). Returns the sum; `None` if it does not fit and
/// `overflow` is [`Overflow::Fail`]. Zeros fill the string up to the end of the integer, also if it
/// fails.
///
/// # Errors
/// [`OffsetOutOfRange`]; the string is unchanged.
pub fn increment(
    limits: &Limits,
    bytes: &mut Vec<u8>,
    kind: FieldType,
    offset: u64,
    increment: i64,
    overflow: Overflow,
) -> Result<Option<i64>, OffsetOutOfRange> {
    grow(limits, bytes, kind, offset)?;
    Ok(increment_within(bytes, kind, offset, increment, overflow))
}

/// As [`increment`], for a string that has all bytes of the integer.
///
/// # Panics
/// It is too short.
pub fn increment_within(
    bytes: &mut [u8],
    kind: FieldType,
    offset: u64,
    increment: i64,
    overflow: Overflow,
) -> Option<i64> {
    let old = get(bytes, kind, offset);
    let sum = kind.fit(i128::from(old) + i128::from(increment), overflow);
    if let Some(sum) = sum {
        Window::new(kind, offset).write(bytes, kind, sum);
    }
    sum
}

/// Returns the number of bytes that a string needs to have an integer.
///
/// # Errors
/// [`OffsetOutOfRange`] if it would begin behind the largest string.
pub fn end(limits: &Limits, kind: FieldType, offset: u64) -> Result<usize, OffsetOutOfRange> {
    Ok(check_offset(limits, offset)? + Window::new(kind, offset).len)
}

/// Fills the string up to the end of an integer.
fn grow(
    limits: &Limits,
    bytes: &mut Vec<u8>,
    kind: FieldType,
    offset: u64,
) -> Result<(), OffsetOutOfRange> {
    let end = end(limits, kind, offset)?;
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    Ok(())
}

/// The bytes that an integer lies in, at most nine, as one large integer.
struct Window {
    start: u64,
    len: usize,
    /// Number of bits behind the integer.
    shift: u32,
}

impl Window {
    fn new(kind: FieldType, offset: u64) -> Self {
        let used = (offset % 8) as u32 + kind.bits;
        let len = used.div_ceil(8);
        Self { start: offset / 8, len: len as usize, shift: len * 8 - used }
    }

    fn read(&self, bytes: &[u8]) -> u128 {
        let start = usize::try_from(self.start).unwrap_or(usize::MAX).min(bytes.len());
        let there = &bytes[start..bytes.len().min(start.saturating_add(self.len))];
        let mut window = [0; 16];
        window[16 - self.len..][..there.len()].copy_from_slice(there);
        u128::from_be_bytes(window)
    }

    /// Writes an integer into a string that has all its bytes.
    fn write(&self, bytes: &mut [u8], kind: FieldType, value: i64) {
        let mask = (1u128 << kind.bits) - 1;
        let value = (value as u128 & mask) << self.shift;
        let window = self.read(bytes) & !(mask << self.shift) | value;
        let start = self.start as usize;
        bytes[start..start + self.len].copy_from_slice(&window.to_be_bytes()[16 - self.len..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits;

    fn kind(text: &str) -> FieldType {
        FieldType::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn types_are_read_as_redis_does() {
        for text in ["i1", "i64", "u1", "u63"] {
            assert_eq!(kind(text).bits().to_string(), text[1..]);
        }
        for text in ["", "i", "u64", "i65", "u0", "i0", "i-1", "I8", "8", "i08", "u8 ", "f8"] {
            assert_eq!(FieldType::parse(text.as_bytes()), Err(InvalidType), "{text}");
        }
    }

    /// Each integer is compared with its bits, one by one.
    #[test]
    fn integers_of_every_width_at_every_offset() {
        let limits = Limits::default();
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..4000 {
            let signed = random.bool();
            let kind = FieldType { is_signed: signed, bits: random.u32(1..64 + u32::from(signed)) };
            let mut bytes: Vec<u8> = (0..random.usize(0..20)).map(|_| random.u8(..)).collect();
            let before = bytes.clone();
            let offset = random.u64(0..100);
            let low = random.u64(..);
            let value = kind.value(low);
            let old = get(&bytes, kind, offset);
            let set = set(&limits, &mut bytes, kind, offset, value, Overflow::Fail);
            assert_eq!(set, Ok(Some(old)), "round {round}");
            assert_eq!(get(&bytes, kind, offset), value);
            let inside = offset..offset + u64::from(kind.bits);
            for bit in 0..260 {
                let expected = if inside.contains(&bit) {
                    low >> (inside.end - 1 - bit) & 1 == 1
                } else {
                    bits::get(&before, bit)
                };
                assert_eq!(bits::get(&bytes, bit), expected, "round {round}, bit {bit}");
            }
        }
    }

    /// Results of redis-server 7.0.
    #[test]
    fn overflow_is_treated_as_in_redis() {
        use Overflow::{Fail, Saturate, Wrap};
        let limits = Limits::default();
        let added = |text: &str, start: i64, add: i64, overflow| {
            let mut bytes = vec![];
            set(&limits, &mut bytes, kind(text), 5, start, Wrap).unwrap();
            increment(&limits, &mut bytes, kind(text), 5, add, overflow).unwrap()
        };
        assert_eq!(added("u8", 250, 10, Wrap), Some(4));
        assert_eq!(added("u8", 250, 10, Saturate), Some(255));
        assert_eq!(added("u8", 250, 10, Fail), None);
        assert_eq!(added("u8", 3, -10, Wrap), Some(249));
        assert_eq!(added("u8", 3, -10, Saturate), Some(0));
        assert_eq!(added("i8", 120, 10, Wrap), Some(-126));
        assert_eq!(added("i8", -120, -10, Saturate), Some(-128));
        assert_eq!(added("i64", i64::MAX, 1, Wrap), Some(i64::MIN));
        assert_eq!(added("i64", i64::MAX, 1, Saturate), Some(i64::MAX));
        assert_eq!(added("i64", i64::MIN, -1, Fail), None);
        assert_eq!(added("u63", i64::MAX, 1, Wrap), Some(0));
        let mut bytes = vec![];
        assert_eq!(set(&limits, &mut bytes, kind("u8"), 0, -1, Saturate), Ok(Some(0)));
        assert_eq!(get(&bytes, kind("u8"), 0), 255);
        assert_eq!(set(&limits, &mut bytes, kind("u4"), 12, 16, Fail), Ok(None));
        assert_eq!(bytes, [255, 0]);
    }

    #[test]
    fn offsets_are_limited() {
        let limits = Limits { text_bytes: 2, ..Limits::default() };
        let mut bytes = vec![];
        let set = set(&limits, &mut bytes, kind("u8"), 16, 1, Overflow::Wrap);
        assert_eq!(set, Err(OffsetOutOfRange));
        assert_eq!(get(&bytes, kind("i64"), u64::MAX), 0);
        assert!(bytes.is_empty());
    }
}
