// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets.
//!
//! A small set is one byte string: a sorted array of [`Integers`] while all members are integers,
//! otherwise a packed sequence in the order of insertion. A large set is a [`Table`]. [`SetRef`]
//! reads each of them without copying it, and [`Set`] owns one to change it, as
//! [`Hash`](crate::Hash) does.

pub mod algebra;
mod integers;

pub use integers::Integers;

use crate::corrupt::Corrupt;
use crate::entry::Entry;
use crate::limits::Limits;
use crate::packed::{self, Packed, Place};
use crate::random::Selection;
use crate::table::{self, Table, check_elements};

/// Members of a large set.
pub type LargeSet = Table<1>;

/// A set that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub enum SetRef<'a> {
    /// A sorted array.
    Integers(Integers<'a>),
    /// Members in the order of insertion.
    Packed(Packed<'a>),
    /// The large form.
    Large(&'a LargeSet),
}

/// A set that can be changed.
#[derive(Clone, Debug)]
pub enum Set {
    /// A sorted array of integers, or a packed sequence.
    Packed(Vec<u8>),
    /// The large form, which is never left.
    Large(Box<LargeSet>),
}

impl<'a> SetRef<'a> {
    /// Reads the small set in `bytes`.
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        match bytes {
            [integers::MARK, ..] => Self::Integers(Integers::new(bytes)),
            _ => Self::Packed(Packed::new(bytes)),
        }
    }

    /// Number of members.
    pub fn len(self) -> usize {
        match self {
            Self::Integers(set) => set.len(),
            Self::Packed(sequence) => sequence.len(),
            Self::Large(table) => table.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether `member` is one. Members of other sets are given as they are read, without text.
    pub fn contains<'m>(self, member: impl Into<Entry<'m>>) -> bool {
        let member = member.into();
        match self {
            Self::Integers(set) => member.integer().is_some_and(|value| set.contains(value)),
            Self::Packed(sequence) => sequence.find(Place::START, member, 1).is_some(),
            Self::Large(table) => table.contains(member),
        }
    }

    /// Returns all members: integers ascending, those of a packed set in the order of insertion.
    pub fn iter(self) -> Iter<'a> {
        Iter(match self {
            Self::Integers(set) => Form::Integers(set, 0),
            Self::Packed(sequence) => Form::Packed(sequence.iter()),
            Self::Large(table) => Form::Large(table.iter()),
        })
    }

    /// Returns a random member, each with the same probability. `choose(n)` returns a random number
    /// below `n`.
    pub fn random(self, choose: &mut impl FnMut(usize) -> usize) -> Option<Entry<'a>> {
        match self {
            _ if self.is_empty() => None,
            Self::Integers(set) => set.get(choose(set.len())).map(Entry::Integer),
            Self::Packed(sequence) => sequence.get(choose(sequence.len()) as isize),
            Self::Large(table) => table.random(choose).map(|[member]| member),
        }
    }

    /// Calls `emit` with `count` different random members, or with all if there are less
    /// (SRANDMEMBER with a positive count; with a negative one, [`random`](Self::random) is called
    /// as many times).
    pub fn random_distinct(
        self,
        count: usize,
        choose: &mut impl FnMut(usize) -> usize,
        mut emit: impl FnMut(Entry<'a>),
    ) {
        if let Self::Large(table) = self {
            return table.random_distinct(count, choose, |[member]| emit(member));
        }
        let mut selection = Selection::new(self.len(), count);
        self.iter().filter(|_| selection.takes(choose)).for_each(emit);
    }

    /// Calls `emit` with members from `cursor` on, about `count` of them, and returns the next
    /// cursor; 0 at the end. A small set is returned whole. A member that is there throughout a
    /// scan is returned exactly once, however the set changes ([`table`]).
    pub fn scan(self, cursor: u64, count: usize, mut emit: impl FnMut(Entry<'_>)) -> u64 {
        if let Self::Large(table) = self {
            return table.scan(cursor, count, |[member]| emit(member));
        }
        self.iter().for_each(emit);
        0
    }

    /// Name of the form, as OBJECT ENCODING gives it.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Integers(_) => "intset",
            Self::Packed(_) => "listpack",
            Self::Large(_) => "hashtable",
        }
    }

    /// Memory of the set in bytes: of a small one its length, of a large one as allocated.
    pub fn memory_bytes(self) -> usize {
        match self {
            Self::Integers(set) => set.size_bytes(),
            Self::Packed(sequence) => sequence.size_bytes(),
            Self::Large(table) => table.memory_bytes(),
        }
    }

    /// Appends the set to `out`, for [`Set::deserialize`].
    pub fn serialize(self, out: &mut Vec<u8>) {
        match self {
            Self::Integers(set) => {
                out.push(PACKED);
                set.write(out);
            }
            Self::Packed(sequence) => {
                out.push(PACKED);
                sequence.write(out);
            }
            Self::Large(table) => {
                out.push(LARGE);
                table.write_packed(out);
            }
        }
    }
}

