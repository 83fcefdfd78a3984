// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a map that depends on its kind, other than its values: the element of a key, and how
//! a key is set and removed.

use super::bloom::Bloom;
use super::events::Events;
use super::hash::HashIndex;
use super::lpm::PrefixTree;
use super::lru::Recency;
use super::queue::Queue;
use super::ring::Ring;
use super::slots::{Slots, number};
use super::{ErrorNumber, flags};

/// Content of a map by its kind.
pub(crate) enum Content {
    /// One element for each index below the count.
    Array,
    /// Keys whose elements change on an update: a program that still has the address of the old
    /// value can observe that, as in the kernel. `spare` is the element for the next update.
    Hash { index: HashIndex, spare: u32 },
    /// Keys whose elements are updated in place: per-CPU values, and values that are read-only for
    /// programs.
    HashInPlace(HashIndex),
    /// Devices by keys: updated in place; 0 is no device.
    DeviceHash(HashIndex),
    /// Keys that are evicted for new ones.
    Lru(HashIndex, Recency),
    /// As `Lru`, updated in place.
    LruInPlace(HashIndex, Recency),
    /// Longest prefix match.
    Prefixes(PrefixTree),
    /// Slots that may be empty.
    Slots(Slots),
    /// Slots for event buffers, and the events written to them.
    Events(Slots, Events),
    /// A ring buffer.
    Ring(Ring),
    /// A queue or a stack.
    Queue(Queue),
    /// A Bloom filter.
    Bloom(Bloom),
    /// No content, since the map could not be created.
    Absent,
}

impl Content {
    /// Returns whether its elements are found by keys.
    pub fn has_keys(&self) -> bool {
        !matches!(self, Self::Ring(_) | Self::Queue(_) | Self::Bloom(_) | Self::Absent)
    }

    /// Returns the element of `key`, in a map of `count` entries.
    #[inline]
    pub fn find(&self, key: &[u8], count: u32) -> Option<u32> {
        match self {
            Self::Array => number(key).filter(|&place| place < count),
            Self::Hash { index, .. }
            | Self::HashInPlace(index)
            | Self::DeviceHash(index)
            | Self::Lru(index, _)
            | Self::LruInPlace(index, _) => index.find(key),
            Self::Prefixes(tree) if !tree.is_valid(key) => None,
            Self::Prefixes(tree) => tree.longest(key),
            Self::Slots(slots) | Self::Events(slots, _) => slots.find(key),
            Self::Ring(_) | Self::Queue(_) | Self::Bloom(_) | Self::Absent => None,
        }
    }

    /// Records that a program looked up `element`.
    #[inline]
    pub fn touch(&mut self, element: u32) {
        if let Self::Lru(_, recency) | Self::LruInPlace(_, recency) = self {
            recency.touch(element);
        }
    }

    /// Inserts `key` if needed, and returns the element to which its value must be written.
    pub fn update(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        count: u32,
    ) -> Result<u32, ErrorNumber> {
        match self {
            Self::Array => update_array(key, flags, count),
            Self::Hash { index, spare } => update_hash(index, spare, key, flags),
            Self::HashInPlace(index) => {
                let found = index.find(key);
                flags::check(flags, found.is_some())?;
                found.or_else(|| added(index, key)).ok_or(ErrorNumber::E2BIG)
            }
            Self::DeviceHash(index) => update_devices(index, key, value, flags),
            Self::Lru(index, recency) => update_lru(index, recency, key, flags, false),
            Self::LruInPlace(index, recency) => update_lru(index, recency, key, flags, true),
            Self::Prefixes(tree) => update_prefix(tree, key, flags),
            Self::Slots(slots) | Self::Events(slots, _) => slots.update(key, value, flags),
            Self::Ring(_) | Self::Queue(_) | Self::Bloom(_) | Self::Absent => {
                Err(ErrorNumber::EOPNOTSUPP)
            }
        }
    }

