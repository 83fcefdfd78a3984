// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packed sequence: byte strings and integers one after the other in one byte string.
//!
//! It is the number of entries ([`varint`]) and then the entries ([`entry`]), with
//! nothing between or behind them. The empty sequence is the empty byte string. It holds no
//! addresses and no length of its own, so it can be copied, moved and stored as a plain value.
//!
//! [`Packed`] reads a sequence where it lies. The functions of this module edit one in a vector;
//! every edit is a [`splice`], which moves the bytes behind it once.
//!
//! Bytes from elsewhere are given to [`validate`] first. On bytes that were not, reading returns
//! wrong entries or ends early, and editing may panic.

use crate::corrupt::Corrupt;
use crate::entry::{self, Entry, Needle};
use crate::varint;
use std::ops::Range;

/// A packed sequence that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    len: usize,
    body: &'a [u8],
}

/// Position of an entry in a sequence, or the position behind the last one. It stays right while
/// the entries before it stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(usize);

impl Place {
    /// Position of the first entry.
    pub const START: Self = Self(0);
}

impl<'a> Packed<'a> {
    /// Reads the sequence in `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        let (len, header) = header(bytes);
        Self { len, body: &bytes[header..] }
    }

    /// Number of entries.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Number of bytes of the whole sequence.
    pub fn size_bytes(self) -> usize {
        if self.is_empty() { 0 } else { varint::size(self.len as u64) + self.body.len() }
    }

    /// Appends the whole sequence to `out`.
    pub fn write(self, out: &mut Vec<u8>) {
        if !self.is_empty() {
            varint::write(self.len as u64, out);
            out.extend_from_slice(self.body);
        }
    }

    /// Offset of `place` in the bytes of the sequence.
    pub(crate) fn offset(self, place: Place) -> usize {
        varint::size(self.len as u64) + place.0
    }

    /// The encoded entries, without their number.
    pub(crate) fn body(self) -> &'a [u8] {
        self.body
    }

    /// Returns the entries, from either end.
    #[inline]
    pub fn iter(self) -> Iter<'a> {
        Iter { rest: self.body }
    }

    /// Returns the entries from `place` to the end, from either end.
    ///
    /// # Panics
    /// If `place` is behind the end.
    #[inline]
    pub fn iter_from(self, place: Place) -> Iter<'a> {
        Iter { rest: &self.body[place.0..] }
    }

    /// Returns the position of entry `index`, counted from 0, or backwards from -1 as the last
    /// one. Walks from the nearer end.
    pub fn place(self, index: isize) -> Option<Place> {
        let from_start = if index < 0 {
            self.len.checked_sub(index.unsigned_abs())?
        } else {
            index.unsigned_abs()
        };
        let from_end = self.len.checked_sub(from_start).filter(|&distance| distance > 0)?;
        if from_start <= from_end {
            return (0..from_start).try_fold(Place::START, |place, _| self.after(place));
        }
        (0..from_end).try_fold(self.end(), |place, _| self.before(place))
    }

    /// Returns entry `index`, counted as by [`place`](Self::place).
    pub fn get(self, index: isize) -> Option<Entry<'a>> {
        self.entry(self.place(index)?)
    }

    /// Position behind the last entry.
    pub fn end(self) -> Place {
        Place(self.body.len())
    }

    /// Returns the entry at `place`; `None` at the end.
    pub fn entry(self, place: Place) -> Option<Entry<'a>> {
        entry::first(&self.body[place.0..]).map(|(entry, _)| entry)
    }

    /// Returns the position behind the entry at `place`; `None` at the end.
    pub fn after(self, place: Place) -> Option<Place> {
        entry::first_size(&self.body[place.0..]).map(|size| Place(place.0 + size))
    }

    /// Returns the position of the entry before `place`; `None` at the start.
    pub fn before(self, place: Place) -> Option<Place> {
        entry::last_size(&self.body[..place.0]).map(|size| Place(place.0 - size))
    }

    /// Returns the position of the first entry equal to `needle`, of every `stride`-th from
    /// `start`. A stride of 2 finds a name where names and values alternate.
    ///
    /// # Panics
    /// If `stride` is 0.
    pub fn find<'n>(
        self,
        start: Place,
        needle: impl Into<Entry<'n>>,
        stride: usize,
    ) -> Option<Place> {
        assert!(stride > 0, "a stride of 0 finds nothing");
        let needle = Needle::new(needle.into());
        let mut rest = &self.body[start.0..];
        loop {
            if needle.begins(rest) {
                return Some(Place(self.body.len() - rest.len()));
            }
            for _ in 0..stride {
                rest = rest.get(entry::first_size(rest)?..)?;
            }
        }
    }
}

