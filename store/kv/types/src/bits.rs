// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings as vectors of bits. Bit 0 is the highest bit of the first byte, and bits behind the end
//! are 0. A key that does not exist is an empty string, except for BITPOS, where it has all bits
//! of 0 instead of none.

use crate::limits::Limits;
use crate::text::inclusive;
use thiserror::Error;

/// A bit lies behind the largest string. The text is that of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("bit offset is not an integer or out of range")]
pub struct OffsetOutOfRange;

/// Unit of the bounds of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bounds are indexes of bytes.
    Byte,
    /// Bounds are indexes of bits.
    Bit,
}

/// A range of bytes or bits, both bounds included, negative ones counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// First index.
    pub start: i64,
    /// Last index.
    pub end: i64,
    /// Unit of both.
    pub unit: Unit,
}

/// An operation on several strings (BITOP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bits that are 1 in all strings.
    And,
    /// Bits that are 1 in one of the strings.
    Or,
    /// Bits that are 1 in an odd number of strings.
    Xor,
    /// Bits that are 0 in the only string.
    Not,
}

/// Returns a bit (GETBIT).
pub fn get(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|at| bytes.get(at));
    byte.is_some_and(|byte| byte & mask_of(offset) != 0)
}

/// Sets a bit and returns the old one (SETBIT). Zeros fill the string up to it.
///
/// # Errors
/// [`OffsetOutOfRange`]; the string is unchanged.
pub fn set(
    limits: &Limits,
    bytes: &mut Vec<u8>,
    offset: u64,
    bit: bool,
) -> Result<bool, OffsetOutOfRange> {
    let at = check_offset(limits, offset)?;
    if bytes.len() <= at {
        bytes.resize(at + 1, 0);
    }
    Ok(set_within(bytes, offset, bit))
}

/// As [`set`], for a string that has the bit.
///
/// # Panics
/// It is too short.
pub fn set_within(bytes: &mut [u8], offset: u64, bit: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let old = *byte & mask_of(offset) != 0;
    if old != bit {
        *byte ^= mask_of(offset);
    }
    old
}

/// Returns the index of the byte that has bit `offset`.
///
/// # Errors
/// [`OffsetOutOfRange`] if no string may have that byte.
pub fn check_offset(limits: &Limits, offset: u64) -> Result<usize, OffsetOutOfRange> {
    let at = usize::try_from(offset / 8).ok();
    at.filter(|&at| at < limits.text_bytes).ok_or(OffsetOutOfRange)
}

fn mask_of(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// Returns the number of bits that are 1 (BITCOUNT without a range).
pub fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let (blocks, words) = words.as_chunks::<16>();
    let words: u64 = words.iter().map(|word| ones(u64::from_ne_bytes(*word))).sum();
    count_blocks(blocks) + words + rest
}

/// Adds blocks of 16 words bit by bit, as a counter of five binary digits for each of 64 columns,
/// so that bits are counted in one word of 16 only (Harley and Seal; Warren, Hacker's Delight,
/// 5-1).
fn count_blocks(blocks: &[[[u8; 8]; 16]]) -> u64 {
    let mut digits = [0u64; 4];
    let mut sixteens = 0;
    for block in blocks {
        let words = block.map(u64::from_ne_bytes);
        let mut carries = [0; 8];
        for (carry, pair) in carries.iter_mut().zip(words.as_chunks::<2>().0) {
            *carry = add(&mut digits[0], pair[0], pair[1]);
        }
        let [a, b, c, d, e, f, g, h] = carries;
        let fours =
            [(a, b), (c, d), (e, f), (g, h)].map(|(one, two)| add(&mut digits[1], one, two));
        let eights = [(fours[0], fours[1]), (fours[2], fours[3])]
            .map(|(one, two)| add(&mut digits[2], one, two));
        sixteens += ones(add(&mut digits[3], eights[0], eights[1]));
    }
    let [first, second, fourth, eighth] = digits.map(ones);
    16 * sixteens + 8 * eighth + 4 * fourth + 2 * second + first
}

/// Adds two words to a binary digit of 64 counters and returns the carries.
fn add(digit: &mut u64, one: u64, two: u64) -> u64 {
    let half = *digit ^ one;
    let carry = (*digit & one) | (half & two);
    *digit = half ^ two;
    carry
}

