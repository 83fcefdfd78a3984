// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a pair is: the slot that begins it, and, once it was read, its form and lengths.

use std::num::NonZero;

use freeport_kv_slab::Class;

use crate::block::Pair;
use crate::bucket::{BUCKET_BYTES, SLOTS};
use crate::meter::Cause;

/// A slot in which a pair begins: the offset of its bucket with the number of the slot in the low
/// bits, so that a place, or none, is one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(NonZero<usize>);

impl Place {
    /// Keeps the word from being zero.
    const MARK: usize = 0x20;

    /// A slot of the bucket at an offset.
    #[inline(always)]
    pub fn new(bucket: usize, slot: usize) -> Self {
        debug_assert!(slot < SLOTS, "a slot of a bucket");
        Self(NonZero::new(bucket | slot | Self::MARK).expect("the mark is not zero"))
    }

    /// Offset of the bucket.
    #[inline(always)]
    pub fn bucket(self) -> usize {
        self.0.get() & !(BUCKET_BYTES - 1)
    }

    /// Number of the slot in it.
    #[inline(always)]
    pub fn slot(self) -> usize {
        let slot = self.0.get() & 0xF;
        // SAFETY: places are made of slots of a bucket alone.
        unsafe { std::hint::assert_unchecked(slot < SLOTS) };
        slot
    }
}

/// A pair, and the slots that lead to it.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Offset of the bucket.
    pub bucket: usize,
    /// First slot in it.
    pub slot: usize,
    /// Number of slots.
    pub span: usize,
    /// Place and lengths.
    pub pair: Pair,
    /// The block; none for a pair that is kept inline.
    pub block: Option<(u32, Class)>,
}

/// Form of a pair in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In this number of slots of a bucket.
    Inline(usize),
    /// In a block.
    Block(Class),
}

impl Found {
    /// The pair has this form.
    #[inline(always)]
    pub fn has(&self, form: Form) -> bool {
        match (form, self.block) {
            (Form::Inline(span), None) => span == self.span,
            (Form::Block(class), Some((_, own))) => class == own,
            _ => false,
        }
    }

    /// The cause of an access to the value.
    #[inline(always)]
    pub fn cause(&self, index_bytes: usize) -> Cause {
        match self.block {
            Some(_) => Cause::Data,
            None if self.bucket < index_bytes => Cause::Bucket,
            None => Cause::Chain,
        }
    }

    /// Offset and length of the value.
    #[inline(always)]
    pub fn value(&self) -> (usize, usize) {
        (self.pair.at + self.pair.key_bytes, self.pair.value_bytes)
    }
}
