// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packed form of a sorted set: a packed sequence of members and scores in turn, in order.
//!
//! A score that is an integer of up to 2^53 is an integer entry. Every other score is the byte `.`
//! and the bytes of the double, highest first, without the zeros at their end: 0.5 takes five
//! bytes. No such byte string is the text of an integer, so each score has one encoding.

use std::cmp::Ordering;

use super::Large;
use crate::corrupt::Corrupt;
use crate::entry::{Entry, encoded_size};
use crate::limits::Limits;
use crate::packed::{self, Packed, Place};
use crate::varint;

/// First byte of a score that is not an integer entry.
const MARK: u8 = b'.';

/// Largest magnitude of a score that is stored as an integer.
const MAX_INTEGER: f64 = (1u64 << 53) as f64;

/// Bytes of a score, from which its entry is made.
pub(super) struct EncodedScore {
    integer: Option<i64>,
    bytes: [u8; 9],
    len: usize,
}

impl EncodedScore {
    pub(super) fn new(score: f64) -> Self {
        let mut bytes = [MARK; 9];
        bytes[1..].copy_from_slice(&score.to_bits().to_be_bytes());
        let is_integer = score.abs() <= MAX_INTEGER
            && score.trunc() == score
            && !(score == 0.0 && score.is_sign_negative());
        let len = 9 - score.to_bits().trailing_zeros() as usize / 8;
        Self { integer: is_integer.then_some(score as i64), bytes, len: len.max(1) }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        self.integer.map_or(Entry::Bytes(&self.bytes[..self.len]), Entry::Integer)
    }
}

/// The score that `entry` holds.
pub(super) fn decode_score(entry: Entry<'_>) -> f64 {
    match entry {
        Entry::Integer(value) => value as f64,
        Entry::Bytes(bytes) => {
            let mut bits = [0; 8];
            let data = bytes.get(1..).unwrap_or_default();
            let len = data.len().min(8);
            bits[..len].copy_from_slice(&data[..len]);
            f64::from_bits(u64::from_be_bytes(bits))
        }
    }
}

/// Number of members.
pub(super) fn len(packed: Packed<'_>) -> usize {
    packed.len() / 2
}

/// Finds `member`: its place and its score.
pub(super) fn find(packed: Packed<'_>, member: &[u8]) -> Option<(Place, f64)> {
    let place = packed.find(Place::START, Entry::new(member), 2)?;
    let score = packed.iter_from(place).nth(1)?;
    Some((place, decode_score(score)))
}

/// Number of elements before `member`, and its score.
pub(super) fn rank(packed: Packed<'_>, member: &[u8]) -> Option<(usize, f64)> {
    let wanted = Entry::new(member);
    let mut elements = SmallIter::new(packed, 0..len(packed)).enumerate();
    elements.find_map(|(rank, (other, score))| (other == wanted).then_some((rank, score)))
}

/// Number of elements for which `is_before` holds, which are the first.
pub(super) fn partition(packed: Packed<'_>, is_before: impl Fn(f64, Entry<'_>) -> bool) -> usize {
    let mut elements = SmallIter::new(packed, 0..len(packed));
    let after = elements.position(|(member, score)| !is_before(score, member));
    after.unwrap_or(len(packed))
}

/// Inserts `member`, which is not in the set, at its place in the order. The search begins at
/// `near`, a place of a member or the end.
pub(super) fn insert(bytes: &mut Vec<u8>, near: Place, member: &[u8], score: f64) {
    let packed = Packed::new(bytes);
    let entry = Entry::new(member);
    let is_before = |member: Place, score_place: Place| {
        let other_score = packed.entry(score_place).map(decode_score);
        let other = packed.entry(member);
        other.zip(other_score).is_some_and(|(other, other_score)| {
            let is_tie = other_score == score;
            other_score < score || is_tie && other.compare(entry) == Ordering::Less
        })
    };
    let mut place = near;
    while let Some(score_place) = packed.after(place)
        && is_before(place, score_place)
    {
        place = packed.after(score_place).unwrap_or(packed.end());
    }
    // If the place did not move, it may be before `near`.
    while let Some(score_place) = packed.before(place)
        && let Some(member) = packed.before(score_place)
        && !is_before(member, score_place)
    {
        place = member;
    }
    packed::splice(bytes, place, 0, &[entry, EncodedScore::new(score).entry()]);
}

/// Removes the `count` elements from rank `rank`.
pub(super) fn remove(bytes: &mut Vec<u8>, rank: usize, count: usize) {
    let packed = Packed::new(bytes);
    if let Some(place) = packed.place(2 * rank as isize) {
        packed::remove(bytes, place, 2 * count);
    }
}

/// Appends an element that is after all others.
pub(super) fn push(bytes: &mut Vec<u8>, member: &[u8], score: f64) {
    let end = Packed::new(bytes).end();
    let score = EncodedScore::new(score);
    packed::splice(bytes, end, 0, &[Entry::new(member), score.entry()]);
}

