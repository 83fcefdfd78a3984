// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of a type that a keyspace needs to keep its values.

use freeport_kv_types::hash::LargeHash;
use freeport_kv_types::list::LargeList;
use freeport_kv_types::set::LargeSet;
use freeport_kv_types::stream::Large as LargeStream;
use freeport_kv_types::zset::Large as LargeZSet;
use freeport_kv_types::{
    Hash, HashRef, List, ListRef, Set, SetRef, Stream, StreamRef, ZSet, ZSetRef,
};

use crate::header::Kind;

/// The two forms of a value that is being changed.
#[derive(Debug)]
pub enum Form<L> {
    /// Bytes that stand for themselves.
    Packed(Vec<u8>),
    /// A structure on the heap.
    Large(Box<L>),
}

/// A type of values with a packed and a large form.
pub trait Type: Sized {
    /// Its kind.
    const KIND: Kind;
    /// A value left without elements is removed.
    const IS_REMOVED_WHEN_EMPTY: bool = true;
    /// The large form.
    type Large: Clone + Send + 'static;
    /// A value that is read where it lies.
    type Ref<'a>;

    /// Reads the packed form.
    fn read_packed(bytes: &[u8]) -> Self::Ref<'_>;
    /// Reads the large form.
    fn read_large(large: &Self::Large) -> Self::Ref<'_>;
    /// The value that is changed.
    fn from_form(form: Form<Self::Large>) -> Self;
    /// Its form after the change.
    fn into_form(self) -> Form<Self::Large>;
    /// There are no elements.
    fn is_empty(&self) -> bool;
    /// Bytes of the large form.
    fn large_bytes(large: &Self::Large) -> usize;
}

macro_rules! implement {
    ($type:ident, $reference:ident, $large:ident, $kind:ident, $is_removed:literal, $read:expr) => {
        impl Type for $type {
            const KIND: Kind = Kind::$kind;
            const IS_REMOVED_WHEN_EMPTY: bool = $is_removed;
            type Large = $large;
            type Ref<'a> = $reference<'a>;

            fn read_packed(bytes: &[u8]) -> $reference<'_> {
                $reference::from_packed(bytes)
            }

            fn read_large(large: &$large) -> $reference<'_> {
                $read(large)
            }

            fn from_form(form: Form<$large>) -> Self {
                match form {
                    Form::Packed(bytes) => Self::Packed(bytes),
                    Form::Large(large) => Self::Large(large),
                }
            }

            fn into_form(self) -> Form<$large> {
                match self {
                    Self::Packed(bytes) => Form::Packed(bytes),
                    Self::Large(large) => Form::Large(large),
                }
            }

            fn is_empty(&self) -> bool {
                self.view().is_empty()
            }

            fn large_bytes(large: &$large) -> usize {
                $read(large).memory_bytes()
            }
        }
    };
}

implement!(Hash, HashRef, LargeHash, Hash, true, HashRef::Large);
implement!(List, ListRef, LargeList, List, true, ListRef::Large);
implement!(Set, SetRef, LargeSet, Set, true, SetRef::Large);
implement!(ZSet, ZSetRef, LargeZSet, SortedSet, true, ZSetRef::Large);
// A stream without entries still has its last id and its groups.
implement!(Stream, StreamRef, LargeStream, Stream, false, StreamRef::from_large);