impl<'a> IntoIterator for Packed<'a> {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterator over the entries of a sequence.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        let (entry, size) = entry::first(self.rest)?;
        self.rest = &self.rest[size..];
        Some(entry)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let start = self.rest.len() - entry::last_size(self.rest)?;
        let (entry, _) = entry::first(&self.rest[start..])?;
        self.rest = &self.rest[..start];
        Some(entry)
    }
}

/// Checks that `bytes` are a packed sequence: every length lies inside, both ends of every entry
/// agree, and every value has its one encoding.
///
/// # Errors
/// The first violation.
pub fn validate(bytes: &[u8]) -> Result<(), Corrupt> {
    if bytes.is_empty() {
        return Ok(());
    }
    let (len, header) = varint::read(bytes).ok_or(Corrupt::at(0, "no number of entries"))?;
    if len == 0 {
        return Err(Corrupt::at(0, "an empty sequence has no bytes"));
    }
    let mut at = header;
    for _ in 0..len {
        let (_, size) = entry::check(&bytes[at..]).map_err(|corrupt| corrupt.behind(at))?;
        at += size;
    }
    if at < bytes.len() {
        return Err(Corrupt::at(at, "bytes behind the last entry"));
    }
    Ok(())
}

/// Puts `inserted` in place of the `removed` entries from `place`, in the packed sequence in
/// `bytes`. `removed` ends with the sequence. Grows the vector as pushing to it does; a caller
/// that wants an exact capacity reserves it before.
///
/// # Panics
/// If `place` is not a position of the sequence.
pub fn splice(bytes: &mut Vec<u8>, place: Place, removed: usize, inserted: &[Entry<'_>]) {
    let (len, header_bytes) = header(bytes);
    let start = header_bytes + place.0;
    let (removed, removed_bytes) = sizes(&bytes[start..], removed);
    let inserted_bytes: usize = inserted.iter().map(|&entry| entry::encoded_size(entry)).sum();
    let gap = start..start + inserted_bytes;
    resize(bytes, start, removed_bytes, inserted_bytes);
    let mut rest = &mut bytes[gap];
    for &entry in inserted {
        let size = entry::encode(entry, rest);
        rest = &mut rest[size..];
    }
    set_header(bytes, header_bytes, len - removed + inserted.len());
}

/// Inserts `entry` before the one at `place`.
pub fn insert(bytes: &mut Vec<u8>, place: Place, entry: Entry<'_>) {
    splice(bytes, place, 0, &[entry]);
}

/// Puts `entry` in place of the one at `place`.
pub fn replace(bytes: &mut Vec<u8>, place: Place, entry: Entry<'_>) {
    splice(bytes, place, 1, &[entry]);
}

/// Removes `count` entries from `place`, or as many as there are.
pub fn remove(bytes: &mut Vec<u8>, place: Place, count: usize) {
    splice(bytes, place, count, &[]);
}

/// Inserts `entry` before all others.
pub fn push_front(bytes: &mut Vec<u8>, entry: Entry<'_>) {
    splice(bytes, Place::START, 0, &[entry]);
}

/// Inserts `entry` behind all others.
pub fn push_back(bytes: &mut Vec<u8>, entry: Entry<'_>) {
    let end = Packed::new(bytes).end();
    splice(bytes, end, 0, &[entry]);
}

/// Appends the `count` entries of `source` from one position to another, which are copied as they
/// lie.
///
/// # Panics
/// If the positions are no range of `source`.
pub fn append(bytes: &mut Vec<u8>, source: Packed<'_>, range: Range<Place>, count: usize) {
    let (len, header_bytes) = header(bytes);
    bytes.extend_from_slice(&source.body[range.start.0..range.end.0]);
    set_header(bytes, header_bytes, len + count);
}

/// Number of entries of the sequence in `bytes` and the size of that number.
#[inline]
fn header(bytes: &[u8]) -> (usize, usize) {
    let (len, size) = varint::read(bytes).unwrap_or((0, 0));
    (len as usize, size)
}

/// Returns the number and the size of the first `count` entries, or of as many as there are.
fn sizes(body: &[u8], count: usize) -> (usize, usize) {
    let mut at = 0;
    for found in 0..count {
        match entry::first_size(&body[at..]) {
            Some(size) => at += size,
            None => return (found, at),
        }
    }
    (count, at)
}

/// Makes the `old` bytes from `start` `new` bytes, and moves those behind.
fn resize(bytes: &mut Vec<u8>, start: usize, old: usize, new: usize) {
    let len = bytes.len();
    if new > old {
        bytes.resize(len + new - old, 0);
    }
    bytes.copy_within(start + old..len, start + new);
    bytes.truncate(len + new - old);
}

/// Writes the number of entries over the old one, which takes `old_bytes`.
fn set_header(bytes: &mut Vec<u8>, old_bytes: usize, len: usize) {
    if len == 0 {
        bytes.clear();
        return;
    }
    let new_bytes = varint::size(len as u64);
    if new_bytes != old_bytes {
        resize(bytes, 0, old_bytes, new_bytes);
    }
    varint::put(len as u64, &mut bytes[..new_bytes]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(texts: &[&str]) -> Vec<u8> {
        let mut bytes = vec![];
        for text in texts {
            push_back(&mut bytes, Entry::new(text.as_bytes()));
        }
        bytes
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let text = |entry: Entry<'_>| String::from_utf8(entry.to_vec()).unwrap();
        Packed::new(bytes).iter().map(text).collect()
    }

    #[test]
    fn a_small_sequence_takes_few_bytes() {
        assert_eq!(packed(&[]).len(), 0);
        assert_eq!(packed(&["1"]), [1, 1]);
        assert_eq!(packed(&["a", "12"]), [2, 0x81, b'a', 0x82, 12]);
    }

    #[test]
    fn entries_are_found_from_either_end() {
        let bytes = packed(&["a", "1", "b", "300", ""]);
        let sequence = Packed::new(&bytes);
        assert_eq!(sequence.get(0), Some(Entry::Bytes(b"a")));
        assert_eq!(sequence.get(3), Some(Entry::Integer(300)));
        assert_eq!(sequence.get(-1), Some(Entry::Bytes(b"")));
        assert_eq!(sequence.get(-5), Some(Entry::Bytes(b"a")));
        assert_eq!(sequence.get(5), None);
        assert_eq!(sequence.get(-6), None);
        assert_eq!(sequence.get(isize::MIN), None);
        assert_eq!(sequence.find(Place::START, b"300", 1), sequence.place(3));
        assert_eq!(sequence.find(Place::START, b"300", 2), None);
        assert_eq!(sequence.find(Place::START, b"b", 2), sequence.place(2));
        assert_eq!(sequence.find(sequence.end(), b"b", 2), None);
        let last = sequence.before(sequence.end()).unwrap();
        assert_eq!(sequence.after(last), Some(sequence.end()));
        assert_eq!(sequence.before(Place::START), None);
    }

    #[test]
    fn edits_move_what_is_behind() {
        let mut bytes = packed(&["a", "b", "c"]);
        let middle = Packed::new(&bytes).place(1).unwrap();
        replace(&mut bytes, middle, Entry::new(b"longer"));
        insert(&mut bytes, middle, Entry::new(b"7"));
        push_front(&mut bytes, Entry::new(b"first"));
        assert_eq!(texts(&bytes), ["first", "a", "7", "longer", "c"]);
        let place = Packed::new(&bytes).place(3).unwrap();
        remove(&mut bytes, place, 10);
        assert_eq!(texts(&bytes), ["first", "a", "7"]);
        remove(&mut bytes, Place::START, 3);
        assert!(bytes.is_empty());
    }

    #[test]
    fn ranges_are_appended_as_they_lie() {
        let source = packed(&["a", "b", "c", "d"]);
        let view = Packed::new(&source);
        let mut bytes = packed(&["1"]);
        append(&mut bytes, view, view.place(1).unwrap()..view.place(3).unwrap(), 2);
        assert_eq!(texts(&bytes), ["1", "b", "c"]);
        append(&mut bytes, view, view.end()..view.end(), 0);
        assert_eq!(validate(&bytes), Ok(()));
        let mut full = packed(&["x"; 127]);
        append(&mut full, view, Place::START..view.end(), 4);
        assert_eq!(validate(&full), Ok(()));
        assert_eq!(Packed::new(&full).len(), 131);
    }

    #[test]
    fn damage_is_found_where_it_is() {
        let bytes = packed(&["a", "12", "b"]);
        assert_eq!(validate(&bytes), Ok(()));
        let offset = |bytes: &[u8]| validate(bytes).unwrap_err().offset;
        assert_eq!(offset(&bytes[..bytes.len() - 1]), 5);
        assert_eq!(offset(&[bytes.as_slice(), &[0]].concat()), 8);
        assert_eq!(offset(&[0]), 0);
        assert_eq!(offset(&[0x80]), 0);
        let huge = [&[0xff; 9][..], &[1], &bytes[1..]].concat();
        assert_eq!(offset(&huge), 17);
    }
}
