// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values whose elements can be sorted.

use std::ops::Range;

use freeport_kv_keyspace::Kind;
use freeport_kv_types::{Entry, List, ListRef, Set, SetRef, ZSet, ZSetRef};

use crate::database::Database;
use crate::error::Error;

/// A value whose elements can be sorted.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// There is no such key.
    None,
    /// Elements of a list.
    List(ListRef<'a>),
    /// Members of a set.
    Set(SetRef<'a>),
    /// Members of a sorted set.
    ZSet(ZSetRef<'a>),
}

impl<'a> Elements<'a> {
    /// The elements of a key.
    ///
    /// # Errors
    /// The value has another type.
    pub fn of(database: &'a Database<'_>, key: &[u8]) -> Result<Self, Error> {
        let elements = match database.kind(key) {
            None => None,
            Some(Kind::List) => database.read::<List>(key)?.map(Self::List),
            Some(Kind::Set) => database.read::<Set>(key)?.map(Self::Set),
            Some(Kind::SortedSet) => database.read::<ZSet>(key)?.map(Self::ZSet),
            Some(_) => return Err(Error::WRONG_TYPE),
        };
        Ok(elements.unwrap_or(Self::None))
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::List(list) => list.len(),
            Self::Set(set) => set.len(),
            Self::ZSet(zset) => zset.len(),
        }
    }

    /// All elements.
    pub fn all(self) -> Vec<Entry<'a>> {
        self.in_their_order(0..self.len(), false)
    }

    /// Elements of a range of places in the order that the value has, or in its reverse. A set has
    /// no order.
    pub fn in_their_order(self, range: Range<usize>, is_reversed: bool) -> Vec<Entry<'a>> {
        let length = self.len();
        let from_end = length - range.end..length - range.start;
        match (self, is_reversed) {
            (Self::None, _) => vec![],
            (Self::List(list), false) => list.range(range).collect(),
            (Self::List(list), true) => list.range(from_end).rev().collect(),
            (Self::Set(set), _) => set.iter().skip(range.start).take(range.len()).collect(),
            (Self::ZSet(zset), false) => zset.range(range).map(|(member, _)| member).collect(),
            (Self::ZSet(zset), true) => {
                zset.range(from_end).rev().map(|(member, _)| member).collect()
            }
        }
    }
}
