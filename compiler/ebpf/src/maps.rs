// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps: state that outlives a packet, with the kernel's semantics of flags and errors.
//!
//! Values are stored in `elements`, which programs address directly. The `content` of a kind holds
//! the rest: the element of a key, which slots are set, the order in which values are removed.
//! Per-CPU maps have one processor here.

mod bloom;
pub(crate) mod content;
mod create;
mod elements;
mod error;
mod events;
pub mod flags;
mod hash;
mod lpm;
mod lru;
mod queue;
pub(crate) mod ring;
pub(crate) mod slots;

pub use create::MapError;
pub use error::ErrorNumber;
pub use events::Event;

use crate::object::{MapDefinition, MapKind};
use content::Content;
use elements::Elements;

/// Size in bytes of a `bpf_spin_lock` in a value.
const LOCK_BYTES: usize = 4;

/// A map with its contents.
pub struct Map {
    definition: MapDefinition,
    elements: Elements,
    content: Content,
}

/// Operations of the map's owner, as with the kernel's `bpf` call. Keys and values must have the
/// sizes in the definition; otherwise the result is `EINVAL`.
impl Map {
    /// Returns the map's definition in the object.
    pub fn definition(&self) -> &MapDefinition {
        &self.definition
    }

    /// Returns whether the map could not be created, so that nothing can be stored in it.
    pub fn is_absent(&self) -> bool {
        matches!(self.content, Content::Absent)
    }

    /// Returns the value of `key`; for a per-CPU map, that of the only processor.
    ///
    /// # Errors
    /// `ENOENT` if there is none, `EOPNOTSUPP` for maps without keys.
    pub fn lookup(&self, key: &[u8]) -> Result<&[u8], ErrorNumber> {
        self.check_key(key)?;
        if !self.content.has_keys() {
            return Err(ErrorNumber::EOPNOTSUPP);
        }
        self.find(key).map(|element| self.elements.get(element)).ok_or(ErrorNumber::ENOENT)
    }

    /// Returns the values of `key` on `processors` processors in the kernel's format: each is
    /// padded to a multiple of 8 bytes. Ours is the first; the other processors never ran.
    ///
    /// # Errors
    /// As [`Map::lookup`].
    pub fn lookup_per_processor(
        &self,
        key: &[u8],
        processors: usize,
    ) -> Result<Vec<u8>, ErrorNumber> {
        let value = self.lookup(key)?;
        let mut values = vec![0; value.len().next_multiple_of(8) * processors];
        values.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        Ok(values)
    }

    /// Sets `key` to `value`; `flags` are those of [`flags`].
    ///
    /// # Errors
    /// The kernel's errors for this kind of map, and `EINVAL` for wrong sizes.
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        self.check_key(key)?;
        self.check_value(value)?;
        self.set(key, value, flags)
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// The kernel's errors for this kind of map.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), ErrorNumber> {
        self.check_key(key)?;
        self.content.delete(key)
    }

    /// Returns the key after `key`, or the first key if `key` does not exist; `None` after the
    /// last. The order is unspecified.
    pub fn next_key(&self, key: Option<&[u8]>) -> Option<Vec<u8>> {
        let key = key.filter(|key| self.check_key(key).is_ok());
        self.content.next_key(key, self.definition.max_entries)
    }

    /// Returns all keys with their values.
    pub fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let elements = self.content.used_elements(self.definition.max_entries);
        let entry =
            |&element: &u32| (self.content.key(element), self.elements.get(element).to_vec());
        elements.iter().map(entry).collect()
    }

    /// Adds `value` to a queue, a stack or a Bloom filter.
    ///
    /// # Errors
    /// `E2BIG` if it is full, `EINVAL` for unknown flags, `EOPNOTSUPP` for other maps.
    pub fn push(&mut self, value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        self.check_value(value)?;
        self.content.push(value, flags)
    }

    /// Returns the next value of a queue or stack, without removing it.
    ///
    /// # Errors
    /// `ENOENT` if it is empty, `EOPNOTSUPP` for other maps.
    pub fn peek(&mut self) -> Result<Vec<u8>, ErrorNumber> {
        self.next_value(false)
    }

    /// Removes and returns the next value of a queue or stack.
    ///
    /// # Errors
    /// `ENOENT` if it is empty, `EOPNOTSUPP` for other maps.
    pub fn pop(&mut self) -> Result<Vec<u8>, ErrorNumber> {
        self.next_value(true)
    }

    /// Returns whether a Bloom filter may contain `value`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for other maps.
    pub fn may_hold(&self, value: &[u8]) -> Result<bool, ErrorNumber> {
        self.check_value(value)?;
        match &self.content {
            Content::Bloom(bloom) => Ok(bloom.may_hold(value)),
            _ => Err(ErrorNumber::EOPNOTSUPP),
        }
    }

    /// Takes the submitted records out of a ring buffer; returns none for other maps.
    pub fn take_records(&mut self) -> Vec<Vec<u8>> {
        match &mut self.content {
            Content::Ring(ring) => ring.take(),
            _ => vec![],
        }
    }

    /// Takes the events that programs wrote to a perf event array; returns none for other maps.
    pub fn take_events(&mut self) -> Vec<Event> {
        match &mut self.content {
            Content::Events(_, events) => events.take(),
            _ => vec![],
        }
    }

    fn next_value(&mut self, leaves: bool) -> Result<Vec<u8>, ErrorNumber> {
        let mut value = vec![0; self.definition.value_size as usize];
        self.next_value_into(&mut value, leaves).map(|()| value)
    }

    fn check_key(&self, key: &[u8]) -> Result<(), ErrorNumber> {
        let is_right = key.len() == self.definition.key_size as usize;
        if is_right { Ok(()) } else { Err(ErrorNumber::EINVAL) }
    }

    fn check_value(&self, value: &[u8]) -> Result<(), ErrorNumber> {
        let is_right = value.len() == self.definition.value_size as usize;
        if is_right { Ok(()) } else { Err(ErrorNumber::EINVAL) }
    }
}

