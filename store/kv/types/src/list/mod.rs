// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists: elements in an order that their users choose, with fast access at both ends.
//!
//! A small list is one packed sequence. A large one is a deque of such sequences, each of at most
//! [`Limits::list_node_bytes`]; an element that is longer has a sequence of its own.
//!
//! ```
//! use freeport_kv_types::list::{End, List};
//! use freeport_kv_types::{Limits, indexes};
//!
//! let limits = Limits::default();
//! let mut list = List::default();
//! [b"one", b"two", b"six"].map(|value| list.push(&limits, End::Back, value));
//! // LRANGE key -2 -1
//! let range = indexes::range(list.len(), -2, -1);
//! let found: Vec<_> = list.view().range(range).map(|entry| entry.to_vec()).collect();
//! assert_eq!(found, [b"two", b"six"]);
//! assert_eq!(list.pop(&limits, End::Front), Some(b"one".to_vec()));
//! ```

mod large;
mod node;

use std::num::NonZeroI64;
use std::ops::Range;

use crate::corrupt::Corrupt;
use crate::entry::{Entry, encoded_size};
use crate::indexes;
use crate::limits::Limits;
use crate::packed::{self, Packed, Place};

pub use large::LargeList;

/// An end of a list, or a side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first element (`LEFT`), or before an element (`BEFORE`).
    Front,
    /// The last element (`RIGHT`), or after an element (`AFTER`).
    Back,
}

/// A list that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub enum ListRef<'a> {
    /// A small list, in bytes.
    Packed(Packed<'a>),
    /// The large form.
    Large(&'a LargeList),
}

/// A list that can be changed.
#[derive(Clone, Debug)]
pub enum List {
    /// A small list, in bytes: a copy of the value, which is put back after the change.
    Packed(Vec<u8>),
    /// The large form, which is never left.
    Large(Box<LargeList>),
}

/// Matches that [`ListRef::positions`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Number of the first match that is returned, counted from 1 at the start of the list, or from
    /// -1 at its end, from where the search begins then (`RANK`).
    pub rank: NonZeroI64,
    /// Largest number of matches (`COUNT`); `None` for all.
    pub count: Option<usize>,
    /// Largest number of elements that are compared (`MAXLEN`); `None` for all.
    pub max_compared: Option<usize>,
}

impl<'a> ListRef<'a> {
    /// Reads the packed list in `bytes`.
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        Self::Packed(Packed::new(bytes))
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        match self {
            Self::Packed(packed) => packed.len(),
            Self::Large(large) => large.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, which is counted from -1 backwards at the end (`LINDEX`). In a large
    /// list, the time is that of adding up the lengths of nodes from the nearer end.
    pub fn get(self, index: i64) -> Option<Entry<'a>> {
        let index = indexes::position(self.len(), index)?;
        match self {
            Self::Packed(packed) => packed.get(index as isize),
            Self::Large(large) => large.get(index),
        }
    }

