// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values in a node: byte strings, stored as numbers where they are the texts of numbers.
//!
//! A value begins with a [`varint`] whose lowest bit is its kind:
//!
//! | lowest bit | other bits | then |
//! |---|---|---|
//! | 0 | length of a byte string | its bytes |
//! | 1 | an integer from -2^62 to 2^62 - 1, in zigzag order: 0, -1, 1, -2, ... | nothing |
//!
//! Texts of larger integers are stored as byte strings. Each value has exactly one encoding. An
//! [`entry`](crate::entry) of a packed sequence would also fit, but has to be read from its end:
//! values of a stream never are, which saves a byte for each.

use super::reader::Reader;
use crate::entry::Entry;
use crate::number::parse_integer;
use crate::varint;

/// Bound of integers that are stored as such.
const BOUND: i64 = 1 << 62;

/// Lengths of the texts of integers beyond the bound.
const LONG_INTEGER: std::ops::RangeInclusive<usize> = 19..=20;

/// Appends a value.
pub fn put(out: &mut Vec<u8>, value: &[u8]) {
    match small_integer(value) {
        Some(integer) => varint::write(head_of_integer(integer), out),
        None => {
            varint::write(head_of_bytes(value), out);
            out.extend_from_slice(value);
        }
    }
}

/// Number of bytes that [`put`] appends.
pub fn size(value: &[u8]) -> usize {
    match small_integer(value) {
        Some(integer) => varint::size(head_of_integer(integer)),
        None => varint::size(head_of_bytes(value)) + value.len(),
    }
}

/// Reads a value.
pub fn read<'a>(reader: &mut Reader<'a>) -> Option<Entry<'a>> {
    let head = reader.number()?;
    let rest = head >> 1;
    if head & 1 == 1 {
        let sign = -((rest & 1) as i64);
        return Some(Entry::Integer((rest >> 1) as i64 ^ sign));
    }
    let bytes = reader.take(usize::try_from(rest).ok()?)?;
    let may_be_integer = LONG_INTEGER.contains(&bytes.len());
    Some(if may_be_integer { Entry::new(bytes) } else { Entry::Bytes(bytes) })
}

/// Reads a value from outside, which has to be encoded as [`put`] does.
pub fn check<'a>(reader: &mut Reader<'a>) -> Option<Entry<'a>> {
    let before = reader.position();
    let value = read(reader)?;
    let expected = value.with_bytes(size);
    (reader.position() - before == expected).then_some(value)
}

fn small_integer(value: &[u8]) -> Option<i64> {
    parse_integer(value).filter(|integer| (-BOUND..BOUND).contains(integer))
}

fn head_of_integer(integer: i64) -> u64 {
    let zigzag = (integer << 1) ^ (integer >> 63);
    (zigzag as u64) << 1 | 1
}

fn head_of_bytes(value: &[u8]) -> u64 {
    (value.len() as u64) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        put(&mut out, value);
        assert_eq!(out.len(), size(value), "{value:?}");
        out
    }

    #[test]
    fn values_keep_their_bytes() {
        let powers = (0..63).flat_map(|bit| [1i64 << bit, -(1 << bit), (1 << bit) - 1]);
        let integers = powers.chain([i64::MAX, i64::MIN, BOUND - 1, -BOUND - 1]);
        let mut values: Vec<Vec<u8>> = integers.map(|it| it.to_string().into()).collect();
        for text in ["", "-", "-0", "007", "+5", " 5", "5 ", "9223372036854775808", "\0", "text"] {
            values.push(text.into());
        }
        values.extend([63, 64, 127, 8191, 8192].map(|length| vec![b'x'; length]));
        for value in values {
            let out = encoded(&value);
            let mut reader = Reader::new(&out);
            let found = check(&mut reader).unwrap();
            assert_eq!(found, Entry::new(&value));
            assert_eq!(found.to_vec(), value);
            assert!(reader.is_at_end());
            assert_eq!(read(&mut Reader::new(&out[..out.len() - 1])), None);
        }
    }

    #[test]
    fn integers_are_small() {
        let sizes = ["0", "-32", "31", "4095", "1700000000", "1700000000000"];
        assert_eq!(sizes.map(|text| size(text.as_bytes())), [1, 1, 1, 2, 5, 7]);
        assert_eq!((size(b""), size(&[b'x'; 63]), size(&[b'x'; 64])), (1, 64, 66));
    }

    #[test]
    fn a_number_as_a_byte_string_is_refused() {
        for text in ["5", "-123", "4611686018427387903"] {
            let mut wrong = vec![2 * text.len() as u8];
            wrong.extend(text.bytes());
            assert_eq!(check(&mut Reader::new(&wrong)), None, "{text}");
        }
    }
}
