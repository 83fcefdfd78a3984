// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carrying out meta requests.

use freeport_kv_engine::OutOfMemory;
use freeport_kv_protocol::memcached::meta_reply::{self, Item, Status};
use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{Arithmetic, KEY_BYTES_MAX, Key, Meta, Request, StoreMode};

use crate::item::{self, BINARY_KEY, CLASS, FETCHED, HAS_WINNER, Header, STALE, counted_bytes};
use crate::items::Items;
use crate::now::Now;
use crate::number::Unchanged;
use crate::store::NewItem;

impl Items {
    pub(crate) fn execute_meta(&mut self, request: &Request<'_>, now: Now, output: &mut Vec<u8>) {
        self.counters.cmd_meta += 1;
        match request {
            Request::MetaGet(meta) => self.meta_get(meta, now, output),
            Request::MetaSet { meta, mode, client_flags, value } => {
                self.meta_set(meta, (*mode, *client_flags), value, now, output);
            }
            Request::MetaDelete(meta) => self.meta_delete(meta, now, output),
            Request::MetaArithmetic { meta, operation, delta, initial } => {
                self.meta_arithmetic(meta, (*operation, *delta, *initial), now, output);
            }
            Request::MetaDebug(key) => self.meta_debug(key, now, output),
            _ => meta_reply::noop(output),
        }
    }

    fn meta_get(&mut self, meta: &Meta<'_>, now: Now, output: &mut Vec<u8>) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        // Most requests change no expiry, and need only one search.
        let changed = match (meta.expiry, meta.vivify) {
            (None, None) => Ok(None),
            _ => self.prepare(key, meta, now),
        };
        let Ok(changed) = changed else { return reply::line(output, Line::OutOfMemory) };
        if !self.hit(key, meta, changed, now, output) {
            self.counters.cmd_get += 1;
            self.counters.get_misses += 1;
            if !meta.is_quiet() {
                meta_reply::status(output, meta, Status::Miss);
            }
        }
    }

    /// Changes the expiry of an item, or makes it. None: it is not there, or stays as it is.
    fn prepare(
        &mut self,
        key: &[u8],
        meta: &Meta<'_>,
        now: Now,
    ) -> Result<Option<Changed>, OutOfMemory> {
        let old = self.find(key, now);
        match (old, meta.expiry, meta.vivify) {
            (Some((header, _)), Some(expiry), _) => {
                self.set_expiry(key, now.time_of(expiry), now)?;
                Ok(Some(Changed { expired_s: header.expires_s(), is_made: false }))
            }
            (None, _, Some(expiry)) => {
                let time_s = now.time_of(expiry);
                let header = self.new_header(time_s, 0, meta.key.is_base64, now);
                self.put(key, &header, [&[], &[]], now)?;
                self.counters.total_items += 1;
                Ok(Some(Changed { expired_s: None, is_made: true }))
            }
            _ => Ok(None),
        }
    }

    /// Changes the expiry of an item that has not expired, and nothing else.
    fn set_expiry(
        &mut self,
        key: &[u8],
        time_s: Option<u32>,
        now: Now,
    ) -> Result<bool, OutOfMemory> {
        let Some((mut header, _)) = self.find(key, now) else { return Ok(false) };
        self.may_expire |= time_s.is_some();
        let is_set = self.engine.update(key, |stored| item::set_expiry(stored.bytes, time_s));
        if is_set == Some(false) {
            header.expiry = time_s;
            self.put_header(key, &header, now)?;
        }
        Ok(true)
    }

    /// Replies to `mg` of an existing item. False: there is none, or it has expired, unless the
    /// request has just made it so.
    fn hit(
        &mut self,
        key: &[u8],
        meta: &Meta<'_>,
        changed: Option<Changed>,
        now: Now,
        output: &mut Vec<u8>,
    ) -> bool {
        let is_hit = self.engine.update(key, |stored| {
            let is_there = changed.is_some() || !item::has_expired(stored.bytes, now);
            if is_there {
                append_hit(key, stored.bytes, meta, changed, now, output);
            }
            is_there
        });
        match is_hit {
            Some(true) if meta.expiry.is_some() => {
                self.counters.cmd_touch += 1;
                self.counters.touch_hits += 1;
            }
            Some(true) => {
                self.counters.cmd_get += 1;
                self.counters.get_hits += 1;
            }
            Some(false) => self.remove_expired(key, true),
            None => {}
        }
        is_hit == Some(true)
    }

