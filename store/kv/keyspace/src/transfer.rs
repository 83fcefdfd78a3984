// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that get another key: in the same keyspace, or in another one. A large value moves as it
//! is; only a copy takes new memory for its elements.

use std::any::Any;
use std::fmt;

use freeport_kv_types::hash::LargeHash;
use freeport_kv_types::list::LargeList;
use freeport_kv_types::set::LargeSet;
use freeport_kv_types::stream::Large as LargeStream;
use freeport_kv_types::zset::Large as LargeZSet;
use freeport_kv_types::{Corrupt, Hash, Limits, List, Set, Stream, ZSet};

use crate::error::Error;
use crate::header::{Body, Header, Kind};
use crate::keyspace::Keyspace;
use crate::value::{Form, Type};

/// A value of any type that belongs to no key.
pub struct Detached {
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    kind: Kind,
    contents: Contents,
}

enum Contents {
    Packed(Vec<u8>),
    /// A structure, and its bytes.
    Large(Box<dyn Any + Send>, usize),
}

impl fmt::Debug for Detached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Detached")
            .field("kind", &self.kind)
            .field("expires_ms", &self.expires_ms)
            .finish_non_exhaustive()
    }
}

impl Detached {
    /// Reads a value that [`ValueRef::serialize`](crate::ValueRef::serialize) wrote. It does not
    /// expire.
    ///
    /// # Errors
    /// The bytes are no value of that type, or one that no key has: without elements, or above the
    /// limits of strings.
    pub fn deserialize(kind: Kind, bytes: &[u8], limits: &Limits) -> Result<Self, Corrupt> {
        let contents = match kind {
            Kind::String if bytes.len() > limits.text_bytes => {
                return Err(Corrupt::at(limits.text_bytes, "a string above the limit"));
            }
            Kind::String => Contents::Packed(bytes.to_vec()),
            Kind::Hash => Contents::of(Hash::deserialize(bytes, limits)?)?,
            Kind::List => Contents::of(List::deserialize(bytes, limits)?)?,
            Kind::Set => Contents::of(Set::deserialize(bytes, limits)?)?,
            Kind::SortedSet => Contents::of(ZSet::deserialize(bytes, limits)?)?,
            Kind::Stream => Contents::of(Stream::deserialize(bytes, limits)?)?,
        };
        Ok(Self { expires_ms: None, kind, contents })
    }

    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn header(&self) -> Header {
        Header { kind: self.kind, expires_ms: self.expires_ms }
    }
}

impl Contents {
    fn of<T: Type>(value: T) -> Result<Self, Corrupt> {
        if T::IS_REMOVED_WHEN_EMPTY && value.is_empty() {
            return Err(Corrupt::at(0, "no elements"));
        }
        Ok(match value.into_form() {
            Form::Packed(bytes) => Self::Packed(bytes),
            Form::Large(large) => {
                let bytes = T::large_bytes(&large);
                Self::Large(large, bytes)
            }
        })
    }
}

impl Keyspace {
    /// A copy of a value, with its time of expiry; none: no such key.
    pub fn copy(&self, key: &[u8], now_ms: u64) -> Option<Detached> {
        let stored = self.stored(key, now_ms)?;
        let Header { kind, expires_ms } = stored.header;
        let contents = match stored.body {
            Body::Packed(bytes) => Contents::Packed(bytes.to_vec()),
            Body::Large(number) => {
                let copy = match kind {
                    Kind::Hash => self.large.copy::<LargeHash>(number),
                    Kind::List => self.large.copy::<LargeList>(number),
                    Kind::Set => self.large.copy::<LargeSet>(number),
                    Kind::SortedSet => self.large.copy::<LargeZSet>(number),
                    Kind::Stream => self.large.copy::<LargeStream>(number),
                    Kind::String => unreachable!("strings have one form"),
                };
                Contents::Large(copy, self.large.bytes_of(number))
            }
        };
        Some(Detached { expires_ms, kind, contents })
    }

    /// Takes a value that is about to be replaced, for [`Keyspace::put_back`]; none: no such key.
    /// A large value is not copied: its key may not be read until something else is stored there.
    pub fn take_replaced(&mut self, key: &[u8], now_ms: u64) -> Option<Detached> {
        self.before_change(key);
        let stored = self.stored(key, now_ms)?;
        let Header { kind, expires_ms } = stored.header;
        let contents = match stored.body {
            Body::Packed(bytes) => Contents::Packed(bytes.to_vec()),
            Body::Large(number) => {
                let memory_bytes = self.large.bytes_of(number);
                Contents::Large(self.large.take_any(number), memory_bytes)
            }
        };
        Some(Detached { expires_ms, kind, contents })
    }

