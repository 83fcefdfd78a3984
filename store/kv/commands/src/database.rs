// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The database that a client has selected, as its commands see it: each key lies in the shard of
//! its hash slot, and changes are noted in the [`Effects`].

use freeport_kv_keyspace::{Detached, Expiry, Form, Keyspace, Kind, Options, Type, ValueRef};
use freeport_kv_types::Limits;

use crate::effects::{Class, Effects};
use crate::error::Error;
use crate::invalidation::Cause;
use crate::lookups::Lookups;
use crate::store::Store;

/// A database during one command.
#[derive(Debug)]
pub struct Database<'a> {
    /// The shards.
    pub store: &'a mut Store,
    /// Effects of the command.
    pub effects: &'a mut Effects,
    /// Keys that were looked up.
    pub(crate) lookups: Lookups,
    number: u16,
    now_ms: u64,
}

impl<'a> Database<'a> {
    /// A database at a time.
    #[inline]
    pub fn new(store: &'a mut Store, effects: &'a mut Effects, number: u16, now_ms: u64) -> Self {
        Self { store, effects, lookups: Lookups::default(), number, now_ms }
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

    /// Looks up a key in its keyspace, which counts.
    #[inline]
    pub(crate) fn look<'s, R>(
        &'s self,
        key: &[u8],
        find: impl FnOnce(&'s Keyspace, u64) -> Result<Option<R>, freeport_kv_keyspace::Error>,
    ) -> Result<Option<R>, freeport_kv_keyspace::Error> {
        let Some(keyspace) = self.keyspace(key) else {
            self.lookups.note_miss();
            return Ok(None);
        };
        let found = find(keyspace, self.now_ms);
        self.lookups.note(keyspace, !matches!(found, Ok(None)));
        found
    }

    /// As [`Database::look`], for what every value has.
    #[inline]
    fn look_at<'s, R>(
        &'s self,
        key: &[u8],
        find: impl FnOnce(&'s Keyspace, u64) -> Option<R>,
    ) -> Option<R> {
        let found = self.look(key, |keyspace, now_ms| Ok(find(keyspace, now_ms)));
        found.expect("values of all types are found")
    }

    /// The keys among which a key is, if there are any, for changes of values where they lie. Other
    /// changes have methods here, which note what has expired or is new.
    #[inline]
    pub fn keyspace_mut(&mut self, key: &[u8]) -> Option<&mut Keyspace> {
        let shard = self.store.shard_of(key);
        self.store.shard_mut(shard).database_mut(self.number)
    }

    /// Changes the keys among which a key is. If a value whose time had passed had to go for that,
    /// it is noted that it expired.
    #[inline]
    fn write<R>(&mut self, key: &[u8], write: impl FnOnce(&mut Keyspace, u64) -> R) -> R {
        self.write_in(self.store.shard_of(key), key, write)
    }

    /// As [`Database::write`], for a write that may make the key. If it does, that is noted.
    #[inline]
    pub(crate) fn grow<R>(
        &mut self,
        key: &[u8],
        write: impl FnOnce(&mut Keyspace, u64) -> Result<R, freeport_kv_keyspace::Error>,
    ) -> Result<R, freeport_kv_keyspace::Error> {
        let may_be_new = self.effects.listens_to(Class::New) && !self.contains(key);
        let result = self.write(key, write)?;
        // Its time may have passed already.
        if may_be_new && self.keyspace(key).is_some_and(|keyspace| keyspace.kind(key, 0).is_some())
        {
            self.effects.make(self.number, key);
        }
        Ok(result)
    }

    #[inline]
    fn write_in<R>(
        &mut self,
        shard: usize,
        key: &[u8],
        write: impl FnOnce(&mut Keyspace, u64) -> R,
    ) -> R {
        let keyspace = self.store.shard_mut(shard).database_or_new(self.number);
        let result = write(keyspace, self.now_ms);
        if keyspace.take_lapsed() {
            self.note_expired(key);
        }
        result
    }

    /// As [`Database::write`], if there are any keys; else nothing is done.
    fn write_existing<R: Default>(
        &mut self,
        key: &[u8],
        write: impl FnOnce(&mut Keyspace, u64) -> R,
    ) -> R {
        let shard = self.store.shard_of(key);
        match self.store.shard(shard).database(self.number) {
            Some(_) => self.write_in(shard, key, write),
            None => R::default(),
        }
    }

    #[cold]
    fn note_expired(&mut self, key: &[u8]) {
        let shard = self.store.shard_of(key);
        self.store.shard_mut(shard).note_expired(self.number, key, self.effects);
    }

    /// Removes a key whose time has passed, which nothing else sees any more.
    pub fn expire_key(&mut self, key: &[u8]) {
        self.store.expire_key((self.number, key), self.now_ms, self.effects);
    }

    /// Another database, during the same command.
    pub fn other(&mut self, number: u16) -> Database<'_> {
        Database::new(self.store, self.effects, number, self.now_ms)
    }