    /// Removes `key`.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), ErrorNumber> {
        match self {
            Self::Array => Err(ErrorNumber::EINVAL),
            Self::Hash { index, .. }
            | Self::HashInPlace(index)
            | Self::DeviceHash(index)
            | Self::Lru(index, _)
            | Self::LruInPlace(index, _) => {
                let element = index.detach(key).ok_or(ErrorNumber::ENOENT)?;
                index.give_back(element);
                Ok(())
            }
            Self::Prefixes(tree) if !tree.is_valid(key) => Err(ErrorNumber::EINVAL),
            Self::Prefixes(tree) => tree.remove(key).map(|_| ()).ok_or(ErrorNumber::ENOENT),
            Self::Slots(slots) | Self::Events(slots, _) => slots.delete(key),
            Self::Ring(_) | Self::Queue(_) | Self::Bloom(_) | Self::Absent => {
                Err(ErrorNumber::EOPNOTSUPP)
            }
        }
    }

    /// Adds a value without a key.
    pub fn push(&mut self, value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        match self {
            Self::Queue(queue) => queue.push(value, flags),
            Self::Bloom(bloom) if flags == flags::ANY => {
                bloom.push(value);
                Ok(())
            }
            Self::Bloom(_) => Err(ErrorNumber::EINVAL),
            _ => Err(ErrorNumber::EOPNOTSUPP),
        }
    }

    /// Returns the key after `key`, or the first key if `key` does not exist.
    pub fn next_key(&self, key: Option<&[u8]>, count: u32) -> Option<Vec<u8>> {
        if let Self::Prefixes(tree) = self {
            let elements = tree.used_elements();
            let found = key.and_then(|key| tree.exact(key));
            let position = elements.iter().position(|&element| Some(element) == found);
            return elements.get(position.map_or(0, |at| at + 1)).map(|&element| tree.key(element));
        }
        if let Self::Slots(_) | Self::Events(..) = self {
            // The kernel iterates over empty slots as well.
            let place = key.and_then(number).filter(|&place| place < count);
            let next = place.map_or(0, |place| place + 1);
            return (next < count).then(|| self.key(next));
        }
        let from = key.and_then(|key| self.find(key, count)).map_or(0, |element| element + 1);
        self.next_used(from, count).map(|element| self.key(element))
    }

    /// Returns all elements that have a key.
    pub fn used_elements(&self, count: u32) -> Vec<u32> {
        if let Self::Prefixes(tree) = self {
            return tree.used_elements();
        }
        let first = self.next_used(0, count);
        std::iter::successors(first, |&element| self.next_used(element + 1, count)).collect()
    }

    /// Returns the first element from `from` on that has a key; for maps other than trees.
    pub fn next_used(&self, from: u32, count: u32) -> Option<u32> {
        match self {
            Self::Array => (from < count).then_some(from),
            Self::Hash { index, .. }
            | Self::HashInPlace(index)
            | Self::DeviceHash(index)
            | Self::Lru(index, _)
            | Self::LruInPlace(index, _) => index.next_used(from),
            Self::Slots(slots) | Self::Events(slots, _) => slots.next_set(from),
            Self::Prefixes(_) | Self::Ring(_) | Self::Queue(_) | Self::Bloom(_) | Self::Absent => {
                None
            }
        }
    }

    /// Returns the key of an element that has one.
    pub fn key(&self, element: u32) -> Vec<u8> {
        match self {
            Self::Hash { index, .. }
            | Self::HashInPlace(index)
            | Self::DeviceHash(index)
            | Self::Lru(index, _)
            | Self::LruInPlace(index, _) => index.key(element).to_vec(),
            Self::Prefixes(tree) => tree.key(element),
            _ => element.to_ne_bytes().to_vec(),
        }
    }
}

fn update_array(key: &[u8], flags: u64, count: u32) -> Result<u32, ErrorNumber> {
    if flags & !flags::LOCK > flags::EXIST {
        return Err(ErrorNumber::EINVAL);
    }
    let place = number(key).filter(|&place| place < count).ok_or(ErrorNumber::E2BIG)?;
    flags::check(flags, true).map(|()| place)
}

fn update_hash(
    index: &mut HashIndex,
    spare: &mut u32,
    key: &[u8],
    flags: u64,
) -> Result<u32, ErrorNumber> {
    let found = index.find(key);
    flags::check(flags, found.is_some())?;
    if found.is_some() && flags & flags::LOCK != 0 {
        return found.ok_or(ErrorNumber::ENOENT);
    }
    match index.detach(key) {
        Some(old) => {
            let new = std::mem::replace(spare, old);
            index.insert(new, key);
            Ok(new)
        }
        None => added(index, key).ok_or(ErrorNumber::E2BIG),
    }
}

/// Allocates a free element for `key`.
fn added(index: &mut HashIndex, key: &[u8]) -> Option<u32> {
    let element = index.take()?;
    index.insert(element, key);
    Some(element)
}

/// Updates a map of devices: a device's number is never 0, and `BPF_EXIST` needs no existing entry.
fn update_devices(
    index: &mut HashIndex,
    key: &[u8],
    value: &[u8],
    flags: u64,
) -> Result<u32, ErrorNumber> {
    let device = number(value.get(..4).unwrap_or_default());
    if flags > flags::EXIST || device.is_none_or(|device| device == 0) {
        return Err(ErrorNumber::EINVAL);
    }
    match index.find(key) {
        Some(_) if flags == flags::NOEXIST => Err(ErrorNumber::EEXIST),
        Some(element) => Ok(element),
        None => added(index, key).ok_or(ErrorNumber::E2BIG),
    }
}

/// Updates an LRU map: the element changes on an update, as long as there are free ones.
fn update_lru(
    index: &mut HashIndex,
    recency: &mut Recency,
    key: &[u8],
    flags: u64,
    in_place: bool,
) -> Result<u32, ErrorNumber> {
    let found = index.find(key);
    flags::check(flags, found.is_some())?;
    if let Some(old) = found {
        let new = if in_place { None } else { index.take() };
        let Some(new) = new else { return Ok(old) };
        index.detach(key);
        index.give_back(old);
        index.insert(new, key);
        return Ok(new);
    }
    let element = recency.take(index).ok_or(ErrorNumber::E2BIG)?;
    index.insert(element, key);
    Ok(element)
}

fn update_prefix(tree: &mut PrefixTree, key: &[u8], flags: u64) -> Result<u32, ErrorNumber> {
    if !tree.is_valid(key) || flags > flags::EXIST {
        return Err(ErrorNumber::EINVAL);
    }
    let found = tree.exact(key);
    flags::check(flags, found.is_some())?;
    if let Some(element) = found {
        tree.write_key(element, key);
        return Ok(element);
    }
    tree.insert(key).ok_or(ErrorNumber::ENOSPC)
}
