// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Storing a value under a condition: what `set`, `add`, `replace`, `append`, `prepend`, `cas` and
//! `ms` have in common.

use freeport_kv_engine::OutOfMemory;
use freeport_kv_protocol::memcached::StoreMode;
use freeport_kv_protocol::memcached::meta_reply::Status;

use crate::item::{self, BINARY_KEY, HAS_WINNER, Header, STALE, counted_bytes};
use crate::items::Items;
use crate::now::Now;

/// A value to store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewItem<'a> {
    /// Condition and kind of the change.
    pub mode: StoreMode,
    /// The key.
    pub key: &'a [u8],
    /// The value, or what is added to one.
    pub value: &'a [u8],
    /// Number that the client keeps with the value.
    pub client_flags: u32,
    /// When the item expires, if it does.
    pub time_s: Option<u32>,
    /// The request has the key as base64.
    pub is_key_binary: bool,
    /// CAS number that the present item must have, or 0.
    pub cas: u64,
    /// A value that is older than the present one is stored as stale (flag `I`).
    pub may_be_stale: bool,
}

impl Items {
    /// Stores a value. Returns the CAS number of the stored item, or 0.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn store(
        &mut self,
        new: &NewItem<'_>,
        now: Now,
    ) -> Result<(Status, u64), OutOfMemory> {
        self.counters.cmd_set += 1;
        if new.mode == StoreMode::Set {
            let header = self.new_header(new.time_s, new.client_flags, new.is_key_binary, now);
            return self.store_as(new, header, [new.value, &[]], now);
        }
        let old = self.find(new.key, now);
        match (new.mode, old) {
            (StoreMode::Append | StoreMode::Prepend, Some((old, old_bytes))) => {
                self.extend(new, old, old_bytes, now)
            }
            (StoreMode::CompareAndSwap, Some((old, _))) => self.swap(new, &old, now),
            (StoreMode::CompareAndSwap, None) => {
                self.counters.cas_misses += 1;
                Ok((Status::NotFound, 0))
            }
            (StoreMode::Add, Some(_)) => {
                // As in the original, an attempt to add is a use.
                let _ = self.engine.update(new.key, |stored| {
                    item::note_use(stored.bytes, now, 0);
                });
                Ok((Status::NotStored, 0))
            }
            (StoreMode::Append | StoreMode::Prepend | StoreMode::Replace, None) => {
                Ok((Status::NotStored, 0))
            }
            (StoreMode::Set | StoreMode::Replace, _) | (StoreMode::Add, None) => {
                let header = self.new_header(new.time_s, new.client_flags, new.is_key_binary, now);
                self.store_as(new, header, [new.value, &[]], now)
            }
        }
    }

    fn store_as(
        &mut self,
        new: &NewItem<'_>,
        header: Header,
        parts: [&[u8]; 2],
        now: Now,
    ) -> Result<(Status, u64), OutOfMemory> {
        let stored = self.put(new.key, &header, parts, now);
        if stored.is_err() {
            self.counters.store_no_memory += 1;
            return Err(OutOfMemory);
        }
        self.counters.total_items += 1;
        Ok((Status::Done, header.cas))
    }

    /// Stores a value if the present item has the given CAS number.
    fn swap(
        &mut self,
        new: &NewItem<'_>,
        old: &Header,
        now: Now,
    ) -> Result<(Status, u64), OutOfMemory> {
        let is_same = new.cas == old.cas;
        let is_stored = is_same || new.may_be_stale && new.cas < old.cas;
        if !is_stored {
            self.counters.cas_badval += 1;
            return Ok((Status::Exists, 0));
        }
        self.counters.cas_hits += 1;
        let mut header = self.new_header(new.time_s, new.client_flags, new.is_key_binary, now);
        if !is_same {
            header.expiry = old.expiry;
            header.marks |= STALE | old.marks & HAS_WINNER;
        }
        self.store_as(new, header, [new.value, &[]], now)
    }

    /// Adds bytes to a value. Client flags and expiry stay; marks do not.
    fn extend(
        &mut self,
        new: &NewItem<'_>,
        old: Header,
        old_bytes: usize,
        now: Now,
    ) -> Result<(Status, u64), OutOfMemory> {
        if new.cas != 0 && new.cas != old.cas {
            return Ok((Status::Exists, 0));
        }
        let bytes = counted_bytes(new.key.len(), old.client_flags, old_bytes + new.value.len());
        if bytes > self.options.limits.item_bytes_max {
            return Ok((Status::NotStored, 0));
        }
        let marks = if new.is_key_binary { BINARY_KEY } else { 0 };
        let header = Header { marks, used_s: now.0, cas: self.next_cas(), ..old };
        let value = self.value(new.key).to_vec();
        let parts = match new.mode {
            StoreMode::Append => [&value[..], new.value],
            _ => [new.value, &value[..]],
        };
        self.store_as(new, header, parts, now)
    }
}
