// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The database that a client has selected, as its commands see it: each key lies in the shard of
//! its hash slot, and changes are noted in the [`Effects`].

use freeport_kv_keyspace::{Expiry, Keyspace, Kind, Type};
use freeport_kv_types::Limits;

use crate::effects::{Class, Effects};
use crate::error::Error;
use crate::store::Store;

/// A database during one command.
#[derive(Debug)]
pub struct Database<'a> {
    /// The shards.
    pub store: &'a mut Store,
    /// Effects of the command.
    pub effects: &'a mut Effects,
    number: u16,
    now_ms: u64,
}

impl<'a> Database<'a> {
    /// A database at a time.
    #[inline]
    pub fn new(store: &'a mut Store, effects: &'a mut Effects, number: u16, now_ms: u64) -> Self {
        Self { store, effects, number, now_ms }
    }

    /// Number of the database.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The time in milliseconds since 1970.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The keys among which a key is, if there are any.
    #[inline]
    pub fn keyspace(&self, key: &[u8]) -> Option<&Keyspace> {
        self.store.shard(self.store.shard_of(key)).database(self.number)
    }

    /// The keys among which a key is, to be changed.
    #[inline]
    pub fn keyspace_mut(&mut self, key: &[u8]) -> &mut Keyspace {
        let shard = self.store.shard_of(key);
        self.store.shard_mut(shard).database_or_new(self.number)
    }

    /// Type of a value; none: no such key.
    pub fn kind(&self, key: &[u8]) -> Option<Kind> {
        self.keyspace(key)?.kind(key, self.now_ms)
    }

    /// There is such a key.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.kind(key).is_some()
    }

    /// A string.
    ///
    /// # Errors
    /// The value has another type.
    #[inline]
    pub fn string(&self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        let Some(keyspace) = self.keyspace(key) else { return Ok(None) };
        Ok(keyspace.string(key, self.now_ms)?)
    }

    /// Stores a string in place of any value.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    #[inline]
    pub fn set_string(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        let now_ms = self.now_ms;
        Ok(self.keyspace_mut(key).set_string(key, value, expiry, now_ms)?)
    }

    /// Reads a value where it lies; none: no such key.
    ///
    /// # Errors
    /// The value has another type.
    pub fn read<T: Type>(&self, key: &[u8]) -> Result<Option<T::Ref<'_>>, Error> {
        let Some(keyspace) = self.keyspace(key) else { return Ok(None) };
        Ok(keyspace.read::<T>(key, self.now_ms)?)
    }

    /// Changes a value, which is empty if there is none yet; see [`Keyspace::change`].
    ///
    /// # Errors
    /// The value has another type, or no memory is left; nothing has changed.
    pub fn change<T: Type, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        let now_ms = self.now_ms;
        Ok(self.keyspace_mut(key).change(key, now_ms, change)?)
    }

    /// Removes elements of a value; see [`Keyspace::shrink`].
    ///
    /// # Errors
    /// See [`Database::change`].
    pub fn shrink<T: Type, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        let now_ms = self.now_ms;
        Ok(self.keyspace_mut(key).shrink(key, now_ms, change)?)
    }

    /// Stores a value in place of any value of any type; see [`Keyspace::store`].
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn store<T: Type>(&mut self, key: &[u8], value: T) -> Result<(), Error> {
        Ok(self.keyspace_mut(key).store(key, value)?)
    }

    /// Sizes up to which a value of this key stays packed.
    pub fn limits(&self, key: &[u8]) -> &Limits {
        let shard = self.store.shard(self.store.shard_of(key));
        match shard.database(self.number) {
            Some(keyspace) => keyspace.limits(),
            None => &shard.options().keyspace.limits,
        }
    }

    /// Removes a key; returns whether there was one. The caller notes the event.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let (shard, now_ms) = (self.store.shard_of(key), self.now_ms);
        let keyspace = self.store.shard_mut(shard).database_mut(self.number);
        keyspace.is_some_and(|keyspace| keyspace.remove(key, now_ms))
    }

    /// Time of expiry; see [`Keyspace::expires_ms`].
    pub fn expires_ms(&self, key: &[u8]) -> Option<Option<u64>> {
        self.keyspace(key)?.expires_ms(key, self.now_ms)
    }

    /// Sets or removes the time of expiry; see [`Keyspace::set_expiry`].
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn set_expiry(&mut self, key: &[u8], expires_ms: Option<u64>) -> Result<bool, Error> {
        let now_ms = self.now_ms;
        Ok(self.keyspace_mut(key).set_expiry(key, expires_ms, now_ms)?)
    }

    /// A key was changed: transactions that watch it fail, clients that wait for it are looked at,
    /// and those that listen are told. Every command that changed something calls it, after
    /// the change, and once for each event.
    #[inline]
    pub fn changed(&mut self, key: &[u8], class: Class, event: &'static str) {
        self.effects.changes += 1;
        let shard = self.store.shard_of(key);
        if self.store.shard_mut(shard).changed(self.number, key) {
            self.effects.has_ready_keys = true;
        }
        self.effects.note(class, event, self.number, key);
    }

    /// As [`Database::changed`], and, if the key is gone with its last element, its removal.
    pub fn changed_or_removed(&mut self, key: &[u8], class: Class, event: &'static str) {
        self.changed(key, class, event);
        if !self.contains(key) {
            self.effects.note(Class::Generic, "del", self.number, key);
        }
    }

    /// A part of a value was changed that transactions do not watch, such as a group of a stream.
    /// Those that listen are told, if there is an event.
    pub fn changed_unwatched(&mut self, key: &[u8], event: Option<(Class, &'static str)>) {
        self.effects.changes += 1;
        if let Some((class, event)) = event {
            self.effects.note(class, event, self.number, key);
        }
    }

    /// Clients that wait for a key are looked at, although transactions that watch it do not fail.
    pub fn wake(&mut self, key: &[u8]) {
        let shard = self.store.shard_of(key);
        if self.store.shard_mut(shard).wake(self.number, key) {
            self.effects.has_ready_keys = true;
        }
    }

    /// Removes a key with its event; returns whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let is_removed = self.remove(key);
        if is_removed {
            self.changed(key, Class::Generic, "del");
        }
        is_removed
    }

    /// Fetches the memory in which a key is searched, while others are worked on.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) {
        let shard = self.store.shard_of(key);
        if self.store.has(shard)
            && let Some(keyspace) = self.store.shard(shard).database(self.number)
        {
            keyspace.engine().prefetch(key);
        }
    }
}