/// First byte of a serialized small set.
const PACKED: u8 = 0;
/// First byte of a serialized large set.
const LARGE: u8 = 1;

impl Default for Set {
    fn default() -> Self {
        Self::Packed(vec![])
    }
}

impl Set {
    /// Returns an empty set to which about `count` members will be added; large at once if they do
    /// not fit into the form that `first` begins with.
    pub fn for_members(limits: &Limits, first: &[u8], count: usize) -> Self {
        let is_integer = Entry::new(first).integer().is_some();
        let most = if is_integer {
            limits.set_integers.max(limits.set_entries)
        } else {
            limits.set_entries
        };
        if count <= most {
            return Self::default();
        }
        Self::Large(Box::new(Table::with_room(limits.hash_seed, count)))
    }

    /// Reads this set.
    pub fn view(&self) -> SetRef<'_> {
        match self {
            Self::Packed(bytes) => SetRef::from_packed(bytes),
            Self::Large(table) => SetRef::Large(table),
        }
    }

    /// Adds `member`. Returns whether it was none.
    pub fn add<'m>(&mut self, limits: &Limits, member: impl Into<Entry<'m>>) -> bool {
        let member = member.into();
        let bytes = match self {
            Self::Packed(bytes) => bytes,
            Self::Large(table) => return table.add([member]),
        };
        let view = SetRef::from_packed(bytes);
        if view.contains(member) {
            return false;
        }
        match room(view, limits, member) {
            Room::Integers(value) => {
                integers::insert(bytes, value);
            }
            Room::Packed => {
                if let SetRef::Integers(set) = view {
                    *bytes = packed_integers(set);
                }
                packed::push_back(bytes, member);
            }
            Room::Large => {
                let mut table = large(view, limits);
                table.add([member]);
                *self = Self::Large(Box::new(table));
            }
        }
        true
    }

    /// Removes `member`. Returns whether it was one.
    pub fn remove<'m>(&mut self, member: impl Into<Entry<'m>>) -> bool {
        let member = member.into();
        match self {
            Self::Packed(bytes) if bytes.first() == Some(&integers::MARK) => {
                member.integer().is_some_and(|value| integers::remove(bytes, value))
            }
            Self::Packed(bytes) => {
                let place = Packed::new(bytes).find(Place::START, member, 1);
                place.map(|place| packed::remove(bytes, place, 1)).is_some()
            }
            Self::Large(table) => table.remove(member),
        }
    }

    /// Removes a random member and returns it.
    pub fn pop(&mut self, choose: &mut impl FnMut(usize) -> usize) -> Option<Vec<u8>> {
        let member = self.view().random(choose)?.to_vec();
        self.remove(&member);
        Some(member)
    }

    /// Removes `count` random members, or all if there are less, and returns them.
    pub fn pop_many(
        &mut self,
        count: usize,
        choose: &mut impl FnMut(usize) -> usize,
    ) -> Vec<Vec<u8>> {
        let mut members = vec![];
        self.view().random_distinct(count, choose, |member| members.push(member.to_vec()));
        if members.len() == self.view().len() {
            *self = Self::default();
        }
        for member in &members {
            self.remove(member);
        }
        members
    }

    /// Reads what [`SetRef::serialize`] wrote. A small set above the limits becomes large.
    ///
    /// # Errors
    /// Bytes that are no set.
    pub fn deserialize(bytes: &[u8], limits: &Limits) -> Result<Self, Corrupt> {
        let (&form, bytes) = bytes.split_first().ok_or(Corrupt::at(0, "no form of a set"))?;
        if form > LARGE {
            return Err(Corrupt::at(0, "unknown form of a set"));
        }
        if form == PACKED && bytes.first() == Some(&integers::MARK) {
            integers::validate(bytes).map_err(|corrupt| corrupt.behind(1))?;
            let view = SetRef::from_packed(bytes);
            if view.len() > limits.set_integers {
                return Ok(Self::Large(Box::new(large(view, limits))));
            }
            return Ok(Self::Packed(bytes.to_vec()));
        }
        packed::validate(bytes).map_err(|corrupt| corrupt.behind(1))?;
        let sequence = Packed::new(bytes);
        let is_small = sequence.len() <= limits.set_entries
            && sequence.iter().all(|member| member.len() <= limits.set_value_bytes);
        if form == PACKED && is_small {
            check_elements::<1>(sequence, limits.hash_seed).map_err(|corrupt| corrupt.behind(1))?;
            return Ok(Self::Packed(bytes.to_vec()));
        }
        let table = Table::read_packed(sequence, limits.hash_seed);
        Ok(Self::Large(Box::new(table.map_err(|corrupt| corrupt.behind(1))?)))
    }
}

