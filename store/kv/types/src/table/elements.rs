// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements in packed sequences: `WIDTH` entries each, the first of which is the key.

use super::Table;
use crate::corrupt::Corrupt;
use crate::entry::Entry;
use crate::packed::{self, Packed, Place};
use crate::varint;

/// Returns the elements of a packed sequence.
pub(crate) fn elements_of<const WIDTH: usize>(
    sequence: Packed<'_>,
) -> impl Iterator<Item = [Entry<'_>; WIDTH]> {
    let mut entries = sequence.iter();
    std::iter::from_fn(move || next_element(&mut entries))
}

/// Returns the next element; `None` at the end.
pub(crate) fn next_element<'a, const WIDTH: usize>(
    entries: &mut packed::Iter<'a>,
) -> Option<[Entry<'a>; WIDTH]> {
    let mut element = [Entry::Integer(0); WIDTH];
    for entry in &mut element {
        *entry = entries.next()?;
    }
    Some(element)
}

/// Returns the position behind the element at `start`.
pub(super) fn skip<const WIDTH: usize>(sequence: Packed<'_>, start: Place) -> Place {
    (0..WIDTH).fold(start, |place, _| sequence.after(place).unwrap_or(place))
}

impl<const WIDTH: usize> Table<WIDTH> {
    /// Appends all elements to `out`, as one packed sequence.
    pub fn write_packed(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        varint::write((self.len * WIDTH) as u64, out);
        out.reserve(self.used_bytes);
        for bucket in &self.buckets {
            out.extend_from_slice(Packed::new(bucket).body());
        }
    }

    /// Returns a table of the elements in a valid packed sequence.
    ///
    /// # Errors
    /// Part of an element at the end, or two elements with the same key.
    pub fn read_packed(sequence: Packed<'_>, seed: u64) -> Result<Self, Corrupt> {
        check_whole::<WIDTH>(sequence)?;
        let mut table = Self::with_room(seed, sequence.len() / WIDTH);
        let mut place = Place::START;
        for element in elements_of(sequence) {
            if !table.add(element) {
                return Err(Corrupt::at(sequence.offset(place), SECOND));
            }
            place = skip::<WIDTH>(sequence, place);
        }
        Ok(table)
    }
}

/// Reason why elements cannot be read.
const SECOND: &str = "a second element with this key";

/// Checks that a valid packed sequence has whole elements, each with another key, as
/// [`Table::read_packed`] does, but without an allocation if they are few.
///
/// # Errors
/// Part of an element at the end, or two elements with the same key.
pub(crate) fn check_elements<const WIDTH: usize>(
    sequence: Packed<'_>,
    seed: u64,
) -> Result<(), Corrupt> {
    /// Elements up to which each is compared with all others.
    const FEW: usize = 64;
    check_whole::<WIDTH>(sequence)?;
    if sequence.len() > FEW * WIDTH {
        return Table::<WIDTH>::read_packed(sequence, seed).map(drop);
    }
    let mut place = Place::START;
    while let Some(key) = sequence.entry(place) {
        place = skip::<WIDTH>(sequence, place);
        if let Some(second) = sequence.find(place, key, WIDTH) {
            return Err(Corrupt::at(sequence.offset(second), SECOND));
        }
    }
    Ok(())
}

fn check_whole<const WIDTH: usize>(sequence: Packed<'_>) -> Result<(), Corrupt> {
    let is_whole = sequence.len().is_multiple_of(WIDTH);
    let corrupt = Corrupt::at(sequence.size_bytes(), "part of an element at the end");
    is_whole.then_some(()).ok_or(corrupt)
}