    /// Gives a key the value back that [`Keyspace::take_replaced`] took, or removes it if there was
    /// none. The limit of memory does not refuse it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] only if the allocator finds no block; the key is then removed.
    pub fn put_back(&mut self, key: &[u8], old: Option<Detached>) -> Result<(), Error> {
        let Some(value) = old else {
            self.discard(key);
            return Ok(());
        };
        let (new, header) = (self.stored_or_expired(key), value.header());
        let (number, bytes) = match value.contents {
            Contents::Packed(bytes) => (None, bytes),
            Contents::Large(structure, bytes) => {
                (Some(self.large.insert(structure, bytes)), vec![])
            }
        };
        let result = self.put_above_limit(key, header, number, &bytes);
        match result {
            Ok(()) => self.replaced(new, header),
            Err(_) => {
                // The structure that the key still names may have been taken.
                number.into_iter().for_each(|number| self.large.remove(number));
                self.discard(key);
            }
        }
        result
    }

    /// Stores a value in place of any other.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing has changed.
    pub fn insert(&mut self, key: &[u8], value: Detached, now_ms: u64) -> Result<(), Error> {
        let (old, header) = (self.stored_or_expired(key), value.header());
        match value.contents {
            Contents::Packed(bytes) => self.put(key, header, None, &bytes)?,
            Contents::Large(structure, memory_bytes) => {
                self.check_memory(memory_bytes)?;
                let number = self.large.insert(structure, memory_bytes);
                if let Err(error) = self.put(key, header, Some(number), &[]) {
                    self.large.remove(number);
                    return Err(error);
                }
            }
        }
        self.replaced(old, header);
        self.note_lapsed(old, now_ms);
        Ok(())
    }

    /// Moves a value to a key of another keyspace, in place of any value there. Returns whether
    /// there was one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] in the other keyspace; nothing has changed.
    pub fn move_to(
        &mut self,
        from: &[u8],
        (other, to): (&mut Self, &[u8]),
        now_ms: u64,
    ) -> Result<bool, Error> {
        self.before_change(from);
        let Some(stored) = self.stored(from, now_ms) else { return Ok(false) };
        let (old, header) = (other.stored_or_expired(to), stored.header);
        match stored.body {
            Body::Packed(bytes) => other.put(to, header, None, bytes)?,
            Body::Large(number) => {
                let memory_bytes = self.large.bytes_of(number);
                other.check_memory(memory_bytes)?;
                let structure = self.large.take_any(number);
                let moved = other.large.insert(structure, memory_bytes);
                if let Err(error) = other.put(to, header, Some(moved), &[]) {
                    let structure = other.large.take_any(moved);
                    other.large.remove(moved);
                    self.large.restore(number, structure, memory_bytes);
                    return Err(error);
                }
            }
        }
        other.replaced(old, header);
        other.note_lapsed(old, now_ms);
        self.discard(from);
        Ok(true)
    }

    /// Gives a value another key, in place of any value there. Returns whether there was one. A
    /// full keyspace takes it too.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] only if the allocator finds no block; nothing has changed.
    pub fn rename(&mut self, from: &[u8], to: &[u8], now_ms: u64) -> Result<bool, Error> {
        let Some(stored) = self.stored(from, now_ms) else { return Ok(false) };
        if from == to {
            return Ok(true);
        }
        let header = stored.header;
        let (number, bytes) = match stored.body {
            Body::Large(number) => (Some(number), vec![]),
            Body::Packed(bytes) => (None, bytes.to_vec()),
        };
        let old = self.stored_or_expired(to);
        self.before_change(from);
        if self.put_above_limit(to, header, number, &bytes).is_err() {
            // The only block that is large enough may be that of the pair itself.
            self.engine.delete(from);
            if let Err(error) = self.put_above_limit(to, header, number, &bytes) {
                self.put_above_limit(from, header, number, &bytes)?;
                return Err(error);
            }
        }
        self.replaced(old, header);
        self.note_lapsed(old, now_ms);
        self.before_change(from);
        // The structure has its new key already.
        self.engine.delete(from);
        self.count_expiring(Some(header), Header::PLAIN);
        Ok(true)
    }
}