fn ones(word: u64) -> u64 {
    u64::from(word.count_ones())
}

/// Returns the number of bits that are 1 in a range (BITCOUNT).
pub fn count_range(bytes: &[u8], bounds: Bounds) -> u64 {
    if bounds.start < 0 && bounds.end < 0 && bounds.start > bounds.end {
        return 0;
    }
    let Some((first, last)) = bits_of(bytes, bounds) else { return 0 };
    let (part, before, behind) = part_of(bytes, first, last);
    let outside_first = part.first().map_or(0, |byte| byte & before);
    let outside_last = part.last().map_or(0, |byte| byte & behind);
    count(part) - u64::from(outside_first.count_ones() + outside_last.count_ones())
}

/// Returns the first bit that is `bit`, in the whole string or from a bound to another (BITPOS).
///
/// If `end` is `None`, zeros follow the string: without a 0 in it, the first one is behind its
/// end. A string of a key that does not exist is not given here: its first 0 is at 0.
pub fn position(bytes: &[u8], bit: bool, start: i64, end: Option<i64>, unit: Unit) -> Option<u64> {
    let bounds = Bounds { start, end: end.unwrap_or(-1), unit };
    let (first, last) = bits_of(bytes, bounds)?;
    let (part, before, behind) = part_of(bytes, first, last);
    let start = first as u64 / 8 * 8;
    // Bits outside the range are made those that are not looked for.
    let inverted = if bit { 0 } else { 0xff };
    let byte_at = |at: usize| {
        let mut byte = part[at] ^ inverted;
        if at == 0 {
            byte &= !before;
        }
        if at == part.len() - 1 {
            byte &= !behind;
        }
        byte
    };
    let found = |at: usize| {
        let byte = byte_at(at);
        (byte != 0).then(|| start + at as u64 * 8 + u64::from(byte.leading_zeros()))
    };
    let last_byte = part.len() - 1;
    let between = (1 + leading(&part[1..], inverted)).min(last_byte);
    found(0).or_else(|| found(between)).or_else(|| {
        let is_padded = !bit && end.is_none();
        is_padded.then_some(bytes.len() as u64 * 8)
    })
}

/// Number of bytes at the start that are `value`, found 32 at a time.
fn leading(bytes: &[u8], value: u8) -> usize {
    let (blocks, _) = bytes.as_chunks::<32>();
    let skipped = 32 * blocks.iter().take_while(|&&block| block == [value; 32]).count();
    skipped + bytes[skipped..].iter().take_while(|&&byte| byte == value).count()
}

/// Returns the first and the last bit of a range; `None` if there is none.
fn bits_of(bytes: &[u8], bounds: Bounds) -> Option<(usize, usize)> {
    match bounds.unit {
        Unit::Bit => inclusive(bytes.len() * 8, bounds.start, bounds.end),
        Unit::Byte => {
            let (first, last) = inclusive(bytes.len(), bounds.start, bounds.end)?;
            Some((first * 8, last * 8 + 7))
        }
    }
}

/// Returns the bytes that have the bits from `first` to `last`, a mask of the bits before those in
/// the first byte, and one of the bits behind them in the last byte.
fn part_of(bytes: &[u8], first: usize, last: usize) -> (&[u8], u8, u8) {
    let before = !(0xff >> (first % 8));
    let behind = 0x7f >> (last % 8);
    (&bytes[first / 8..=last / 8], before, behind)
}

/// Returns the result of an operation, as long as the longest string (BITOP). `Not` takes the
/// first string only.
pub fn operate(operation: Operation, strings: &[&[u8]]) -> Vec<u8> {
    let len = strings.iter().map(|string| string.len()).max().unwrap_or(0);
    let Some((first, others)) = strings.split_first() else { return vec![] };
    if operation == Operation::Not {
        return first.iter().map(|byte| !byte).collect();
    }
    let mut result = first.to_vec();
    result.resize(len, 0);
    for string in others {
        let (same, behind) = result.split_at_mut(string.len());
        let pairs = same.iter_mut().zip(*string);
        match operation {
            Operation::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                behind.fill(0);
            }
            Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Operation::Xor | Operation::Not => pairs.for_each(|(byte, other)| *byte ^= other),
        }
    }
    result
}
