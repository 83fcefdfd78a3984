// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carrying out one request. Meta requests are in `meta`, commands for operators in `operator`.

use freeport_kv_engine::OutOfMemory;
use freeport_kv_protocol::memcached::meta_reply::Status;
use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{
    Change, Error, Expiry, Get, KEY_BYTES_MAX, Refusal, Request, Store, StoreMode,
};

use crate::batch::append_value;
use crate::dump::Dump;
use crate::item::{self, FETCHED};
use crate::items::Items;
use crate::now::Now;
use crate::number::Unchanged;
use crate::store::NewItem;

/// The server's part after a request. The reply is complete, unless a variant says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Nothing.
    Continue,
    /// Close the connection, after all replies are sent.
    Close,
    /// Shut down.
    Shutdown {
        /// Connections are served to their end.
        is_graceful: bool,
    },
    /// Send all items, by [`Items::dump`], and then [`Line::End`].
    Dump(Dump),
    /// Reply to `stats conns`: only the server knows its connections.
    ListConnections,
}

impl Items {
    /// Carries out a request, and appends its reply.
    pub fn execute(&mut self, request: &Request<'_>, now: Now, output: &mut Vec<u8>) -> Control {
        self.advance(now);
        let (line, is_quiet) = match request {
            Request::Get(get) => {
                self.get_all(get, now, output);
                return Control::Continue;
            }
            Request::Store(store) => (self.store_classic(store, now), store.is_quiet),
            Request::Change(change) => return self.change_classic(change, now, output),
            Request::Delete { key, is_quiet } => (self.delete(key, now), *is_quiet),
            Request::Touch { key, expiry, is_quiet } => {
                (self.touch_classic(key, *expiry, now), *is_quiet)
            }
            Request::FlushAll { time, is_quiet } => (self.flush(*time, now), *is_quiet),
            Request::Version => {
                reply::version(output, &self.options.version);
                return Control::Continue;
            }
            Request::Verbosity { is_quiet, .. } => (Line::Ok, *is_quiet),
            Request::MemoryLimit { mebibytes, is_quiet } => {
                return self.limit_memory(*mebibytes, *is_quiet, output);
            }
            Request::Operator { command, words, is_quiet } => {
                return self.operate(*command, *words, *is_quiet, now, output);
            }
            Request::Quit => return Control::Close,
            _ => {
                self.execute_meta(request, now, output);
                return Control::Continue;
            }
        };
        if !is_quiet {
            reply::line(output, line);
        }
        Control::Continue
    }

    /// Replies to a request that the reader refused.
    pub fn refuse(&mut self, refusal: &Refusal<'_>, output: &mut Vec<u8>) {
        if let Some(key) = refusal.removes {
            self.engine.delete(key.bytes(&mut [0; KEY_BYTES_MAX]));
        }
        if refusal.error == Error::TooLarge {
            self.counters.store_too_large += 1;
        }
        output.extend_from_slice(refusal.reply());
    }

    fn get_all(&mut self, get: &Get<'_>, now: Now, output: &mut Vec<u8>) {
        for key in get.keys {
            self.get_one(key, get, now, output);
        }
        reply::line(output, Line::End);
    }

    /// Appends one value of a retrieval.
    pub(crate) fn get_one(&mut self, key: &[u8], get: &Get<'_>, now: Now, output: &mut Vec<u8>) {
        let is_found = match get.touch {
            // An item that cannot have the expiry is not shown.
            Some(expiry) => self.touch_and_count(key, expiry, now).unwrap_or(false),
            None => {
                let is_found = self.find(key, now).is_some();
                self.counters.cmd_get += 1;
                let counters = &mut self.counters;
                *(if is_found { &mut counters.get_hits } else { &mut counters.get_misses }) += 1;
                is_found
            }
        };
        if is_found {
            let _ = self.engine.update(key, |stored| {
                append_value(output, key, stored.bytes, get.returns_cas);
                item::note_use(stored.bytes, now, FETCHED);
            });
        }
    }

    fn touch_and_count(
        &mut self,
        key: &[u8],
        expiry: Expiry,
        now: Now,
    ) -> Result<bool, OutOfMemory> {
        let is_found = self.touch(key, now.time_of(expiry), now, FETCHED)?;
        self.counters.cmd_touch += 1;
        self.counters.touch_hits += u64::from(is_found);
        self.counters.touch_misses += u64::from(!is_found);
        Ok(is_found)
    }

    fn touch_classic(&mut self, key: &[u8], expiry: Expiry, now: Now) -> Line {
        match self.touch_and_count(key, expiry, now) {
            Ok(true) => Line::Touched,
            Ok(false) => Line::NotFound,
            Err(_) => Line::OutOfMemory,
        }
    }

    pub(crate) fn store_classic(&mut self, store: &Store<'_>, now: Now) -> Line {
        let new = NewItem {
            mode: store.mode,
            key: store.key,
            value: store.value,
            client_flags: store.client_flags,
            time_s: now.time_of(store.expiry),
            is_key_binary: false,
            cas: store.cas,
            may_be_stale: false,
        };
        match self.store(&new, now) {
            Ok((Status::Done, _)) => Line::Stored,
            Ok((Status::NotStored, _)) => Line::NotStored,
            Ok((Status::Exists, _)) => Line::Exists,
            Ok(_) => Line::NotFound,
            Err(_) => {
                // A value that could not be stored must not leave an older one behind.
                if store.mode == StoreMode::Set {
                    self.engine.delete(store.key);
                }
                Line::OutOfMemoryStoring
            }
        }
    }

    fn change_classic(&mut self, change: &Change<'_>, now: Now, output: &mut Vec<u8>) -> Control {
        let changed = self.change(change.key, change.operation, change.delta, 0, now);
        match changed {
            _ if change.is_quiet => {}
            Ok((number, _)) => reply::number(output, number),
            Err(Unchanged::NotFound) => reply::line(output, Line::NotFound),
            Err(Unchanged::Exists) => reply::line(output, Line::Exists),
            Err(Unchanged::NonNumeric) => reply::line(output, Line::NonNumeric),
            Err(Unchanged::NoMemory) => reply::line(output, Line::OutOfMemory),
        }
        Control::Continue
    }

    fn delete(&mut self, key: &[u8], now: Now) -> Line {
        if self.find(key, now).is_none() {
            self.counters.delete_misses += 1;
            return Line::NotFound;
        }
        self.engine.delete(key);
        self.counters.delete_hits += 1;
        Line::Deleted
    }

    fn flush(&mut self, time: Expiry, now: Now) -> Line {
        if !self.options.is_flush_allowed {
            return Line::FlushNotAllowed;
        }
        self.counters.cmd_flush += 1;
        match now.time_of(time) {
            time if now.has_reached(time) => {
                self.clear();
                // The original uses a number to tell older items from newer ones.
                self.next_cas();
            }
            time => self.flush_s = time,
        }
        Line::Ok
    }
}
