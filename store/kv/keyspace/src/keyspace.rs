// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keyspace: reads and changes of typed values by key.

use std::cell::Cell;

use freeport_kv_engine::{Engine, OptionsError};
use freeport_kv_types::Limits;

use crate::access::AccessTable;
use crate::error::Error;
use crate::header::{Body, Expiry, Header, Kind, Stored};
use crate::image::ImageState;
use crate::large::LargeValues;
use crate::sampling::VictimCursor;
use crate::value::{Form, Type};

/// Options of a keyspace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The engine. Its memory is the limit for large values too.
    pub engine: freeport_kv_engine::Options,
    /// Sizes up to which values stay packed.
    pub limits: Limits,
}

/// Keys and their values.
pub struct Keyspace {
    pub(crate) engine: Engine,
    pub(crate) large: LargeValues,
    limits: Limits,
    /// Bytes above which nothing is stored, with those of large values.
    pub(crate) limit_bytes: usize,
    /// An image that is being written.
    pub(crate) image: ImageState,
    /// Values with a time of expiry.
    pub(crate) expiring: usize,
    pub(crate) expiry_cursor: u64,
    /// Since the last question, a value was replaced or removed after its time.
    lapsed: bool,
    /// Since the last question, a value was not seen because its time had passed.
    pub(crate) has_hidden: Cell<bool>,
    /// When and how often keys are used, while that is tracked.
    pub(crate) access: Option<Box<AccessTable>>,
    /// Where the search for victims of eviction continues.
    pub(crate) victims: VictimCursor,
    /// Bytes of the value that is written next.
    scratch: Vec<u8>,
}

/// Effect of a change on the memory of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    Possible,
    None,
}

