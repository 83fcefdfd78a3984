// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An entry of a packed sequence: a byte string, which is stored as an integer if it is the
//! decimal text of one.
//!
//! An entry can be read from either end, because its size follows its data:
//!
//! | first byte | entry |
//! |---|---|
//! | `0vvvvvvv` | integer 0 to 127; nothing follows, and the same byte is read from the end |
//! | `10llllll` | byte string of up to 63 bytes, which follow |
//! | `110lllll` | byte string of up to 8191 bytes; the next byte has the low bits of the length |
//! | `11100000` | byte string whose length is in the next 8 bytes |
//! | `1110wwww` | integer in the next `w` bytes, 1 to 8 |
//!
//! All but the first kind end with the size of what precedes, in the same three classes with
//! their marked byte last: `10ssssss`, then `110sssss` behind the low byte, then `11100000` behind
//! 8 bytes. A last byte below 128 is therefore an integer of the first kind. Numbers of several
//! bytes are little-endian. Each value has exactly one encoding, so that equal sequences are equal
//! byte strings.

use crate::corrupt::Corrupt;
use crate::number::{Digits, parse_integer};
use std::cmp::Ordering;

/// A value in a packed sequence. Made from a byte string by [`Entry::new`]: texts of integers are
/// always `Integer`, and entries are equal exactly if their byte strings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry<'a> {
    /// A byte string that is not the text of an integer.
    Bytes(&'a [u8]),
    /// The byte string that is the decimal text of this integer.
    Integer(i64),
}

impl<'a> Entry<'a> {
    /// Returns the entry that stands for `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        parse_integer(bytes).map_or(Self::Bytes(bytes), Self::Integer)
    }

    /// Number of bytes of the byte string.
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Integer(value) => Digits::new(value).as_bytes().len(),
        }
    }

    /// Whether the byte string is empty.
    pub fn is_empty(self) -> bool {
        self == Self::Bytes(&[])
    }

    /// The integer whose text the byte string is.
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Bytes(_) => None,
            Self::Integer(value) => Some(value),
        }
    }

    /// Calls `read` with the byte string, without an allocation.
    pub fn with_bytes<T>(self, read: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Bytes(bytes) => read(bytes),
            Self::Integer(value) => read(Digits::new(value).as_bytes()),
        }
    }

    /// Appends the byte string to `out`.
    pub fn append_to(self, out: &mut Vec<u8>) {
        self.with_bytes(|bytes| out.extend_from_slice(bytes));
    }

    /// Returns the byte string.
    pub fn to_vec(self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }

    /// Compares the byte strings, byte by byte.
    pub fn compare(self, other: Entry<'_>) -> Ordering {
        self.with_bytes(|own| other.with_bytes(|other| own.cmp(other)))
    }
}

impl<'a> From<&'a [u8]> for Entry<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes)
    }
}

impl<'a, const LEN: usize> From<&'a [u8; LEN]> for Entry<'a> {
    fn from(bytes: &'a [u8; LEN]) -> Self {
        Self::new(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Entry<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl From<i64> for Entry<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl PartialEq<[u8]> for Entry<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        match *self {
            Self::Bytes(bytes) => bytes == other,
            Self::Integer(value) => parse_integer(other) == Some(value),
        }
    }
}

/// Mark of a byte string of up to 63 bytes, and of a size in one byte.
const SHORT: u8 = 0x80;
/// Mark of a byte string of 63 bytes, the shortest whose size takes two bytes.
const LAST_TINY: u8 = 0xbf;
/// Mark of a byte string of up to 8191 bytes, and of a size in two bytes.
const MEDIUM: u8 = 0xc0;
/// Mark of a byte string of any length, and of a size in nine bytes; with a number of bytes in
/// its low bits, mark of an integer.
const LONG: u8 = 0xe0;

/// Number of bytes that encode `entry`.
pub fn encoded_size(entry: Entry<'_>) -> usize {
    let size = head(entry).len + data(entry).len();
    size + tail(entry, size).len
}

/// Writes `entry` to the start of `out` and returns its size.
///
/// # Panics
/// If `out` is shorter than [`encoded_size`].
pub(crate) fn encode(entry: Entry<'_>, out: &mut [u8]) -> usize {
    let (head, data) = (head(entry), data(entry));
    let size = head.len + data.len();
    out[..head.len].copy_from_slice(head.bytes());
    out[head.len..size].copy_from_slice(data);
    let tail = tail(entry, size);
    out[size..size + tail.len].copy_from_slice(tail.bytes());
    size + tail.len
}

