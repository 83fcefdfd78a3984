// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes: fields with values.
//!
//! A packed hash is a packed sequence in which fields and values alternate, in the order of
//! insertion. A large one is a [`Table`]. [`HashRef`] reads either without copying it, and
//! [`enum@Hash`] owns one to change it: the packed bytes in a vector that the caller stores as the
//! key's value afterwards, or the large form itself.
//!
//! ```
//! use freeport_kv_types::{Hash, HashRef, Limits};
//!
//! let limits = Limits::default();
//! let mut hash = Hash::default();
//! assert!(hash.set(&limits, b"name", b"Ada"));
//! assert_eq!(hash.increment(&limits, b"visits", 2), Ok(2));
//! let Hash::Packed(bytes) = hash else { panic!("two fields are few") };
//! let view = HashRef::from_packed(&bytes);
//! assert_eq!(view.get(b"visits").and_then(|value| value.integer()), Some(2));
//! ```

use crate::corrupt::Corrupt;
use crate::entry::Entry;
use crate::extended::Extended;
use crate::limits::Limits;
use crate::number::Digits;
use crate::packed::{self, Packed, Place};
use crate::random::Selection;
use crate::table::{self, Table, check_elements, elements_of, next_element};
use thiserror::Error;

/// Fields and values of a large hash.
pub type LargeHash = Table<2>;

/// A hash that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub enum HashRef<'a> {
    /// Fields and values in turn.
    Packed(Packed<'a>),
    /// The large form.
    Large(&'a LargeHash),
}

/// A hash that can be changed.
#[derive(Clone, Debug)]
pub enum Hash {
    /// Packed sequence of fields and values in turn.
    Packed(Vec<u8>),
    /// The large form, which is never left.
    Large(Box<LargeHash>),
}

/// Reasons why a field is not incremented. The texts are those of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IncrementError {
    /// The value is not the text of an `i64`.
    #[error("hash value is not an integer")]
    NotAnInteger,
    /// The sum is not an `i64`.
    #[error("increment or decrement would overflow")]
    Overflow,
    /// The value is not the text of a number.
    #[error("hash value is not a float")]
    NotAFloat,
    /// The sum is infinite or not a number.
    #[error("increment would produce NaN or Infinity")]
    NotFinite,
}

