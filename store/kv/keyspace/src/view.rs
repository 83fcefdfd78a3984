// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of any type, read where they lie: their encodings, their bytes, and their serialized
//! form.

use freeport_kv_types::number::parse_integer;
use freeport_kv_types::{HashRef, ListRef, SetRef, StreamRef, ZSetRef};

use crate::header::{Body, Kind, Stored};
use crate::keyspace::Keyspace;
use crate::large::LargeValues;
use crate::value::Type;

/// Longest string that Redis keeps in one block with its header.
const EMBEDDED_BYTES: usize = 44;
/// Longest text of an integer of 64 bits.
const INTEGER_BYTES: usize = 20;

/// A value of any type.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// Bytes.
    String(&'a [u8]),
    /// Fields with values.
    Hash(HashRef<'a>),
    /// A sequence of byte strings.
    List(ListRef<'a>),
    /// Different byte strings.
    Set(SetRef<'a>),
    /// Byte strings with scores.
    SortedSet(ZSetRef<'a>),
    /// A log of entries.
    Stream(StreamRef<'a>),
}

impl ValueRef<'_> {
    /// Its type.
    pub fn kind(self) -> Kind {
        match self {
            Self::String(_) => Kind::String,
            Self::Hash(_) => Kind::Hash,
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::SortedSet(_) => Kind::SortedSet,
            Self::Stream(_) => Kind::Stream,
        }
    }

    /// Name of the form that it has, in the words of `OBJECT ENCODING` in Redis 7.2. Strings have
    /// one form here: the name is that of a string that was just set.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::String(text) if text.len() > EMBEDDED_BYTES => "raw",
            Self::String(text) if text.len() <= INTEGER_BYTES && parse_integer(text).is_some() => {
                "int"
            }
            Self::String(_) => "embstr",
            Self::Hash(hash) => hash.encoding(),
            Self::List(list) => list.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(set) => set.encoding(),
            Self::Stream(stream) => stream.encoding(),
        }
    }

    /// Appends the value to `out`, for [`Detached::deserialize`](crate::Detached::deserialize).
    pub fn serialize(self, out: &mut Vec<u8>) {
        match self {
            Self::String(text) => out.extend_from_slice(text),
            Self::Hash(hash) => hash.serialize(out),
            Self::List(list) => list.serialize(out),
            Self::Set(set) => set.serialize(out),
            Self::SortedSet(set) => set.serialize(out),
            Self::Stream(stream) => stream.serialize(out),
        }
    }
}

impl Keyspace {
    /// A value of any type; none: no such key.
    pub fn value(&self, key: &[u8], now_ms: u64) -> Option<ValueRef<'_>> {
        Some(self.large.value_of(self.stored(key, now_ms)?))
    }

    /// Bytes of memory that a key and its value take: its slots of the index, its block, and a
    /// large value as allocated; none: no such key.
    pub fn memory_of(&self, key: &[u8], now_ms: u64) -> Option<usize> {
        let large_bytes = match self.stored(key, now_ms)?.body {
            Body::Packed(_) => 0,
            Body::Large(number) => self.large.bytes_of(number),
        };
        Some(self.engine.memory_of(key)? + large_bytes)
    }

    /// A stored value as its type.
    pub(crate) fn view<'a, T: Type>(&'a self, stored: Stored<'a>) -> T::Ref<'a> {
        self.large.view::<T>(stored)
    }
}

impl LargeValues {
    /// A stored value of any type.
    pub(crate) fn value_of<'a>(&'a self, stored: Stored<'a>) -> ValueRef<'a> {
        match stored.header.kind {
            Kind::String => match stored.body {
                Body::Packed(bytes) => ValueRef::String(bytes),
                Body::Large(_) => unreachable!("strings have one form"),
            },
            Kind::Hash => ValueRef::Hash(self.view::<freeport_kv_types::Hash>(stored)),
            Kind::List => ValueRef::List(self.view::<freeport_kv_types::List>(stored)),
            Kind::Set => ValueRef::Set(self.view::<freeport_kv_types::Set>(stored)),
            Kind::SortedSet => ValueRef::SortedSet(self.view::<freeport_kv_types::ZSet>(stored)),
            Kind::Stream => ValueRef::Stream(self.view::<freeport_kv_types::Stream>(stored)),
        }
    }

    /// A stored value as its type.
    fn view<'a, T: Type>(&'a self, stored: Stored<'a>) -> T::Ref<'a> {
        match stored.body {
            Body::Packed(bytes) => T::read_packed(bytes),
            Body::Large(number) => T::read_large(self.get(number)),
        }
    }
}