/// Returns the entry at the start of `bytes` and its size; `None` if there is no whole entry.
#[inline]
pub(crate) fn first(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let &mark = bytes.first()?;
    let (start, length): (usize, usize) = match mark {
        0..SHORT => return Some((Entry::Integer(i64::from(mark)), 1)),
        SHORT..MEDIUM => (1, usize::from(mark & 0x3f)),
        MEDIUM..LONG => (2, usize::from(mark & 0x1f) << 8 | usize::from(*bytes.get(1)?)),
        LONG => (9, word(bytes.get(1..9)?)?),
        _ => (1, usize::from(mark & 0x1f)),
    };
    let end = start.checked_add(length)?;
    let data = bytes.get(start..end)?;
    let entry = if mark > LONG { integer(data)? } else { Entry::Bytes(data) };
    let size = end + tail_bytes(end);
    (bytes.len() >= size).then_some((entry, size))
}

/// Returns the size of the entry at the start of `bytes`; `None` if there is no whole entry.
#[inline]
pub(crate) fn first_size(bytes: &[u8]) -> Option<usize> {
    let &mark = bytes.first()?;
    let size = match mark {
        0..SHORT => 1,
        SHORT..LAST_TINY => usize::from(mark - SHORT) + 2,
        _ => return first(bytes).map(|(_, size)| size),
    };
    (size <= bytes.len()).then_some(size)
}

/// An entry that is searched for, encoded up to its data.
pub(crate) struct Needle<'a> {
    head: Frame,
    data: &'a [u8],
}

impl<'a> Needle<'a> {
    pub fn new(entry: Entry<'a>) -> Self {
        Self { head: head(entry), data: data(entry) }
    }

    /// Whether `bytes` begin with this entry: values have one encoding each.
    #[inline]
    pub fn begins(&self, bytes: &[u8]) -> bool {
        if bytes.first() != self.head.buffer.first() {
            return false;
        }
        let Some(same) = bytes.get(..self.head.len + self.data.len()) else { return false };
        // Names of one kind often have one length, and most of them different last bytes.
        same.last() == self.data.last().or(self.head.bytes().last())
            && (self.head.len == 1 || same.starts_with(self.head.bytes()))
            && same[self.head.len..] == *self.data
    }
}

/// Returns the size of the entry at the end of `bytes`; `None` if there is no whole entry.
#[inline]
pub(crate) fn last_size(bytes: &[u8]) -> Option<usize> {
    let (&mark, before) = bytes.split_last()?;
    let size = match mark {
        0..SHORT => return Some(1),
        SHORT..MEDIUM => usize::from(mark & 0x3f),
        MEDIUM..LONG => usize::from(mark & 0x1f) << 8 | usize::from(*before.last()?),
        _ => word(before.last_chunk::<8>()?)?,
    };
    let size = size.checked_add(tail_bytes(size))?;
    (size <= bytes.len()).then_some(size)
}

/// Checks the entry at the start of `bytes` and returns it with its size.
///
/// # Errors
/// An entry that is cut short, or that is not the one encoding of its value.
pub(crate) fn check(bytes: &[u8]) -> Result<(Entry<'_>, usize), Corrupt> {
    let (entry, size) = first(bytes).ok_or(Corrupt::at(0, "no whole entry"))?;
    if let Entry::Bytes(text) = entry
        && parse_integer(text).is_some()
    {
        return Err(Corrupt::at(0, "text of an integer is stored as bytes"));
    }
    let head = head(entry);
    if !bytes.starts_with(head.bytes()) {
        return Err(Corrupt::at(0, "entry has a shorter encoding"));
    }
    let end = head.len + data(entry).len();
    if &bytes[end..size] != tail(entry, end).bytes() {
        return Err(Corrupt::at(end, "size at the end of an entry is wrong"));
    }
    Ok((entry, size))
}

/// Up to nine bytes before or after the data of an entry.
struct Frame {
    buffer: [u8; 9],
    len: usize,
}