impl<'a> HashRef<'a> {
    /// Reads the packed hash in `bytes`.
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        Self::Packed(Packed::new(bytes))
    }

    /// Number of fields.
    pub fn len(self) -> usize {
        match self {
            Self::Packed(sequence) => sequence.len() / 2,
            Self::Large(table) => table.len(),
        }
    }

    /// Whether there is no field.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the value of `field`.
    pub fn get(self, field: &[u8]) -> Option<Entry<'a>> {
        match self {
            Self::Packed(sequence) => {
                let place = sequence.find(Place::START, Entry::new(field), 2)?;
                sequence.iter_from(place).nth(1)
            }
            Self::Large(table) => table.get(Entry::new(field)).map(|[_, value]| value),
        }
    }

    /// Whether there is `field`.
    pub fn contains(self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// Returns all fields with their values: of a packed hash in the order of insertion.
    pub fn iter(self) -> Iter<'a> {
        match self {
            Self::Packed(sequence) => Iter(Form::Packed(sequence.iter())),
            Self::Large(table) => Iter(Form::Large(table.iter())),
        }
    }

    /// Returns a random field with its value, each with the same probability. `choose(n)` returns
    /// a random number below `n`.
    pub fn random(self, choose: &mut impl FnMut(usize) -> usize) -> Option<[Entry<'a>; 2]> {
        match self {
            Self::Packed(_) if self.is_empty() => None,
            Self::Packed(sequence) => elements_of(sequence).nth(choose(self.len())),
            Self::Large(table) => table.random(choose),
        }
    }

    /// Calls `emit` with `count` different random fields and their values, or with all if there
    /// are less (HRANDFIELD with a positive count; with a negative one, [`random`](Self::random)
    /// is called as many times).
    pub fn random_distinct(
        self,
        count: usize,
        choose: &mut impl FnMut(usize) -> usize,
        emit: impl FnMut([Entry<'a>; 2]),
    ) {
        match self {
            Self::Packed(sequence) => {
                let mut selection = Selection::new(self.len(), count);
                elements_of(sequence).filter(|_| selection.takes(choose)).for_each(emit);
            }
            Self::Large(table) => table.random_distinct(count, choose, emit),
        }
    }

    /// Calls `emit` with fields and values from `cursor` on, about `count` of them, and returns the
    /// next cursor; 0 at the end. A packed hash is returned whole. A field that is there throughout
    /// a scan is returned exactly once, however the hash changes ([`table`]).
    pub fn scan(self, cursor: u64, count: usize, mut emit: impl FnMut([Entry<'_>; 2])) -> u64 {
        match self {
            Self::Packed(sequence) => {
                elements_of(sequence).for_each(&mut emit);
                0
            }
            Self::Large(table) => table.scan(cursor, count, emit),
        }
    }

    /// Name of the form, as OBJECT ENCODING gives it.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Packed(_) => "listpack",
            Self::Large(_) => "hashtable",
        }
    }

    /// Memory of the hash in bytes: of a packed one its length, of a large one as allocated.
    pub fn memory_bytes(self) -> usize {
        match self {
            Self::Packed(sequence) => sequence.size_bytes(),
            Self::Large(table) => table.memory_bytes(),
        }
    }

    /// Appends the hash to `out`, for [`Hash::deserialize`].
    pub fn serialize(self, out: &mut Vec<u8>) {
        match self {
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

/// First byte of a serialized packed hash.
const PACKED: u8 = 0;
/// First byte of a serialized large hash.
const LARGE: u8 = 1;

impl Default for Hash {
    fn default() -> Self {
        Self::Packed(vec![])
    }
}

impl Hash {
    /// Reads this hash.
    pub fn view(&self) -> HashRef<'_> {
        match self {
            Self::Packed(bytes) => HashRef::from_packed(bytes),
            Self::Large(table) => HashRef::Large(table),
        }
    }

    /// Sets `field` to `value`. Returns whether the field is new.
    pub fn set(&mut self, limits: &Limits, field: &[u8], value: &[u8]) -> bool {
        let longest = field.len().max(value.len());
        let element = [Entry::new(field), Entry::new(value)];
        let bytes = match self {
            Self::Packed(bytes) => bytes,
            Self::Large(table) => return table.put(element),
        };
        let sequence = Packed::new(bytes);
        let old = sequence.find(Place::START, element[0], 2);
        let has_room = old.is_some() || sequence.len() / 2 < limits.hash_entries;
        if has_room && longest <= limits.hash_value_bytes {
            let removed = if old.is_some() { 2 } else { 0 };
            let place = old.unwrap_or(sequence.end());
            packed::splice(bytes, place, removed, &element);
            return old.is_none();
        }
        let mut table = Table::with_room(limits.hash_seed, sequence.len() / 2 + 1);
        for element in elements_of(sequence) {
            table.add(element);
        }
        let is_new = table.put(element);
        *self = Self::Large(Box::new(table));
        is_new
    }

    /// Sets `field` to `value`, unless it has one (HSETNX). Returns whether it had none.
    pub fn set_absent(&mut self, limits: &Limits, field: &[u8], value: &[u8]) -> bool {
        !self.view().contains(field) && self.set(limits, field, value)
    }

    /// Adds `increment` to the integer that `field` has, 0 if there is none (HINCRBY). Returns the
    /// sum.
    ///
    /// # Errors
    /// [`IncrementError::NotAnInteger`] and [`IncrementError::Overflow`].
    pub fn increment(
        &mut self,
        limits: &Limits,
        field: &[u8],
        increment: i64,
    ) -> Result<i64, IncrementError> {
        let old = match self.view().get(field) {
            None => 0,
            Some(value) => value.integer().ok_or(IncrementError::NotAnInteger)?,
        };
        let sum = old.checked_add(increment).ok_or(IncrementError::Overflow)?;
        self.set(limits, field, Digits::new(sum).as_bytes());
        Ok(sum)
    }

    /// Adds `increment` to the number that `field` has, 0 if there is none (HINCRBYFLOAT). Returns
    /// the text of the sum, which is the new value.
    ///
    /// # Errors
    /// [`IncrementError::NotAFloat`] and [`IncrementError::NotFinite`].
    pub fn increment_float(
        &mut self,
        limits: &Limits,
        field: &[u8],
        increment: Extended,
    ) -> Result<String, IncrementError> {
        let old = match self.view().get(field) {
            None => Extended::ZERO,
            Some(value) => value.with_bytes(Extended::parse).ok_or(IncrementError::NotAFloat)?,
        };
        let sum = old.checked_add(increment).ok_or(IncrementError::NotFinite)?.to_text();
        self.set(limits, field, sum.as_bytes());
        Ok(sum)
    }

    /// Removes `field` and its value. Returns whether there was one.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match self {
            Self::Packed(bytes) => {
                let place = Packed::new(bytes).find(Place::START, Entry::new(field), 2);
                place.map(|place| packed::remove(bytes, place, 2)).is_some()
            }
            Self::Large(table) => table.remove(Entry::new(field)),
        }
    }

    /// Reads what [`HashRef::serialize`] wrote. A packed hash above the limits becomes large.
    ///
    /// # Errors
    /// Bytes that are no hash.
    pub fn deserialize(bytes: &[u8], limits: &Limits) -> Result<Self, Corrupt> {
        let (&form, bytes) = bytes.split_first().ok_or(Corrupt::at(0, "no form of a hash"))?;
        packed::validate(bytes).map_err(|corrupt| corrupt.behind(1))?;
        let sequence = Packed::new(bytes);
        let is_small = sequence.len() / 2 <= limits.hash_entries
            && sequence.iter().all(|entry| entry.len() <= limits.hash_value_bytes);
        match form {
            PACKED if is_small => {
                check_elements::<2>(sequence, limits.hash_seed)
                    .map_err(|corrupt| corrupt.behind(1))?;
                Ok(Self::Packed(bytes.to_vec()))
            }
            PACKED | LARGE => {
                let table = Table::read_packed(sequence, limits.hash_seed);
                Ok(Self::Large(Box::new(table.map_err(|corrupt| corrupt.behind(1))?)))
            }
            _ => Err(Corrupt::at(0, "unknown form of a hash")),
        }
    }
}

/// Iterator over the fields of a hash, each with its value.
#[derive(Clone, Debug)]
pub struct Iter<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    Packed(packed::Iter<'a>),
    Large(table::Iter<'a, 2>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = [Entry<'a>; 2];

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Form::Packed(entries) => next_element(entries),
            Form::Large(elements) => elements.next(),
        }
    }
}
