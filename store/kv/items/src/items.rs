// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The items of one worker: finding, storing and removing them. Requests are carried out in
//! `execute` and `meta`.

use freeport_kv_engine::{Engine, OptionsError, OutOfMemory};

use crate::batch::Spare;
use crate::counters::Counters;
use crate::item::{self, BINARY_KEY, FETCHED, Header};
use crate::now::Now;
use crate::options::Options;
use crate::server::Server;
use crate::victim::Victim;

/// The items of one worker, in the memory of an engine.
pub struct Items {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    /// Bytes above which items are evicted; at most the memory of the engine.
    pub(crate) limit_bytes: usize,
    /// When all items are removed (`flush_all` with a delay).
    pub(crate) flush_s: Option<u32>,
    /// Some item may have an expiry.
    pub(crate) may_expire: bool,
    pub(crate) expiry_cursor: u64,
    pub(crate) last_cas: u64,
    pub(crate) random: fastrand::Rng,
    pub(crate) victim: Victim,
    pub(crate) spare: Spare,
    pub(crate) server: Server,
    /// The item that is being written.
    pub(crate) scratch: Vec<u8>,
}

/// A large item that was written does not keep its memory.
const SCRATCH_BYTES: usize = 64 << 10;

impl Items {
    /// No items yet.
    ///
    /// # Errors
    /// The memory is too small, too large, or refused by the system.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        let engine = Engine::new(freeport_kv_engine::Options {
            memory_bytes: options.memory_bytes,
            seed: options.seed,
            ..Default::default()
        })?;
        Ok(Self {
            engine,
            counters: Counters::default(),
            limit_bytes: options.memory_bytes,
            flush_s: None,
            may_expire: false,
            expiry_cursor: 0,
            last_cas: options.cas_before,
            random: fastrand::Rng::with_seed(options.seed),
            victim: Victim::default(),
            spare: Spare::default(),
            server: Server::default(),
            scratch: vec![],
            options,
        })
    }

    /// Options that the items were made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of items, among them some that have expired.
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// There are no items.
    pub fn is_empty(&self) -> bool {
        self.engine.is_empty()
    }

    /// Bytes of memory that items and their index use.
    pub fn used_bytes(&self) -> usize {
        self.engine.used_bytes()
    }

    /// Bytes of memory that items and their index may use (`cache_memlimit`).
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    pub(crate) fn next_cas(&mut self) -> u64 {
        self.last_cas = self.last_cas.wrapping_add(1);
        self.last_cas
    }

    /// Header and number of value bytes of an item that has not expired.
    pub(crate) fn find(&mut self, key: &[u8], now: Now) -> Option<(Header, usize)> {
        let stored = self.engine.get(key)?.bytes;
        if item::has_expired(stored, now) {
            self.remove_expired(key, true);
            return None;
        }
        let (header, value) = Header::read(stored);
        Some((header, value.len()))
    }

    /// The value of an item that was found.
    pub(crate) fn value(&self, key: &[u8]) -> &[u8] {
        self.engine.get(key).map_or(&[], |stored| Header::read(stored.bytes).1)
    }

    /// Removes an item that has expired. `is_asked_for`: a request found it.
    #[cold]
    pub(crate) fn remove_expired(&mut self, key: &[u8], is_asked_for: bool) {
        let Some(stored) = self.engine.get(key) else { return };
        let was_fetched = Header::read(stored.bytes).0.is(FETCHED);
        self.engine.delete(key);
        self.counters.reclaimed += 1;
        self.counters.expired_unfetched += u64::from(!was_fetched);
        self.counters.get_expired += u64::from(is_asked_for);
    }

    /// Stores an item whose value is made of parts. Others make room if need be.
    ///
    /// # Errors
    /// There is no memory, and nothing may be evicted, or not enough. The item under the key may
    /// have been evicted.
    pub(crate) fn put(
        &mut self,
        key: &[u8],
        header: &Header,
        parts: [&[u8]; 2],
        now: Now,
    ) -> Result<(), OutOfMemory> {
        let mut stored = std::mem::take(&mut self.scratch);
        stored.clear();
        header.write(&mut stored);
        parts.iter().for_each(|part| stored.extend_from_slice(part));
        let result = self.put_stored(key, &stored, now);
        stored.shrink_to(SCRATCH_BYTES);
        self.scratch = stored;
        self.may_expire |= header.expiry.is_some();
        result
    }

    fn put_stored(&mut self, key: &[u8], stored: &[u8], now: Now) -> Result<(), OutOfMemory> {
        let bytes = key.len() + stored.len();
        // The engine knows best whether its own memory suffices.
        if self.limit_bytes < self.options.memory_bytes {
            self.shrink(bytes, now)?;
        }
        match self.engine.put(key, stored) {
            Ok(_) => Ok(()),
            Err(OutOfMemory) => self.put_and_evict(key, stored, now),
        }
    }

    /// Changes the header of an item, whose value stays.
    ///
    /// # Errors
    /// As for [`Items::put`]. The item is as before, or was evicted.
    pub(crate) fn put_header(
        &mut self,
        key: &[u8],
        header: &Header,
        now: Now,
    ) -> Result<(), OutOfMemory> {
        let value = self.value(key).to_vec();
        self.put(key, header, [&value, &[]], now)
    }

    /// Gives an item another expiry, and notes its use. False: there is no such item.
    ///
    /// # Errors
    /// As for [`Items::put_header`].
    pub(crate) fn touch(
        &mut self,
        key: &[u8],
        time_s: Option<u32>,
        now: Now,
        marks: u8,
    ) -> Result<bool, OutOfMemory> {
        let Some((mut header, _)) = self.find(key, now) else { return Ok(false) };
        let is_changed = self.engine.update(key, |stored| {
            item::note_use(stored.bytes, now, marks);
            item::set_expiry(stored.bytes, time_s)
        });
        if is_changed == Some(false) {
            (header.expiry, header.used_s) = (time_s, now.0);
            header.marks |= marks;
            self.put_header(key, &header, now)?;
        }
        self.may_expire |= time_s.is_some();
        Ok(true)
    }

    /// The header of a new item.
    pub(crate) fn new_header(
        &mut self,
        time_s: Option<u32>,
        client_flags: u32,
        is_key_binary: bool,
        now: Now,
    ) -> Header {
        Header {
            marks: if is_key_binary { BINARY_KEY } else { 0 },
            used_s: now.0,
            expiry: time_s,
            client_flags,
            cas: self.next_cas(),
        }
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        self.engine.clear();
        self.flush_s = None;
        self.may_expire = false;
    }

    /// Removes all items if their time has come (`flush_all` with a delay).
    #[inline]
    pub(crate) fn advance(&mut self, now: Now) {
        if now.has_reached(self.flush_s) {
            self.clear();
        }
    }
}
