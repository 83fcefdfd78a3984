// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The entry of a key: the place that a search has found, or none. Several steps of one operation
//! share the search. An entry borrows its engine, so its place is never stale.

use crate::engine::{Engine, Stored, Value, ValueMut};
use crate::hash::Hash;
use crate::meter::{Meter, Silent};
use crate::options::OutOfMemory;
use crate::place::Place;

/// A key, and its value if it has one.
pub struct Entry<'a, M = Silent> {
    pub(crate) engine: &'a mut Engine<M>,
    pub(crate) key: &'a [u8],
    pub(crate) hash: Hash,
    pub(crate) place: Option<Place>,
}

impl<'a, M: Meter> Entry<'a, M> {
    /// The key.
    #[inline(always)]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// Hash of the key.
    #[inline(always)]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The engine, to look at other keys.
    #[inline(always)]
    pub fn engine(&self) -> &Engine<M> {
        self.engine
    }

    /// The key has a value.
    #[inline(always)]
    pub fn is_occupied(&self) -> bool {
        self.place.is_some()
    }

    /// The key has a value with a tag.
    #[inline(always)]
    pub fn is_tagged(&self) -> bool {
        self.place.is_some_and(|place| self.engine.table.found_at(place).pair.is_tagged)
    }

    /// The value, if the key has one.
    #[inline(always)]
    pub fn value(&self) -> Option<Value<'_>> {
        self.place.map(|place| self.engine.value_at(place))
    }

    /// The value, to be changed in place.
    #[inline(always)]
    pub fn change(&mut self) -> Option<ValueMut<'_>> {
        self.place.map(|place| self.engine.change_at(place))
    }

    /// Overwrites a plain value by one of the same length. False: the key has none or a tagged
    /// one, or the lengths differ, and nothing has changed.
    #[inline(always)]
    pub fn overwrite(&mut self, value: &[u8]) -> bool {
        self.place.is_some_and(|place| self.engine.table.replace_value(place, value, false))
    }

    /// Stores a plain value.
    ///
    /// # Errors
    /// No memory is left. Nothing has changed.
    #[inline(always)]
    pub fn put(&mut self, value: &[u8]) -> Result<Stored, OutOfMemory> {
        let (stored, place) =
            self.engine.put_at((self.key, self.hash), value, false, self.place)?;
        self.place = Some(place);
        Ok(stored)
    }

    /// Removes the key; returns whether it had a value.
    #[inline(always)]
    pub fn delete(&mut self) -> bool {
        self.engine.delete_at(self.hash, self.place.take())
    }

    /// See [`Engine::set_limit_bytes`].
    pub fn set_limit_bytes(&mut self, limit_bytes: usize) {
        self.engine.set_limit_bytes(limit_bytes);
    }
}