/// The form of a set with another member.
enum Room {
    Integers(i64),
    Packed,
    Large,
}

/// Returns the form that a small set has with another `member` (Redis 7.2, `setTypeAdd`).
fn room(view: SetRef<'_>, limits: &Limits, member: Entry<'_>) -> Room {
    let fits = |len: usize, member: Entry<'_>| {
        len < limits.set_entries && member.len() <= limits.set_value_bytes
    };
    match (view, member) {
        (SetRef::Packed(sequence), Entry::Integer(value))
            if sequence.is_empty() && limits.set_integers > 0 =>
        {
            Room::Integers(value)
        }
        (SetRef::Integers(set), Entry::Integer(value)) if set.len() < limits.set_integers => {
            Room::Integers(value)
        }
        (SetRef::Integers(_), Entry::Integer(_)) => Room::Large,
        (SetRef::Integers(set), Entry::Bytes(_)) => {
            let last = set.len().saturating_sub(1);
            let mut ends = [set.get(0), set.get(last)].into_iter().flatten();
            let all_fit = ends.all(|value| fits(0, Entry::Integer(value)));
            if all_fit && fits(set.len(), member) { Room::Packed } else { Room::Large }
        }
        _ if fits(view.len(), member) => Room::Packed,
        _ => Room::Large,
    }
}

/// Returns the packed sequence of a sorted array of integers.
fn packed_integers(set: Integers<'_>) -> Vec<u8> {
    let mut sequence = vec![];
    for value in set.iter() {
        packed::push_back(&mut sequence, Entry::Integer(value));
    }
    sequence
}

/// Returns the large form, with room for another member.
fn large(view: SetRef<'_>, limits: &Limits) -> LargeSet {
    let mut table = Table::with_room(limits.hash_seed, view.len() + 1);
    for member in view.iter() {
        table.add([member]);
    }
    table
}

/// Iterator over the members of a set.
#[derive(Clone, Debug)]
pub struct Iter<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    /// The set, and the index of the next member.
    Integers(Integers<'a>, usize),
    Packed(packed::Iter<'a>),
    Large(table::Iter<'a, 1>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        match &mut self.0 {
            Form::Integers(set, index) => {
                let member = set.get(*index)?;
                *index += 1;
                Some(Entry::Integer(member))
            }
            Form::Packed(entries) => entries.next(),
            Form::Large(elements) => elements.next().map(|[member]| member),
        }
    }
}