/// Operations of programs. Keys and values have the right sizes.
impl Map {
    pub(crate) fn kind(&self) -> MapKind {
        self.definition.kind
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    pub(crate) fn content_mut(&mut self) -> &mut Content {
        &mut self.content
    }

    /// Returns the element of `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        self.content.find(key, self.definition.max_entries)
    }

    /// Sets `key` to `value`, see [`Map::update`].
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        let MapDefinition { max_entries: count, lock_at, .. } = self.definition;
        if flags & flags::LOCK != 0 && lock_at.is_none() {
            return Err(ErrorNumber::EINVAL);
        }
        let element = self.content.update(key, value, flags, count)?;
        let element = self.elements.get_mut(element);
        element.copy_from_slice(value);
        if let Some(at) = lock_at {
            // A lock must not be overwritten; it is kept elsewhere and reads as zero.
            element.iter_mut().skip(at as usize).take(LOCK_BYTES).for_each(|byte| *byte = 0);
        }
        Ok(())
    }

    /// Returns the next value of a queue or stack, and removes it if it `leaves`.
    pub(crate) fn next_value_into(
        &mut self,
        value: &mut [u8],
        leaves: bool,
    ) -> Result<(), ErrorNumber> {
        match &mut self.content {
            Content::Queue(queue) => queue.next(value, leaves),
            _ => Err(ErrorNumber::EOPNOTSUPP),
        }
    }

    /// Returns whether programs may not change the map.
    pub(crate) fn is_read_only_to_programs(&self) -> bool {
        self.definition.flags & flags::READ_ONLY_TO_PROGRAMS != 0
    }

    /// Discards reserved records of a ring buffer; returns whether there were any.
    pub(crate) fn abandon_records(&mut self) -> bool {
        match &mut self.content {
            Content::Ring(ring) => ring.abandon(),
            _ => false,
        }
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self.content {
            Content::Absent => 0,
            _ => create::bytes_for(&self.definition).unwrap_or(usize::MAX),
        }
    }

    /// Returns the value of an element that [`Map::find`] returned.
    pub(crate) fn value(&self, element: u32) -> &[u8] {
        self.elements.get(element)
    }

    /// Returns the offset of that value in the map's address window.
    pub(crate) fn offset_of(&self, element: u32) -> u64 {
        self.elements.offset_of(element)
    }

    /// Returns the distance between two values in the window.
    pub(crate) fn value_spacing(&self) -> u64 {
        self.elements.spacing()
    }

    /// Returns `size` bytes of the window, if a program may read them.
    #[inline]
    pub(crate) fn bytes(&self, offset: u64, size: usize) -> Option<&[u8]> {
        if self.definition.flags & flags::WRITE_ONLY_TO_PROGRAMS != 0 {
            return None;
        }
        match &self.content {
            Content::Ring(ring) => ring.bytes(offset, size),
            _ => self.elements.bytes(offset, size),
        }
    }

    /// Returns `size` bytes of the window, if a program may write them.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, offset: u64, size: usize) -> Option<&mut [u8]> {
        if self.definition.flags & flags::READ_ONLY_TO_PROGRAMS != 0 {
            return None;
        }
        match &mut self.content {
            Content::Ring(ring) => ring.bytes_mut(offset, size),
            _ => self.elements.bytes_mut(offset, size),
        }
    }
}