impl Keyspace {
    /// An empty keyspace.
    ///
    /// # Errors
    /// See [`OptionsError`].
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        let limit_bytes = options.engine.memory_bytes;
        Ok(Self {
            engine: Engine::new(options.engine)?,
            large: LargeValues::default(),
            limits: options.limits,
            limit_bytes,
            image: ImageState::None,
            expiring: 0,
            expiry_cursor: 0,
            lapsed: false,
            has_hidden: Cell::new(false),
            access: None,
            victims: VictimCursor::default(),
            scratch: vec![],
        })
    }

    /// Sizes up to which values stay packed.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Sets the sizes up to which values stay packed. Values that are large stay so.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Lets the keyspace use an eighth more than its options say, or no longer. It keeps what it
    /// has in any case.
    pub fn set_stretched(&mut self, is_stretched: bool) {
        let memory_bytes = self.engine.options().memory_bytes;
        self.limit_bytes = memory_bytes + if is_stretched { memory_bytes / 8 } else { 0 };
    }

    /// Whether a write has replaced or removed a value whose time had passed, since the last call.
    /// The write saw no value, so its caller tells those who want to know what has expired.
    #[inline]
    pub fn take_lapsed(&mut self) -> bool {
        std::mem::take(&mut self.lapsed)
    }

    /// Number of keys, with those whose time has passed and that nothing has removed yet.
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// There are no keys.
    pub fn is_empty(&self) -> bool {
        self.engine.is_empty()
    }

    /// Number of keys with a time of expiry.
    pub fn expiring(&self) -> usize {
        self.expiring
    }

    /// Number of values in large form.
    pub fn large_values(&self) -> usize {
        self.large.len()
    }

    /// Bytes of index, blocks and large values.
    pub fn memory_bytes(&self) -> usize {
        self.engine.used_bytes() + self.large.memory_bytes() + self.access_bytes()
    }

    /// The engine below, for its statistics.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Type of a value; none: no such key.
    pub fn kind(&self, key: &[u8], now_ms: u64) -> Option<Kind> {
        self.stored(key, now_ms).map(|stored| stored.header.kind)
    }

    /// Time of expiry of a value in milliseconds since 1970: the outer option is none if there is
    /// no such key, the inner if it does not expire.
    pub fn expires_ms(&self, key: &[u8], now_ms: u64) -> Option<Option<u64>> {
        self.stored(key, now_ms).map(|stored| stored.header.expires_ms)
    }

    /// A string.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    pub fn string(&self, key: &[u8], now_ms: u64) -> Result<Option<&[u8]>, Error> {
        match self.stored(key, now_ms) {
            None => Ok(None),
            Some(Stored {
                header: Header { kind: Kind::String, .. },
                body: Body::Packed(bytes),
            }) => Ok(Some(bytes)),
            Some(_) => Err(Error::WrongType),
        }
    }

    /// Stores a string in place of any value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing has changed.
    pub fn set_string(
        &mut self,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        now_ms: u64,
    ) -> Result<(), Error> {
        let old = self.stored_or_expired(key);
        let expires_ms = match (expiry, &old) {
            (Expiry::Never, _) => None,
            (Expiry::AtMs(at), _) => Some(at),
            (Expiry::Keep, Some((header, _))) if !header.has_expired(now_ms) => header.expires_ms,
            (Expiry::Keep, _) => None,
        };
        let header = Header { kind: Kind::String, expires_ms };
        self.put(key, header, None, value)?;
        self.replaced(old, header);
        self.note_lapsed(old, now_ms);
        Ok(())
    }

    /// Stores a whole value in place of any value, without an expiry. An empty one removes the key,
    /// except for a stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing has changed.
    pub fn store<T: Type>(&mut self, key: &[u8], value: T, now_ms: u64) -> Result<(), Error> {
        if T::IS_REMOVED_WHEN_EMPTY && value.is_empty() {
            self.remove(key, now_ms);
            return Ok(());
        }
        let old = self.stored_or_expired(key);
        let header = Header { kind: T::KIND, expires_ms: None };
        self.put_form::<T>(key, header, value.into_form())?;
        self.replaced(old, header);
        self.note_lapsed(old, now_ms);
        Ok(())
    }

    /// Changes a string in place; its length stays.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    pub fn update_string<R>(
        &mut self,
        key: &[u8],
        now_ms: u64,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let Some(bytes) = self.string(key, now_ms)? else { return Ok(None) };
        let length = bytes.len();
        self.before_change(key);
        Ok(self.engine.update(key, |value| {
            // The bytes of a string end its value.
            let start = value.bytes.len() - length;
            change(&mut value.bytes[start..])
        }))
    }

    /// Appends zeros to a string, up to `length` bytes in all, if it can stay where it lies.
    /// Returns whether it was done.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    pub fn lengthen_string(
        &mut self,
        key: &[u8],
        now_ms: u64,
        length: usize,
    ) -> Result<bool, Error> {
        let Some(bytes) = self.string(key, now_ms)? else { return Ok(false) };
        let old_length = bytes.len();
        let stored_length = self.engine.get(key).map_or(0, |value| value.bytes.len());
        self.before_change(key);
        // The bytes of a string end its value.
        Ok(self.engine.lengthen(key, stored_length - old_length + length))
    }

    /// Reads a value where it lies; none: no such key.
    ///
    /// # Errors
    /// [`Error::WrongType`].
    pub fn read<T: Type>(&self, key: &[u8], now_ms: u64) -> Result<Option<T::Ref<'_>>, Error> {
        match self.stored(key, now_ms) {
            None => Ok(None),
            Some(stored) if stored.header.kind != T::KIND => Err(Error::WrongType),
            Some(stored) => Ok(Some(self.view::<T>(stored))),
        }
    }

    /// Changes a value, which is empty if there is none yet. A value that is left empty is removed,
    /// except for a stream.
    ///
    /// # Errors
    /// [`Error::WrongType`], and [`Error::OutOfMemory`] where the value is packed; nothing has
    /// changed then. A large value grows while memory is left, and is refused a change once there
    /// is none.
    pub fn change<T: Type, R>(
        &mut self,
        key: &[u8],
        now_ms: u64,
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        self.change_as(key, now_ms, Growth::Possible, change)
    }

    /// As [`Keyspace::change`], for a change that only removes elements: a full keyspace takes it.
    ///
    /// # Errors
    /// As [`Keyspace::change`]; [`Error::OutOfMemory`] only if the allocator finds no block for the
    /// smaller packed value.
    pub fn shrink<T: Type, R>(
        &mut self,
        key: &[u8],
        now_ms: u64,
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        self.change_as(key, now_ms, Growth::None, change)
    }

    fn change_as<T: Type, R>(
        &mut self,
        key: &[u8],
        now_ms: u64,
        growth: Growth,
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        let old = self.stored_or_expired(key);
        let living = old.filter(|(header, _)| !header.has_expired(now_ms));
        if living.is_some_and(|(header, _)| header.kind != T::KIND) {
            return Err(Error::WrongType);
        }
        if let Some((header, Some(number))) = living {
            if growth == Growth::Possible {
                self.check_memory(1)?;
            }
            return self.change_large(key, (header, number), change);
        }
        let living = living.map(|(header, _)| header);
        let result = self.change_packed(key, (old, living), change)?;
        self.note_lapsed(old, now_ms);
        Ok(result)
    }

    fn change_large<T: Type, R>(
        &mut self,
        key: &[u8],
        (header, number): (Header, u32),
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        self.before_change(key);
        let mut value = T::from_form(Form::Large(self.large.take::<T::Large>(number)));
        let result = change(&mut value, &self.limits);
        if T::IS_REMOVED_WHEN_EMPTY && value.is_empty() {
            self.engine.delete(key);
            self.replaced(Some((header, Some(number))), Header::PLAIN);
            return Ok(result);
        }
        match value.into_form() {
            Form::Large(large) => {
                let bytes = T::large_bytes(&large);
                self.large.restore(number, large, bytes);
            }
            Form::Packed(bytes) => {
                // No type takes its packed form again, but nothing here depends on that.
                self.put(key, header, None, &bytes)?;
                self.large.remove(number);
            }
        }
        Ok(result)
    }

    fn change_packed<T: Type, R>(
        &mut self,
        key: &[u8],
        (old, living): (Option<(Header, Option<u32>)>, Option<Header>),
        change: impl FnOnce(&mut T, &Limits) -> R,
    ) -> Result<R, Error> {
        let bytes = match (living, self.engine.get(key).map(Stored::read)) {
            (Some(_), Some(Stored { body: Body::Packed(bytes), .. })) => bytes.to_vec(),
            _ => vec![],
        };
        let is_new = living.is_none();
        let mut value = T::from_form(Form::Packed(bytes));
        let result = change(&mut value, &self.limits);
        if T::IS_REMOVED_WHEN_EMPTY && value.is_empty() {
            self.discard(key);
            return Ok(result);
        }
        let header = living.unwrap_or(Header { kind: T::KIND, expires_ms: None });
        match value.into_form() {
            // A stream that stays empty because nothing was done is not made.
            Form::Packed(bytes) if is_new && bytes.is_empty() => {
                if old.is_some() {
                    self.discard(key);
                }
                return Ok(result);
            }
            form => self.put_form::<T>(key, header, form)?,
        }
        self.replaced(old, header);
        Ok(result)
    }

    /// Removes a value; returns whether there was one.
    pub fn remove(&mut self, key: &[u8], now_ms: u64) -> bool {
        let Some(old) = self.stored_or_expired(key) else { return false };
        self.before_change(key);
        self.engine.delete(key);
        self.forget_uses(key, now_ms);
        self.replaced(Some(old), Header::PLAIN);
        self.note_lapsed(Some(old), now_ms);
        !old.0.has_expired(now_ms)
    }

    /// Sets or removes the time of expiry. Returns whether there is such a key. A time that has
    /// passed removes the value. A full keyspace takes it too, although a first time needs a few
    /// bytes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] only if the allocator finds no block; nothing has changed.
    pub fn set_expiry(
        &mut self,
        key: &[u8],
        expires_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<bool, Error> {
        let Some(stored) = self.stored(key, now_ms) else { return Ok(false) };
        let old = stored.header;
        let header = Header { expires_ms, ..old };
        if header.has_expired(now_ms) {
            self.discard(key);
            return Ok(true);
        }
        match stored.body {
            Body::Large(number) => self.put_above_limit(key, header, Some(number), &[])?,
            Body::Packed(bytes) => {
                let bytes = bytes.to_vec();
                self.put_above_limit(key, header, None, &bytes)?;
            }
        }
        self.count_expiring(Some(old), header);
        Ok(true)
    }

    /// Visits the keys of the next chain of buckets, and returns the next cursor; see
    /// [`Engine::scan`]. Values whose time has passed are left out.
    pub fn scan(&self, cursor: u64, now_ms: u64, mut visit: impl FnMut(&[u8], Kind)) -> u64 {
        self.scan_all(cursor, now_ms, |key, kind| {
            kind.into_iter().for_each(|kind| visit(key, kind))
        })
    }

    /// As [`Keyspace::scan`], with the keys whose time has passed: they have no type.
    pub fn scan_all(
        &self,
        cursor: u64,
        now_ms: u64,
        mut visit: impl FnMut(&[u8], Option<Kind>),
    ) -> u64 {
        self.engine.scan(cursor, |key, value| {
            let header = Stored::read(value).header;
            visit(key, (!header.has_expired(now_ms)).then_some(header.kind));
        })
    }

    /// Removes all values. An image that is being written is broken off; see
    /// [`Keyspace::image_some`].
    pub fn clear(&mut self) {
        self.image.break_off();
        self.engine.clear();
        self.large.clear();
        (self.expiring, self.expiry_cursor) = (0, 0);
        self.victims = VictimCursor::default();
    }

    pub(crate) fn stored(&self, key: &[u8], now_ms: u64) -> Option<Stored<'_>> {
        let stored = Stored::read(self.engine.get(key)?);
        if stored.header.has_expired(now_ms) {
            self.has_hidden.set(true);
            return None;
        }
        Some(stored)
    }

    /// Header of a value and number of a large one, also after its time.
    pub(crate) fn stored_or_expired(&self, key: &[u8]) -> Option<(Header, Option<u32>)> {
        let stored = Stored::read(self.engine.get(key)?);
        let number = match stored.body {
            Body::Large(number) => Some(number),
            Body::Packed(_) => None,
        };
        Some((stored.header, number))
    }

    /// Writes header and bytes of a value.
    pub(crate) fn put(
        &mut self,
        key: &[u8],
        header: Header,
        number: Option<u32>,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.before_change(key);
        // Large values take their memory from the same limit.
        let other_bytes = self.large.memory_bytes() + self.access_bytes();
        self.engine.set_limit_bytes(self.limit_bytes.saturating_sub(other_bytes));
        if header == Header::PLAIN {
            self.engine.put(key, bytes)?;
            return Ok(());
        }
        self.scratch.clear();
        header.write(number, &mut self.scratch);
        self.scratch.extend_from_slice(bytes);
        self.engine.put_tagged(key, &self.scratch, true)?;
        Ok(())
    }

    /// As [`Keyspace::put`], for a value that takes about the memory that is free, or becomes free
    /// at once: the limit of memory does not refuse it.
    pub(crate) fn put_above_limit(
        &mut self,
        key: &[u8],
        header: Header,
        number: Option<u32>,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let limit_bytes = std::mem::replace(&mut self.limit_bytes, usize::MAX);
        let result = self.put(key, header, number, bytes);
        self.limit_bytes = limit_bytes;
        result
    }

    /// Writes a value of either form. A large one counts against the memory of the engine.
    fn put_form<T: Type>(
        &mut self,
        key: &[u8],
        header: Header,
        form: Form<T::Large>,
    ) -> Result<(), Error> {
        let large = match form {
            Form::Packed(bytes) => return self.put(key, header, None, &bytes),
            Form::Large(large) => large,
        };
        let memory_bytes = T::large_bytes(&large);
        self.check_memory(memory_bytes)?;
        let number = self.large.insert(large, memory_bytes);
        let result = self.put(key, header, Some(number), &[]);
        if result.is_err() {
            self.large.remove(number);
        }
        result
    }

    /// Frees what belonged to the value before, and counts what changed.
    pub(crate) fn replaced(&mut self, old: Option<(Header, Option<u32>)>, new: Header) {
        if let Some((_, Some(number))) = old {
            self.large.remove(number);
        }
        self.count_expiring(old.map(|(header, _)| header), new);
    }

    /// Notes that a write took the place of a value whose time had passed.
    #[inline]
    pub(crate) fn note_lapsed(&mut self, old: Option<(Header, Option<u32>)>, now_ms: u64) {
        self.lapsed |= old.is_some_and(|(header, _)| header.has_expired(now_ms));
    }

    pub(crate) fn count_expiring(&mut self, old: Option<Header>, new: Header) {
        self.expiring += usize::from(new.expires_ms.is_some());
        self.expiring -= usize::from(old.is_some_and(|old| old.expires_ms.is_some()));
    }

    /// Removes a value of any form, also after its time.
    pub(crate) fn discard(&mut self, key: &[u8]) {
        let old = self.stored_or_expired(key);
        if old.is_some() {
            self.before_change(key);
            self.engine.delete(key);
            self.replaced(old, Header::PLAIN);
        }
    }

    /// Large values count against the memory of the engine.
    pub(crate) fn check_memory(&self, more_bytes: usize) -> Result<(), Error> {
        match self.memory_bytes() + more_bytes > self.limit_bytes {
            true => Err(Error::OutOfMemory),
            false => Ok(()),
        }
    }
}
