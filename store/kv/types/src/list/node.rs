// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One packed sequence of a list: the whole of a small list, or a node of a large one.

use crate::entry::{Entry, encoded_size};
use crate::packed::{self, Packed, Place};

use super::End;

/// Bytes by which the number of entries may grow when an entry is added.
const HEADER_GROWTH: usize = 2;

/// Whether `entry` can be added to a sequence of `size_bytes`, which stays within `limit`.
pub(super) fn has_room(size_bytes: usize, entry: Entry<'_>, limit: usize) -> bool {
    size_bytes + encoded_size(entry) + HEADER_GROWTH <= limit
}

/// Inserts `entry` at `place`. The allocation doubles, but not beyond `limit` before it has to.
pub(super) fn insert(bytes: &mut Vec<u8>, place: Place, entry: Entry<'_>, limit: usize) {
    let needed = bytes.len() + encoded_size(entry) + HEADER_GROWTH;
    if needed > bytes.capacity() {
        let capacity = needed.max((2 * bytes.len()).min(limit));
        bytes.reserve_exact(capacity - bytes.len());
    }
    packed::insert(bytes, place, entry);
}

/// The entry at `end`.
pub(super) fn get(packed: Packed<'_>, end: End) -> Option<Entry<'_>> {
    packed.get(if end == End::Front { 0 } else { -1 })
}

/// Place before the first or after the last entry.
pub(super) fn outer(packed: Packed<'_>, end: End) -> Place {
    if end == End::Front { Place::START } else { packed.end() }
}

/// Removes up to `count` entries equal to `value`, the nearest to `end`, in one pass. Returns their
/// number.
pub(super) fn remove_equal(bytes: &mut Vec<u8>, value: Entry<'_>, count: usize, end: End) -> usize {
    let packed = Packed::new(bytes);
    let equal = packed.iter().filter(|&entry| entry == value).count();
    let removed = equal.min(count);
    if removed == 0 {
        return 0;
    }
    let skipped = if end == End::Front { 0 } else { equal - removed };
    let mut kept_bytes = Vec::with_capacity(bytes.len());
    let (mut number, mut run, mut run_len) = (0, Place::START, 0);
    let mut place = Place::START;
    while let (Some(entry), Some(next)) = (packed.entry(place), packed.after(place)) {
        let is_equal = entry == value;
        if is_equal && (skipped..skipped + removed).contains(&number) {
            packed::append(&mut kept_bytes, packed, run..place, run_len);
            (run, run_len) = (next, 0);
        } else {
            run_len += 1;
        }
        number += usize::from(is_equal);
        place = next;
    }
    packed::append(&mut kept_bytes, packed, run..place, run_len);
    *bytes = kept_bytes;
    removed
}

/// Splits the sequence at `place`, before which there are `index` entries. Returns the rest.
pub(super) fn split(bytes: &mut Vec<u8>, place: Place, index: usize) -> Vec<u8> {
    let packed = Packed::new(bytes);
    let (mut left, mut right) = (vec![], vec![]);
    packed::append(&mut left, packed, Place::START..place, index);
    packed::append(&mut right, packed, place..packed.end(), packed.len() - index);
    *bytes = left;
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(texts: &[&str]) -> Vec<u8> {
        let mut bytes = vec![];
        texts.iter().for_each(|text| packed::push_back(&mut bytes, Entry::new(text.as_bytes())));
        bytes
    }

    #[test]
    fn equal_entries_are_removed_from_one_end() {
        let all = ["1", "x", "1", "1", "y", "1"];
        let removed = |count, end| {
            let mut bytes = sequence(&all);
            let removed = remove_equal(&mut bytes, Entry::new(b"1"), count, end);
            packed::validate(&bytes).unwrap();
            (removed, bytes)
        };
        assert_eq!(removed(2, End::Front), (2, sequence(&["x", "1", "y", "1"])));
        assert_eq!(removed(2, End::Back), (2, sequence(&["1", "x", "1", "y"])));
        assert_eq!(removed(9, End::Back), (4, sequence(&["x", "y"])));
        assert_eq!(removed(0, End::Front), (0, sequence(&all)));
    }

    #[test]
    fn a_sequence_splits_at_every_entry() {
        let all = ["1", "x", "1", "1", "y", "1"];
        for index in 0..=all.len() {
            let mut left = sequence(&all);
            let packed = Packed::new(&left);
            let place = packed.place(index as isize).unwrap_or(packed.end());
            let right = split(&mut left, place, index);
            assert_eq!(left, sequence(&all[..index]));
            assert_eq!(right, sequence(&all[index..]));
        }
    }
}