    fn meta_set(
        &mut self,
        meta: &Meta<'_>,
        (mode, client_flags): (StoreMode, u32),
        value: &[u8],
        now: Now,
        output: &mut Vec<u8>,
    ) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        let new = NewItem {
            mode,
            key,
            value,
            client_flags,
            time_s: meta.expiry.and_then(|expiry| now.time_of(expiry)),
            is_key_binary: meta.key.is_base64,
            cas: meta.cas().unwrap_or(0),
            may_be_stale: meta.has(b'I'),
        };
        match self.store(&new, now) {
            Ok((status, cas)) if status != Status::Done || !meta.is_quiet() => {
                meta_reply::stored(output, meta, status, cas);
            }
            Ok(_) => {}
            Err(_) => {
                // A value that could not be stored must not leave an older one behind.
                self.engine.delete(key);
                reply::line(output, Line::OutOfMemoryStoring);
            }
        }
    }

    fn meta_delete(&mut self, meta: &Meta<'_>, now: Now, output: &mut Vec<u8>) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        let status = match self.find(key, now) {
            None => Status::NotFound,
            Some((header, _)) if meta.cas().is_some_and(|cas| cas != header.cas) => Status::Exists,
            Some((mut header, _)) if meta.has(b'I') => {
                if let Some(expiry) = meta.expiry {
                    header.expiry = now.time_of(expiry);
                }
                header.marks = header.marks & !HAS_WINNER | STALE;
                header.cas = self.next_cas();
                if self.put_header(key, &header, now).is_err() {
                    return reply::line(output, Line::OutOfMemory);
                }
                Status::Done
            }
            Some(_) => {
                self.engine.delete(key);
                self.counters.delete_hits += 1;
                Status::Done
            }
        };
        self.counters.delete_misses += u64::from(status != Status::Done);
        if status != Status::Done || !meta.is_quiet() {
            meta_reply::status(output, meta, status);
        }
    }

    fn meta_arithmetic(
        &mut self,
        meta: &Meta<'_>,
        (operation, delta, initial): (Arithmetic, u64, u64),
        now: Now,
        output: &mut Vec<u8>,
    ) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = meta.key.bytes(scratch);
        // A number that is made counts as no miss.
        let is_made = meta.vivify.is_some() && self.find(key, now).is_none();
        let changed = match meta.vivify {
            Some(expiry) if is_made => {
                let header = self.new_header(now.time_of(expiry), 0, meta.key.is_base64, now);
                let made = self.put(key, &header, [initial.to_string().as_bytes(), &[]], now);
                self.counters.total_items += u64::from(made.is_ok());
                made.map(|()| (initial, header)).map_err(|_| Unchanged::NoMemory)
            }
            _ => self.change(key, operation, delta, meta.cas().unwrap_or(0), now),
        };
        // The original forgets a new expiry if the number becomes longer.
        let changed = match (changed, meta.expiry) {
            (Ok((number, header)), Some(expiry)) if !is_made => {
                let is_set = self.set_expiry(key, now.time_of(expiry), now);
                is_set.map(|_| (number, header)).map_err(|_| Unchanged::NoMemory)
            }
            (changed, _) => changed,
        };
        match changed {
            Ok(_) if meta.is_quiet() && !is_made => {}
            Ok((number, header)) => {
                let time_s = match is_made {
                    true => header.expires_s(),
                    false => Changed { expired_s: header.expires_s(), is_made }
                        .expiry_at(b't', meta, now),
                };
                let ttl_s = time_s.map(|time| time.saturating_sub(now.0));
                meta_reply::changed(output, meta, number, header.cas, ttl_s);
            }
            Err(Unchanged::NotFound) => meta_reply::status(output, meta, Status::NotFound),
            Err(Unchanged::Exists) => meta_reply::status(output, meta, Status::Exists),
            Err(Unchanged::NonNumeric) => reply::line(output, Line::NonNumeric),
            Err(Unchanged::NoMemory) => reply::line(output, Line::OutOfMemory),
        }
    }

    fn meta_debug(&mut self, key: &Key<'_>, now: Now, output: &mut Vec<u8>) {
        let scratch = &mut [0; KEY_BYTES_MAX];
        let key = key.bytes(scratch);
        let Some((header, bytes)) = self.find(key, now) else {
            return meta_reply::debug_miss(output);
        };
        let item = shown(key, &header, &[], now);
        let bytes = counted_bytes(key.len(), header.client_flags, bytes);
        meta_reply::debug(output, &item, CLASS, bytes as u64);
    }
}

/// The change that a request made before it replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    /// When the item would have expired before.
    expired_s: Option<u32>,
    /// The item is new.
    is_made: bool,
}

impl Changed {
    /// The expiry that a flag sees: in the original, flags take effect one after the other.
    fn expiry_at(&self, flag: u8, meta: &Meta<'_>, now: Now) -> Option<u32> {
        let mut time_s = self.expired_s;
        for word in meta.flags.take_while(|word| word[0] != flag) {
            let expiry = match word[0] {
                b'T' => meta.expiry,
                b'N' if self.is_made => meta.vivify,
                _ => None,
            };
            time_s = expiry.map_or(time_s, |expiry| now.time_of(expiry));
        }
        time_s
    }
}

/// Appends the reply to `mg` of a stored item, and notes its use.
pub(crate) fn append_hit(
    key: &[u8],
    stored: &mut [u8],
    meta: &Meta<'_>,
    changed: Option<Changed>,
    now: Now,
    output: &mut Vec<u8>,
) {
    let (header, value) = Header::read(stored);
    let is_made = changed.is_some_and(|changed| changed.is_made);
    let expiry_at = |flag| match changed {
        Some(changed) => changed.expiry_at(flag, meta, now),
        None => header.expires_s(),
    };
    let recache_s = meta.recache.and_then(|expiry| now.time_of(expiry));
    let is_due = match (recache_s, expiry_at(b'R')) {
        (Some(limit), Some(expires)) => expires < limit,
        _ => false,
    };
    let is_won = is_made || !header.is(HAS_WINNER) && (is_due || header.is(STALE));
    let ttl_s = expiry_at(b't').map(|time| time.saturating_sub(now.0));
    let item = Item { is_won, ttl_s, ..shown(key, &header, value, now) };
    meta_reply::hit(output, meta, &item);
    stored[0] |= if is_won { HAS_WINNER } else { 0 };
    if !meta.has(b'u') {
        item::note_use(stored, now, FETCHED);
    }
}

/// Facts about an item.
fn shown<'a>(key: &'a [u8], header: &Header, value: &'a [u8], now: Now) -> Item<'a> {
    Item {
        key,
        is_key_binary: header.is(BINARY_KEY),
        value,
        client_flags: header.client_flags,
        cas: header.cas,
        ttl_s: header.ttl_s(now),
        idle_s: header.idle_s(now),
        is_fetched: header.is(FETCHED),
        is_stale: header.is(STALE),
        has_winner: header.is(HAS_WINNER),
        is_won: false,
    }
}