    /// There is a database of this number.
    pub fn has_database(&self, number: u16) -> bool {
        self.store.shards().next().is_some_and(|shard| number < shard.options().databases)
    }

    /// A value of any type; none: no such key.
    pub fn value(&self, key: &[u8]) -> Option<ValueRef<'_>> {
        self.look_at(key, |keyspace, now_ms| keyspace.value(key, now_ms))
    }

    /// Bytes of memory of a key and its value; none: no such key.
    pub fn memory_of(&self, key: &[u8]) -> Option<usize> {
        self.keyspace(key)?.memory_of(key, self.now_ms)
    }

    /// Type of a value; none: no such key.
    pub fn kind(&self, key: &[u8]) -> Option<Kind> {
        self.look_at(key, |keyspace, now_ms| keyspace.kind(key, now_ms))
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
        Ok(self.look(key, |keyspace, now_ms| keyspace.string(key, now_ms))?)
    }

    /// Stores a string in place of any value.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    #[inline]
    pub fn set_string(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        let set = |keyspace: &mut Keyspace, now_ms| keyspace.set_string(key, value, expiry, now_ms);
        Ok(self.grow(key, set)?)
    }

    /// Stores several strings, each in place of any value, without an expiry.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn set_strings(&mut self, pairs: &[[&[u8]; 2]]) -> Result<(), Error> {
        let mut replaced = Vec::with_capacity(pairs.len());
        let now_ms = self.now_ms;
        for (at, [key, value]) in pairs.iter().enumerate() {
            // The last pair changes nothing if it fails.
            if at + 1 < pairs.len() {
                let old = self.keyspace_mut(key).and_then(|it| it.take_replaced(key, now_ms));
                replaced.push((*key, old));
            }
            if let Err(error) = self.set_string(key, value, Expiry::Never) {
                for (key, old) in replaced.into_iter().rev() {
                    self.keyspace_mut(key).map_or(Ok(()), |it| it.put_back(key, old))?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Changes the bytes of a string. Zeros are appended up to `length` bytes if it is shorter, and
    /// a string that does not exist is made. Its time of expiry stays. It is changed where it lies,
    /// unless it needs a larger block.
    ///
    /// # Errors
    /// The value has another type, or no memory is left; nothing has changed.
    pub fn edit_string<R>(
        &mut self,
        key: &[u8],
        length: usize,
        edit: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        let (old_length, now_ms) = (self.string(key)?.map(<[u8]>::len), self.now_ms);
        if let (Some(old_length), Some(keyspace)) = (old_length, self.keyspace_mut(key)) {
            let is_long = old_length >= length;
            if is_long || keyspace.lengthen_string(key, now_ms, length)? {
                let edited = keyspace.update_string(key, now_ms, edit)?;
                return Ok(edited.expect("the string was found"));
            }
        }
        // The length may be a number that a client made up.
        if length > self.options(key).engine.memory_bytes {
            return Err(Error::OUT_OF_MEMORY);
        }
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(self.string(key)?.unwrap_or_default());
        bytes.resize(length, 0);
        let result = edit(&mut bytes);
        self.set_string(key, &bytes, Expiry::Keep)?;
        Ok(result)
    }

    /// Sizes of values, the same for all keys of a server.
    pub fn limits(&self, key: &[u8]) -> &Limits {
        &self.options(key).limits
    }

    fn options(&self, key: &[u8]) -> &Options {
        &self.store.shard(self.store.shard_of(key)).options().keyspace
    }

    /// Reads a value where it lies; none: no such key.
    ///
    /// # Errors
    /// The value has another type.
    pub fn read<T: Type>(&self, key: &[u8]) -> Result<Option<T::Ref<'_>>, Error> {
        Ok(self.look(key, |keyspace, now_ms| keyspace.read::<T>(key, now_ms))?)
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
        Ok(self.grow(key, |keyspace, now_ms| keyspace.change(key, now_ms, change))?)
    }

    /// Removes elements of a value, which is empty if there is none; see [`Keyspace::shrink`].
    ///
    /// # Errors
    /// See [`Database::change`].
    pub fn shrink<T: Type, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        let shard = self.store.shard_of(key);
        let here = self.store.shard(shard);
        if here.database(self.number).is_none() {
            let mut value = T::from_form(Form::Packed(vec![]));
            return Ok(change(&mut value, &here.options().keyspace.limits));
        }
        let shrink = |keyspace: &mut Keyspace, now_ms| keyspace.shrink(key, now_ms, change);
        Ok(self.write_in(shard, key, shrink)?)
    }

    /// Stores a whole value in place of any value; see [`Keyspace::store`]. The caller notes the
    /// event.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn store<T: Type>(&mut self, key: &[u8], value: T) -> Result<(), Error> {
        Ok(self.grow(key, |keyspace, now_ms| keyspace.store(key, value, now_ms))?)
    }

    /// Removes a key; returns whether there was one. The caller notes the event.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.write_existing(key, |keyspace, now_ms| keyspace.remove(key, now_ms))
    }

    /// Time of expiry; see [`Keyspace::expires_ms`].
    pub fn expires_ms(&self, key: &[u8]) -> Option<Option<u64>> {
        self.look_at(key, |keyspace, now_ms| keyspace.expires_ms(key, now_ms))
    }

    /// Sets or removes the time of expiry; see [`Keyspace::set_expiry`].
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn set_expiry(&mut self, key: &[u8], expires_ms: Option<u64>) -> Result<bool, Error> {
        let set =
            |keyspace: &mut Keyspace, now_ms| Some(keyspace.set_expiry(key, expires_ms, now_ms));
        Ok(self.write_existing(key, set).transpose()?.unwrap_or(false))
    }

    /// A copy of a value, with its time of expiry; none: no such key.
    pub fn copy(&self, key: &[u8]) -> Option<Detached> {
        self.look_at(key, |keyspace, now_ms| keyspace.copy(key, now_ms))
    }

    /// Stores a value in place of any other.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn insert(&mut self, key: &[u8], value: Detached) -> Result<(), Error> {
        Ok(self.write(key, |keyspace, now_ms| keyspace.insert(key, value, now_ms))?)
    }

    /// Gives a value another key, in place of any value there. Returns whether there was one.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<bool, Error> {
        if self.store.shard_of(from) == self.store.shard_of(to) {
            return Ok(self.write(to, |keyspace, now_ms| keyspace.rename(from, to, now_ms))?);
        }
        self.transfer(from, (self.number, to))
    }

    /// Moves a value to another database, in place of any value there. Returns whether there was
    /// one.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    pub fn move_to(&mut self, key: &[u8], number: u16) -> Result<bool, Error> {
        self.transfer(key, (number, key))
    }

    fn transfer(&mut self, from: &[u8], (number, to): (u16, &[u8])) -> Result<bool, Error> {
        let (source, target) = (self.store.shard_of(from), self.store.shard_of(to));
        let places = [(source, self.number), (target, number)];
        let [keyspace, other] = self.store.two_keyspaces(places);
        let is_moved = keyspace.move_to(from, (other, to), self.now_ms)?;
        if other.take_lapsed() {
            self.other(number).note_expired(to);
        }
        Ok(is_moved)
    }

    /// A key was changed: transactions that watch it fail, clients that wait for it are looked at,
    /// and those that listen or keep a copy are told. Every command that changed something calls
    /// it, after the change, and once for each event.
    #[inline]
    pub fn changed(&mut self, key: &[u8], class: Class, event: &'static str) {
        self.touch_watchers(key);
        self.effects.note(class, event, self.number, key);
    }

    /// A key was changed, as in [`Database::changed`], but the change is no event.
    #[inline]
    pub fn touch_watchers(&mut self, key: &[u8]) {
        self.effects.changes += 1;
        self.effects.tell_made(self.number, key);
        let shard = self.store.shard_of(key);
        let place = (self.number, key);
        self.store.shard_mut(shard).follow_change(place, Cause::Command, self.effects);
    }

    /// A key was made anew by a value that belonged to another key, or to none. Other writes that
    /// make a key note it themselves.
    pub fn note_new(&mut self, key: &[u8]) {
        self.effects.note(Class::New, "new", self.number, key);
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
        self.effects.tell_made(self.number, key);
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
