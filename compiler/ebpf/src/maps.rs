// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps: state that outlives a packet, with the kernel's meaning of flags and errors.
//!
//! Values lie in `elements`, which programs address directly; everything else (which element a
//! key has, which places are set, in which order values leave) is the `content` of a kind. Maps
//! with a value for each processor have one processor here.

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

/// What a `bpf_spin_lock` takes of a value.
const LOCK_BYTES: usize = 4;

/// A map with its contents.
pub struct Map {
    definition: MapDefinition,
    elements: Elements,
    content: Content,
}

/// What the owner of a map does with it, as with the kernel's `bpf` call. Keys and values have the
/// sizes that the definition says; `EINVAL` tells if not.
impl Map {
    /// What the object says about it.
    pub fn definition(&self) -> &MapDefinition {
        &self.definition
    }

    /// Whether it could not be made, and nothing can be put into it.
    pub fn is_absent(&self) -> bool {
        matches!(self.content, Content::Absent)
    }

    /// The value of `key`; of per-CPU maps that of the only processor.
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

    /// The values of `key` on `processors` processors as the kernel gives them out: each takes a
    /// multiple of 8 bytes. Ours is the first, the others never ran.
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
    /// Those that the kernel has for this kind of map, and `EINVAL` for wrong sizes.
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        self.check_key(key)?;
        self.check_value(value)?;
        self.set(key, value, flags)
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// Those that the kernel has for this kind of map.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), ErrorNumber> {
        self.check_key(key)?;
        self.content.delete(key)
    }

    /// The key after `key`, or the first if that is absent; nothing after the last. The order is
    /// none to rely on.
    pub fn next_key(&self, key: Option<&[u8]>) -> Option<Vec<u8>> {
        let key = key.filter(|key| self.check_key(key).is_ok());
        self.content.next_key(key, self.definition.max_entries)
    }

    /// All keys with their values.
    pub fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let elements = self.content.used_elements(self.definition.max_entries);
        let entry =
            |&element: &u32| (self.content.key(element), self.elements.get(element).to_vec());
        elements.iter().map(entry).collect()
    }

    /// Adds `value` to a queue, a stack or a Bloom filter.
    ///
    /// # Errors
    /// `E2BIG` if it is full, `EINVAL` for flags that it does not know, `EOPNOTSUPP` for other
    /// maps.
    pub fn push(&mut self, value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        self.check_value(value)?;
        self.content.push(value, flags)
    }

    /// The next value of a queue or stack, without taking it.
    ///
    /// # Errors
    /// `ENOENT` if it is empty, `EOPNOTSUPP` for other maps.
    pub fn peek(&mut self) -> Result<Vec<u8>, ErrorNumber> {
        self.next_value(false)
    }

    /// Takes the next value of a queue or stack.
    ///
    /// # Errors
    /// `ENOENT` if it is empty, `EOPNOTSUPP` for other maps.
    pub fn pop(&mut self) -> Result<Vec<u8>, ErrorNumber> {
        self.next_value(true)
    }

    /// Whether a Bloom filter may have been given `value`.
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

    /// Takes the records out of a ring buffer that were submitted; none of other maps.
    pub fn take_records(&mut self) -> Vec<Vec<u8>> {
        match &mut self.content {
            Content::Ring(ring) => ring.take(),
            _ => vec![],
        }
    }

    /// Takes what programs wrote to the buffers of a perf event array; nothing of other maps.
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

/// What programs do with it. Keys and values come with the right sizes.
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

    /// The element that `key` means.
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
            // A lock is nobody's to write; who holds it is not said here.
            element.iter_mut().skip(at as usize).take(LOCK_BYTES).for_each(|byte| *byte = 0);
        }
        Ok(())
    }

    /// The next value of a queue or stack, which is taken out if it `leaves`.
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

    /// Whether programs may not change it.
    pub(crate) fn is_read_only_to_programs(&self) -> bool {
        self.definition.flags & flags::READ_ONLY_TO_PROGRAMS != 0
    }

    /// Discards records of a ring buffer that are reserved; says whether there were any.
    pub(crate) fn abandon_records(&mut self) -> bool {
        match &mut self.content {
            Content::Ring(ring) => ring.abandon(),
            _ => false,
        }
    }

    /// How much memory it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self.content {
            Content::Absent => 0,
            _ => create::bytes_for(&self.definition).unwrap_or(usize::MAX),
        }
    }

    /// The value of an element that [`Map::find`] gave.
    pub(crate) fn value(&self, element: u32) -> &[u8] {
        self.elements.get(element)
    }

    /// Where that value begins in the map's window of addresses.
    pub(crate) fn offset_of(&self, element: u32) -> u64 {
        self.elements.offset_of(element)
    }

    /// How far the beginnings of two values are apart there.
    pub(crate) fn value_spacing(&self) -> u64 {
        self.elements.spacing()
    }

    /// `size` bytes of the window that a program may read.
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

    /// `size` bytes of the window that a program may write.
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
