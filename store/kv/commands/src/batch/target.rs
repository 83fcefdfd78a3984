// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key of an operation, with its value: in a batch of the keyspace, or in a database whose
//! changes are observed.

use freeport_kv_keyspace::{Entry, Error, Expiry, Keyspace};

use crate::database::Database;

/// The key of an operation. The methods are those of [`Entry`].
pub(super) trait Target {
    fn string(&mut self) -> Result<Option<&[u8]>, Error>;
    fn set(&mut self, value: &[u8]) -> Result<(), Error>;
    fn remove(&mut self) -> bool;
    fn update<R>(&mut self, change: impl FnOnce(&mut [u8]) -> R) -> Result<Option<R>, Error>;
}

impl Target for Entry<'_, '_, '_> {
    #[inline(always)]
    fn string(&mut self) -> Result<Option<&[u8]>, Error> {
        Entry::string(self)
    }

    #[inline(always)]
    fn set(&mut self, value: &[u8]) -> Result<(), Error> {
        Entry::set(self, value)
    }

    #[inline(always)]
    fn remove(&mut self) -> bool {
        Entry::remove(self)
    }

    #[inline(always)]
    fn update<R>(&mut self, change: impl FnOnce(&mut [u8]) -> R) -> Result<Option<R>, Error> {
        Entry::update(self, change)
    }
}

/// A key of a database.
pub(super) struct Named<'a, 'd> {
    pub database: &'a mut Database<'d>,
    pub key: &'a [u8],
    /// Reads are counted; the commands of functions count none.
    pub counts: bool,
}

impl Target for Named<'_, '_> {
    fn string(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.counts {
            return self.database.look(self.key, |keys, now_ms| keys.string(self.key, now_ms));
        }
        let now_ms = self.database.now_ms();
        self.database.keyspace(self.key).map_or(Ok(None), |keys| keys.string(self.key, now_ms))
    }

    fn set(&mut self, value: &[u8]) -> Result<(), Error> {
        let set = |keyspace: &mut Keyspace, now_ms| {
            keyspace.set_string(self.key, value, Expiry::Never, now_ms)
        };
        self.database.grow(self.key, set)
    }

    fn remove(&mut self) -> bool {
        self.database.remove(self.key)
    }

    fn update<R>(&mut self, change: impl FnOnce(&mut [u8]) -> R) -> Result<Option<R>, Error> {
        let now_ms = self.database.now_ms();
        match self.database.keyspace_mut(self.key) {
            Some(keyspace) => keyspace.update_string(self.key, now_ms, change),
            None => Ok(None),
        }
    }
}