/// Whether the set may be packed by `limits`.
pub(super) fn is_within(limits: &Limits, packed: Packed<'_>) -> bool {
    len(packed) <= limits.zset_entries
        && packed.iter().step_by(2).all(|member| member.len() <= limits.zset_value_bytes)
}

/// The large form of a packed set, which is in order.
pub(super) fn enlarge(limits: &Limits, packed: Packed<'_>) -> Large {
    let elements: Vec<_> = SmallIter::new(packed, 0..len(packed))
        .map(|(member, score)| (member.to_vec(), score))
        .collect();
    let elements = elements.iter().map(|(member, score)| (member.as_slice(), *score));
    Large::from_sorted(limits.hash_seed, elements).expect("a packed set is in order")
}

/// Checks that `bytes` are members and scores in order, each member once.
pub(super) fn validate(bytes: &[u8]) -> Result<(), Corrupt> {
    packed::validate(bytes)?;
    let packed = Packed::new(bytes);
    if packed.len() % 2 == 1 {
        return Err(Corrupt::at(0, "a member has no score"));
    }
    let mut members = Vec::with_capacity(len(packed));
    let mut last: Option<(Entry<'_>, f64)> = None;
    let mut entries = packed.iter();
    let mut next = varint::size(packed.len() as u64);
    while let (Some(member), Some(entry)) = (entries.next(), entries.next()) {
        let offset = next;
        next += encoded_size(member) + encoded_size(entry);
        let score = decode_score(entry);
        if score.is_nan() || EncodedScore::new(score).entry() != entry {
            return Err(Corrupt::at(offset, "an entry is not a score"));
        }
        let is_ordered = last.is_none_or(|(before, low)| {
            low < score || low == score && before.compare(member) == Ordering::Less
        });
        if !is_ordered {
            return Err(Corrupt::at(offset, "elements are not in order"));
        }
        last = Some((member, score));
        members.push((member, offset));
    }
    members.sort_by(|(one, _), (other, _)| one.compare(*other));
    match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Corrupt::at(pair[1].1, "a member is repeated")),
        None => Ok(()),
    }
}

/// Elements of a range of ranks, from both ends.
#[derive(Clone, Debug)]
pub(super) struct SmallIter<'a> {
    entries: packed::Iter<'a>,
    left: usize,
    /// Elements after the range, which are passed when something is taken from the end.
    after: usize,
}

impl<'a> SmallIter<'a> {
    pub(super) fn new(packed: Packed<'a>, ranks: std::ops::Range<usize>) -> Self {
        let start = packed.place(2 * ranks.start as isize).unwrap_or(packed.end());
        let after = len(packed) - ranks.end;
        Self { entries: packed.iter_from(start), left: ranks.len(), after }
    }
}

impl<'a> Iterator for SmallIter<'a> {
    type Item = (Entry<'a>, f64);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((self.entries.next()?, decode_score(self.entries.next()?)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for SmallIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        for _ in 0..2 * std::mem::take(&mut self.after) {
            self.entries.next_back()?;
        }
        let score = decode_score(self.entries.next_back()?);
        Some((self.entries.next_back()?, score))
    }
}

impl ExactSizeIterator for SmallIter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_survive_in_few_bytes() {
        let sizes = [(0.0, 1), (127.0, 1), (0.5, 5), (-0.0, 4), (1e300, 11), (0.1, 11)];
        for (score, size) in sizes {
            let encoded = EncodedScore::new(score);
            let decoded = decode_score(encoded.entry());
            assert_eq!(decoded.to_bits(), f64::to_bits(score));
            assert_eq!(encoded_size(encoded.entry()), size, "{score}");
        }
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..10_000 {
            let bits = random.u64(..) & !0u64.unbounded_shl(random.u32(0..65));
            let score = f64::from_bits(bits);
            let encoded = EncodedScore::new(score);
            assert_eq!(decode_score(encoded.entry()).to_bits(), bits);
            assert_eq!(Entry::new(&encoded.entry().to_vec()), encoded.entry(), "{score}");
        }
    }

    #[test]
    fn damage_of_order_is_found() {
        let set = |elements: &[(&str, f64)]| {
            let mut bytes = vec![];
            elements.iter().for_each(|(member, score)| push(&mut bytes, member.as_bytes(), *score));
            validate(&bytes).map_err(|corrupt| corrupt.reason)
        };
        assert_eq!(set(&[("a", 1.0), ("b", 1.0), ("a7", 2.5)]), Ok(()));
        assert_eq!(set(&[("b", 1.0), ("a", 1.0)]), Err("elements are not in order"));
        assert_eq!(set(&[("b", 2.0), ("a", 1.0)]), Err("elements are not in order"));
        assert_eq!(set(&[("a", 1.0), ("a", 2.0)]), Err("a member is repeated"));
        let mut bytes = vec![];
        packed::push_back(&mut bytes, Entry::new(b"a"));
        assert_eq!(validate(&bytes).map_err(|corrupt| corrupt.offset), Err(0));
        packed::push_back(&mut bytes, Entry::new(b".\x3f\xf0"));
        assert_eq!(validate(&bytes), Err(Corrupt::at(1, "an entry is not a score")));
    }
}
