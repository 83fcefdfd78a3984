// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of integers as a sorted array: two bytes before it, and 2, 4 or 8 bytes for each member.
//!
//! The first byte is 0, which no other packed set begins with. The second is the number of bytes
//! of a member, which grows when a larger member comes, and does not shrink again. Members are
//! little-endian and ascend.

use crate::corrupt::Corrupt;
use std::ops::Range;

/// First byte of a set of integers.
pub(crate) const MARK: u8 = 0;
const HEADER_BYTES: usize = 2;

/// A set of integers that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Integers<'a> {
    width: usize,
    body: &'a [u8],
}

impl<'a> Integers<'a> {
    /// Reads the set in `bytes`; an empty one if they are no set of integers.
    pub fn new(bytes: &'a [u8]) -> Self {
        match bytes {
            [MARK, width @ (2 | 4 | 8), body @ ..] => Self { width: usize::from(*width), body },
            _ => Self { width: 2, body: &[] },
        }
    }

    /// Number of members.
    pub fn len(self) -> usize {
        self.body.len() / self.width
    }

    /// Whether there is no member.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Number of bytes of the whole set.
    pub fn size_bytes(self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    /// Returns member `index` in ascending order.
    pub fn get(self, index: usize) -> Option<i64> {
        let start = index.checked_mul(self.width)?;
        let member = self.body.get(start..start.checked_add(self.width)?)?;
        Some(match *member {
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => i64::from_le_bytes(member.try_into().ok()?),
        })
    }

    /// Whether `value` is a member.
    pub fn contains(self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// Returns the members in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = i64> + Clone + 'a {
        (0..self.len()).filter_map(move |index| self.get(index))
    }

    /// Appends the whole set to `out`.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[MARK, self.width as u8]);
        out.extend_from_slice(self.body);
    }

    /// Returns the index of `value`, or the index at which it would be.
    fn search(self, value: i64) -> Result<usize, usize> {
        let Range { mut start, mut end } = 0..self.len();
        while start < end {
            let middle = start.midpoint(end);
            match self.get(middle) {
                Some(member) if member == value => return Ok(middle),
                Some(member) if member < value => start = middle + 1,
                _ => end = middle,
            }
        }
        Err(start)
    }
}

/// Adds `value` to the set in `bytes`, which may be empty. Returns whether it was no member.
pub(crate) fn insert(bytes: &mut Vec<u8>, value: i64) -> bool {
    let set = Integers::new(bytes);
    let Err(index) = set.search(value) else { return false };
    let width = width_of(value);
    if width > set.width || bytes.is_empty() {
        *bytes = widened(set, width);
    }
    let width = usize::from(bytes[1]);
    let start = HEADER_BYTES + index * width;
    let len = bytes.len();
    bytes.resize(len + width, 0);
    bytes.copy_within(start..len, start + width);
    bytes[start..start + width].copy_from_slice(&value.to_le_bytes()[..width]);
    true
}

/// Removes `value` from the set in `bytes`. Returns whether it was a member.
pub(crate) fn remove(bytes: &mut Vec<u8>, value: i64) -> bool {
    let set = Integers::new(bytes);
    let Ok(index) = set.search(value) else { return false };
    let start = HEADER_BYTES + index * set.width;
    let width = set.width;
    bytes.drain(start..start + width);
    true
}

/// Checks the set of integers in `bytes`.
///
/// # Errors
/// A wrong number of bytes of a member, part of a member, no member, or members that do not ascend.
pub(crate) fn validate(bytes: &[u8]) -> Result<(), Corrupt> {
    let [MARK, width @ (2 | 4 | 8), body @ ..] = bytes else {
        return Err(Corrupt::at(0, "no set of integers"));
    };
    let width = usize::from(*width);
    if body.is_empty() || !body.len().is_multiple_of(width) {
        return Err(Corrupt::at(HEADER_BYTES, "part of an integer, or none"));
    }
    let members = Integers::new(bytes).iter();
    match members.clone().zip(members.skip(1)).position(|(one, next)| one >= next) {
        Some(at) => Err(Corrupt::at(HEADER_BYTES + at * width, "integers that do not ascend")),
        None => Ok(()),
    }
}

fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// Returns the set with members of `width` bytes, which is not less than theirs.
fn widened(set: Integers<'_>, width: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + (set.len() + 1) * width);
    bytes.extend_from_slice(&[MARK, width as u8]);
    for member in set.iter() {
        bytes.extend_from_slice(&member.to_le_bytes()[..width]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn random_changes_match_a_sorted_set() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut bytes, mut model) = (vec![], BTreeSet::new());
            for _ in 0..200 {
                let value = random.i64(-40..40) << [0, 0, 8, 20, 40][random.usize(0..5)];
                if random.u32(0..3) > 0 {
                    assert_eq!(insert(&mut bytes, value), model.insert(value), "seed {seed}");
                } else {
                    assert_eq!(remove(&mut bytes, value), model.remove(&value), "seed {seed}");
                }
                let set = Integers::new(&bytes);
                assert!(set.iter().eq(model.iter().copied()), "seed {seed}");
                assert_eq!(validate(&bytes).is_ok(), !model.is_empty(), "seed {seed}");
                assert_eq!(set.contains(value), model.contains(&value), "seed {seed}");
            }
        }
    }

    #[test]
    fn members_take_as_few_bytes_as_the_largest() {
        let mut bytes = vec![];
        for (value, size) in [(1, 4), (-32768, 6), (32768, 14), (i64::MIN, 34)] {
            insert(&mut bytes, value);
            assert_eq!(bytes.len(), size);
            assert_eq!(Integers::new(&bytes).size_bytes(), size);
        }
    }

    #[test]
    fn damage_is_found() {
        assert_eq!(validate(&[0, 2, 1, 0, 2, 0]), Ok(()));
        for bytes in [&[][..], &[0], &[0, 2], &[0, 3, 1, 0, 0], &[0, 2, 1], &[0, 2, 1, 0, 1, 0]] {
            assert!(validate(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(validate(&[0, 2, 1, 0, 9, 0, 2, 0]).unwrap_err().offset, 4);
    }
}
