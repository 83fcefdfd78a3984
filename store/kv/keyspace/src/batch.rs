// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches of operations on strings, through the stages of the engine, which fetch memory while
//! earlier operations are executed.
//!
//! A plain string costs no more than in the engine: one look at the tag, and a branch for an image
//! and one for the table of uses. Values with a header take a slower way, on the same entry.

use std::ops::ControlFlow;

use freeport_kv_engine::{Entry as Pair, Execute as ExecutePair, Keys};

use crate::access::AccessTable;
use crate::error::Error;
use crate::header::{Body, Header, Kind, Stored};
use crate::image::ImageState;
use crate::keyspace::Keyspace;
use crate::large::LargeValues;

/// The operations of a batch.
pub trait Execute {
    /// Executes an operation on the entry of its key. After a break, those that follow are not
    /// executed.
    fn execute(&mut self, number: usize, entry: &mut Entry<'_, '_, '_>) -> ControlFlow<()>;
}

/// Conditions of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// The time in milliseconds since 1970.
    pub now_ms: u64,
    /// A value whose time has passed is removed when it is looked up.
    pub removes_expired: bool,
}

/// Effect of a batch besides its replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchEffects {
    /// Number of operations that were executed.
    pub executed: usize,
    /// Number of values that were removed or replaced because their time had passed.
    pub expired: u64,
}

/// A key, and its value if it has one.
pub struct Entry<'e, 'p, 'k> {
    pair: &'e mut Pair<'p>,
    rest: &'e mut Rest<'k>,
}

/// A keyspace without its engine, during a batch.
struct Rest<'k> {
    large: &'k mut LargeValues,
    image: &'k mut ImageState,
    access: Option<&'k mut AccessTable>,
    access_bytes: usize,
    expiring: &'k mut usize,
    limit_bytes: usize,
    options: BatchOptions,
    expired: u64,
}

/// An executor on the entries of a keyspace, for the engine.
struct Executor<'x, 'k, X> {
    executor: &'x mut X,
    rest: Rest<'k>,
}

impl Keyspace {
    /// Executes operations in their order.
    pub fn run_each<K: Keys, X: Execute>(
        &mut self,
        keys: &K,
        options: BatchOptions,
        executor: &mut X,
    ) -> BatchEffects {
        let access_bytes = self.access_bytes();
        let rest = Rest {
            large: &mut self.large,
            image: &mut self.image,
            access: self.access.as_deref_mut(),
            access_bytes,
            expiring: &mut self.expiring,
            limit_bytes: self.limit_bytes,
            options,
            expired: 0,
        };
        let mut executor = Executor { executor, rest };
        let executed = self.engine.run_each(keys, &mut executor);
        BatchEffects { executed, expired: executor.rest.expired }
    }
}

impl<X: Execute> ExecutePair for Executor<'_, '_, X> {
    #[inline(always)]
    fn execute(&mut self, number: usize, pair: &mut Pair<'_>) -> ControlFlow<()> {
        self.executor.execute(number, &mut Entry { pair, rest: &mut self.rest })
    }
}

impl Entry<'_, '_, '_> {
    /// The string of the key, if it has a value.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    #[inline(always)]
    pub fn string(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.pair.is_tagged() {
            return self.tagged_string();
        }
        Ok(self.pair.value().map(|value| value.bytes))
    }

    /// Stores a string in place of any value, without an expiry.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing has changed.
    #[inline(always)]
    pub fn set(&mut self, value: &[u8]) -> Result<(), Error> {
        self.before_change();
        if self.pair.overwrite(value) { Ok(()) } else { self.replace(value) }
    }

    /// Changes a string in place; its length stays. None: the key has no value.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    #[inline(always)]
    pub fn update<R>(&mut self, change: impl FnOnce(&mut [u8]) -> R) -> Result<Option<R>, Error> {
        let mut start = 0;
        if self.pair.is_tagged() {
            let Some(length) = self.tagged_string()?.map(<[u8]>::len) else { return Ok(None) };
            // The bytes of a string end its value.
            start = self.pair.value().map_or(0, |value| value.bytes.len() - length);
        }
        self.before_change();
        Ok(self.pair.change().map(|value| change(&mut value.bytes[start..])))
    }

    /// Removes the value; returns whether there was one.
    #[inline(always)]
    pub fn remove(&mut self) -> bool {
        if !self.pair.is_occupied() {
            return false;
        }
        self.before_change();
        if self.pair.is_tagged() {
            return self.remove_tagged();
        }
        self.delete();
        true
    }

    /// Notes a use of the key, if uses are tracked and it has a value. `random` gives any number.
    #[inline(always)]
    pub fn touch(&mut self, random: impl FnOnce() -> u32) {
        if let Some(access) = &mut self.rest.access
            && self.pair.is_occupied()
        {
            access.touch(self.pair.hash().bits, self.rest.options.now_ms, random());
        }
    }

    /// Has to be called before the value changes in any way, or is made.
    #[inline(always)]
    fn before_change(&mut self) {
        let Rest { image, large, .. } = &mut *self.rest;
        image.before_change(self.pair.engine(), large, self.pair.key());
    }

    /// The string of a value with a header.
    #[inline(never)]
    fn tagged_string(&mut self) -> Result<Option<&[u8]>, Error> {
        let has_expired = self.header().is_some_and(|(header, _)| self.has_expired(header));
        if has_expired {
            if self.rest.options.removes_expired {
                self.before_change();
                self.remove_tagged();
            }
            return Ok(None);
        }
        match self.pair.value().map(Stored::read) {
            None => Ok(None),
            Some(Stored {
                header: Header { kind: Kind::String, .. },
                body: Body::Packed(bytes),
            }) => Ok(Some(bytes)),
            Some(_) => Err(Error::WrongType),
        }
    }

    /// Stores a string that cannot take the place of the value before.
    #[inline(never)]
    fn replace(&mut self, value: &[u8]) -> Result<(), Error> {
        let old = self.header();
        let Rest { limit_bytes, access_bytes, .. } = *self.rest;
        let other_bytes = self.rest.large.memory_bytes() + access_bytes;
        self.pair.set_limit_bytes(limit_bytes.saturating_sub(other_bytes));
        self.pair.put(value)?;
        self.forget(old);
        Ok(())
    }

    #[inline(never)]
    fn remove_tagged(&mut self) -> bool {
        let old = self.header();
        self.delete();
        self.forget(old);
        !old.is_some_and(|(header, _)| self.has_expired(header))
    }

    #[inline(always)]
    fn delete(&mut self) {
        self.pair.delete();
        if let Some(access) = &mut self.rest.access {
            access.forget(self.pair.hash().bits, self.rest.options.now_ms);
        }
    }

    /// Header of the value, and number of a large one, also after its time.
    fn header(&self) -> Option<(Header, Option<u32>)> {
        let stored = Stored::read(self.pair.value()?);
        let number = match stored.body {
            Body::Large(number) => Some(number),
            Body::Packed(_) => None,
        };
        Some((stored.header, number))
    }

    fn has_expired(&self, header: Header) -> bool {
        header.has_expired(self.rest.options.now_ms)
    }

    /// Frees what belonged to a value that is gone, and counts it.
    fn forget(&mut self, old: Option<(Header, Option<u32>)>) {
        let Some((header, number)) = old else { return };
        if let Some(number) = number {
            self.rest.large.remove(number);
        }
        *self.rest.expiring -= usize::from(header.expires_ms.is_some());
        self.rest.expired += u64::from(self.has_expired(header));
    }
}