    /// The first or the last element.
    pub fn end(self, end: End) -> Option<Entry<'a>> {
        match self {
            Self::Packed(packed) => node::get(packed, end),
            Self::Large(large) => large.end(end),
        }
    }

    /// The elements of the indexes `range`, of which the part beyond the end is left out. `LRANGE`
    /// takes its indexes from [`indexes::range`].
    pub fn range(self, range: Range<usize>) -> Iter<'a> {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        Iter(match self {
            Self::Packed(packed) => {
                let start = packed.place(range.start as isize).unwrap_or(packed.end());
                let skipped = packed.len() - range.end;
                Form::Packed { entries: packed.iter_from(start), left: range.len(), skipped }
            }
            Self::Large(large) => Form::Large(large.range(range)),
        })
    }

    /// All elements.
    pub fn iter(self) -> Iter<'a> {
        self.range(0..self.len())
    }

    /// Calls `emit` with the indexes of elements equal to `value` (`LPOS`).
    pub fn positions(self, value: &[u8], search: Search, emit: impl FnMut(usize)) {
        let (value, len) = (Entry::new(value), self.len());
        let compared = search.max_compared.unwrap_or(len).min(len);
        let skipped = usize::try_from(search.rank.get().unsigned_abs() - 1).unwrap_or(len);
        let count = search.count.unwrap_or(len);
        if search.rank.is_positive() {
            let elements = (0..len).zip(self.iter()).take(compared);
            let equal = elements.filter(|&(_, entry)| entry == value).map(|(index, _)| index);
            equal.skip(skipped).take(count).for_each(emit);
        } else {
            let elements = (0..len).rev().zip(self.iter().rev()).take(compared);
            let equal = elements.filter(|&(_, entry)| entry == value).map(|(index, _)| index);
            equal.skip(skipped).take(count).for_each(emit);
        }
    }

    /// Name of the form, as OBJECT ENCODING gives it.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Packed(_) => "listpack",
            Self::Large(_) => "quicklist",
        }
    }

    /// Memory of the list in bytes, in O(1): of a packed one its length, of a large one as
    /// allocated.
    pub fn memory_bytes(self) -> usize {
        match self {
            Self::Packed(packed) => packed.size_bytes(),
            Self::Large(large) => large.memory_bytes(),
        }
    }

    /// Appends the list to `out`, for [`List::deserialize`].
    pub fn serialize(self, out: &mut Vec<u8>) {
        match self {
            Self::Packed(packed) => {
                out.push(PACKED);
                packed.write(out);
            }
            Self::Large(large) => {
                out.push(LARGE);
                large.write(out);
            }
        }
    }
}