impl Frame {
    fn new(bytes: &[u8]) -> Self {
        let mut buffer = [0; 9];
        buffer[..bytes.len()].copy_from_slice(bytes);
        Self { buffer, len: bytes.len() }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Returns the bytes before the data. Those of an integer are all but its size.
fn head(entry: Entry<'_>) -> Frame {
    match entry {
        Entry::Integer(value @ 0..0x80) => Frame::new(&[value as u8]),
        Entry::Integer(value) => {
            let width = integer_bytes(value);
            let mut frame = Frame { buffer: [LONG | width as u8; 9], len: 1 + width };
            frame.buffer[1..].copy_from_slice(&value.to_le_bytes());
            frame
        }
        Entry::Bytes(bytes) => match bytes.len() {
            length @ 0..64 => Frame::new(&[SHORT | length as u8]),
            length @ 64..0x2000 => Frame::new(&[MEDIUM | (length >> 8) as u8, length as u8]),
            length => {
                let mut frame = Frame { buffer: [LONG; 9], len: 9 };
                frame.buffer[1..].copy_from_slice(&(length as u64).to_le_bytes());
                frame
            }
        },
    }
}

/// Returns the bytes between head and tail.
fn data(entry: Entry<'_>) -> &[u8] {
    match entry {
        Entry::Bytes(bytes) => bytes,
        Entry::Integer(_) => &[],
    }
}

/// Returns the bytes after head and data, which are `size` bytes.
fn tail(entry: Entry<'_>, size: usize) -> Frame {
    match size {
        _ if matches!(entry, Entry::Integer(0..0x80)) => Frame::new(&[]),
        0..64 => Frame::new(&[SHORT | size as u8]),
        64..0x2000 => Frame::new(&[size as u8, MEDIUM | (size >> 8) as u8]),
        _ => {
            let mut frame = Frame { buffer: [LONG; 9], len: 9 };
            frame.buffer[..8].copy_from_slice(&(size as u64).to_le_bytes());
            frame
        }
    }
}

/// Number of bytes of the tail behind `size` bytes.
#[inline]
fn tail_bytes(size: usize) -> usize {
    match size {
        0..64 => 1,
        64..0x2000 => 2,
        _ => 9,
    }
}

/// Number of bytes that hold `value` in two's complement.
fn integer_bytes(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    (65 - magnitude.leading_zeros() as usize).div_ceil(8)
}

fn integer(data: &[u8]) -> Option<Entry<'static>> {
    if data.len() > 8 {
        return None;
    }
    let fill = if data.last()? & 0x80 == 0 { 0 } else { 0xff };
    let mut bytes = [fill; 8];
    bytes[..data.len()].copy_from_slice(data);
    Some(Entry::Integer(i64::from_le_bytes(bytes)))
}

fn word(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(entry: Entry<'_>) -> usize {
        let size = encoded_size(entry);
        let mut bytes = vec![0xaa; size + 3];
        assert_eq!(encode(entry, &mut bytes), size);
        assert_eq!(first(&bytes), Some((entry, size)));
        assert_eq!(check(&bytes), Ok((entry, size)));
        assert_eq!(first_size(&bytes), Some(size));
        assert_eq!(first_size(&bytes[..size - 1]), None);
        assert_eq!(last_size(&bytes[..size]), Some(size));
        assert!(Needle::new(entry).begins(&bytes));
        assert_eq!(first(&bytes[..size - 1]), None, "{entry:?} without its last byte");
        size
    }

    #[test]
    fn integers_take_few_bytes() {
        let sizes = [(0, 1), (127, 1), (-1, 3), (128, 4), (-128, 3), (32767, 4), (32768, 5)];
        for (value, size) in sizes {
            assert_eq!(round_trip(Entry::Integer(value)), size, "{value}");
        }
        for shift in 0..64 {
            for value in [1i64 << shift, (1i64 << shift).wrapping_sub(1), i64::MIN >> shift] {
                round_trip(Entry::Integer(value));
            }
        }
    }

    #[test]
    fn byte_strings_of_every_class_survive() {
        let text = vec![b'x'; 9000];
        for length in [0, 1, 61, 62, 63, 64, 65, 255, 256, 8189, 8190, 8191, 8192, 9000] {
            round_trip(Entry::Bytes(&text[..length]));
        }
        assert_eq!(round_trip(Entry::Bytes(&text[..62])), 64);
        assert_eq!(round_trip(Entry::Bytes(&text[..64])), 68);
    }

    #[test]
    fn an_entry_is_its_byte_string() {
        assert_eq!(Entry::new(b"-12"), Entry::Integer(-12));
        assert_eq!(Entry::new(b"012"), Entry::Bytes(b"012"));
        assert!(Entry::Integer(12) == *b"12".as_slice());
        assert!(Entry::Integer(12) != *b"012".as_slice());
        assert_eq!(Entry::Integer(-12).len(), 3);
        assert_eq!(Entry::Integer(9).compare(Entry::Integer(10)), Ordering::Greater);
        assert_eq!(Entry::Integer(9).compare(Entry::new(b"9a")), Ordering::Less);
    }

    #[test]
    fn other_encodings_of_a_value_are_refused() {
        let reasons = |bytes: &[u8]| check(bytes).map_err(|corrupt| corrupt.reason).err();
        assert_eq!(reasons(&[0x81, b'7', 0x82]), Some("text of an integer is stored as bytes"));
        assert_eq!(reasons(&[0xe1, 7, 0x82]), Some("entry has a shorter encoding"));
        assert_eq!(reasons(&[0xe2, 0xff, 0xff, 0x83]), Some("entry has a shorter encoding"));
        assert_eq!(reasons(&[0xc0, 1, b'x', 0x83]), Some("entry has a shorter encoding"));
        assert_eq!(reasons(&[0x81, b'x', 0x83]), Some("size at the end of an entry is wrong"));
        assert_eq!(reasons(&[0xe9; 20]), Some("no whole entry"));
        assert_eq!(
            reasons(&[0xe0, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            Some("no whole entry")
        );
    }
}