impl<'a> IntoIterator for ListRef<'a> {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// First byte of a serialized packed list.
const PACKED: u8 = 0;
/// First byte of a serialized large list.
const LARGE: u8 = 1;

impl Default for List {
    /// The empty list.
    fn default() -> Self {
        Self::Packed(vec![])
    }
}

impl List {
    /// Reads this list.
    pub fn view(&self) -> ListRef<'_> {
        match self {
            Self::Packed(bytes) => ListRef::from_packed(bytes),
            Self::Large(large) => ListRef::Large(large),
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is no element. Redis removes the key of an empty list.
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// Adds `value` at `end` (`LPUSH`, `RPUSH`).
    pub fn push(&mut self, limits: &Limits, end: End, value: &[u8]) {
        let (entry, limit) = (Entry::new(value), limits.list_node_bytes);
        match self {
            Self::Packed(bytes) if node::has_room(bytes.len(), entry, limit) => {
                let place = node::outer(Packed::new(bytes), end);
                packed::insert(bytes, place, entry);
            }
            _ => self.large().push(limit, end, entry),
        }
    }

    /// Removes the element at `end`, and returns it (`LPOP`, `RPOP`).
    pub fn pop(&mut self, limits: &Limits, end: End) -> Option<Vec<u8>> {
        let value = self.view().end(end)?.to_vec();
        let index = if end == End::Front { 0 } else { self.len() - 1 };
        self.remove_range(limits, index..index + 1);
        Some(value)
    }

    /// Inserts `value` before or after the first element equal to `pivot` (`LINSERT`). Returns
    /// whether there is one.
    pub fn insert(&mut self, limits: &Limits, side: End, pivot: &[u8], value: &[u8]) -> bool {
        let (pivot, entry, limit) = (Entry::new(pivot), Entry::new(value), limits.list_node_bytes);
        if let Self::Packed(bytes) = self {
            let packed = Packed::new(bytes);
            let Some(place) = packed.find(Place::START, pivot, 1) else {
                return false;
            };
            if node::has_room(bytes.len(), entry, limit) {
                let after = packed.after(place).expect("the pivot is at the place");
                packed::insert(bytes, if side == End::Front { place } else { after }, entry);
                return true;
            }
        }
        self.large().insert(limit, side, pivot, entry)
    }

    /// Puts `value` in place of the element at `index`, which is counted from -1 backwards at the
    /// end (`LSET`). Returns whether the list has the index; if not, Redis' error is "index out of
    /// range".
    pub fn set(&mut self, limits: &Limits, index: i64, value: &[u8]) -> bool {
        let (entry, limit) = (Entry::new(value), limits.list_node_bytes);
        let Some(index) = indexes::position(self.len(), index) else {
            return false;
        };
        if let Self::Packed(bytes) = self {
            let packed = Packed::new(bytes);
            let place = packed.place(index as isize).expect("the index is in the list");
            let old = packed.entry(place).expect("the index is in the list");
            if bytes.len() - encoded_size(old) + encoded_size(entry) <= limit {
                packed::replace(bytes, place, entry);
                return true;
            }
        }
        self.large().set(limit, index, entry);
        true
    }

    /// Removes elements equal to `value`, and returns their number (`LREM`): `count` from the
    /// start, the magnitude of a negative `count` from the end, or all if it is 0.
    pub fn remove(&mut self, limits: &Limits, count: i64, value: &[u8]) -> usize {
        let (entry, end) = (Entry::new(value), if count < 0 { End::Back } else { End::Front });
        let count = match count {
            0 => usize::MAX,
            _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        };
        match self {
            Self::Packed(bytes) => node::remove_equal(bytes, entry, count, end),
            Self::Large(large) => large.remove_equal(limits.list_node_bytes, entry, count, end),
        }
    }

    /// Removes the elements of the indexes `range`, of which the part beyond the end has no effect.
    /// Returns their number.
    pub fn remove_range(&mut self, limits: &Limits, range: Range<usize>) -> usize {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        let count = range.len();
        match self {
            Self::Packed(bytes) => {
                if let Some(place) = Packed::new(bytes).place(range.start as isize) {
                    packed::remove(bytes, place, count);
                }
            }
            Self::Large(large) => large.remove_range(limits.list_node_bytes, range),
        }
        count
    }

    /// Keeps the elements of the indexes `range` only. `LTRIM` takes its indexes from
    /// [`indexes::range`].
    pub fn trim(&mut self, limits: &Limits, range: Range<usize>) {
        let end = range.end.max(range.start);
        self.remove_range(limits, end..usize::MAX);
        self.remove_range(limits, 0..range.start);
    }

    /// Reads what [`ListRef::serialize`] wrote. A packed list above the limit becomes large.
    ///
    /// # Errors
    /// Bytes that are no list.
    pub fn deserialize(bytes: &[u8], limits: &Limits) -> Result<Self, Corrupt> {
        match bytes.split_first() {
            Some((&PACKED, rest)) => {
                packed::validate(rest).map_err(|corrupt| corrupt.behind(1))?;
                Ok(match rest.len() <= limits.list_node_bytes {
                    true => Self::Packed(rest.to_vec()),
                    false => Self::Large(Box::new(LargeList::new(rest.to_vec()))),
                })
            }
            Some((&LARGE, rest)) => {
                let large = LargeList::read(rest).map_err(|corrupt| corrupt.behind(1))?;
                Ok(Self::Large(Box::new(large)))
            }
            _ => Err(Corrupt::at(0, "unknown form of a list")),
        }
    }

    /// Takes the large form.
    fn large(&mut self) -> &mut LargeList {
        if let Self::Packed(bytes) = self {
            *self = Self::Large(Box::new(LargeList::new(std::mem::take(bytes))));
        }
        match self {
            Self::Large(large) => large,
            Self::Packed(_) => unreachable!("it took the large form above"),
        }
    }
}

/// Elements of a range of a list, from both ends.
#[derive(Clone, Debug)]
pub struct Iter<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    Packed {
        entries: packed::Iter<'a>,
        left: usize,
        /// Entries after the range, which are passed when something is taken from the end.
        skipped: usize,
    },
    Large(large::LargeIter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        match &mut self.0 {
            Form::Packed { entries, left, .. } => {
                *left = left.checked_sub(1)?;
                entries.next()
            }
            Form::Large(elements) => elements.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Form::Packed { left, .. } => (*left, Some(*left)),
            Form::Large(elements) => elements.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Form::Packed { entries, left, skipped } => {
                *left = left.checked_sub(1)?;
                for _ in 0..std::mem::take(skipped) {
                    entries.next_back()?;
                }
                entries.next_back()
            }
            Form::Large(elements) => elements.next_back(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}
