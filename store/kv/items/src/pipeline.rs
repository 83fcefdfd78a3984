// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carrying out batches: the engine fetches the memory of later requests while it serves earlier
//! ones. A batch has only one kind of request, in the order of the pipeline.

use freeport_kv_engine::{self as engine, OutOfMemory, Replies, Stored, Value, ValueMut};
use freeport_kv_protocol::memcached::meta_reply::{self, Status};
use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{Request, StoreMode};

use crate::batch::{Asked, BATCH, Gets, Sets, Storing, append_value, emptied};
use crate::item::{self, FETCHED, HEADER_BYTES_MAX};
use crate::items::Items;
use crate::meta::append_hit;
use crate::now::Now;

/// Bytes of a value at most that is stored by a batch: it is copied twice.
const VALUE_BYTES_MAX: usize = 2_048;
/// Memory that has to be free for a batch, with room for the growth of the index.
const SLACK_BYTES: usize = 2 * BATCH * (VALUE_BYTES_MAX + HEADER_BYTES_MAX + 256);

/// Replies to retrievals.
struct Values<'b> {
    requests: &'b [engine::Request<'b>],
    asked: &'b [Asked<'b>],
    output: &'b mut Vec<u8>,
    limit: usize,
    now: Now,
    answered: usize,
    hits: u64,
    /// Requests `mg`.
    meta: u64,
    expired: Vec<usize>,
}

impl Replies for Values<'_> {
    #[inline(always)]
    fn update(&mut self, number: usize, value: Option<ValueMut<'_>>) {
        // Once a key is left out, so are all after it.
        if number != self.answered || self.output.len() >= self.limit {
            return;
        }
        self.answered += 1;
        let key = self.requests[number].key();
        let stored = match value {
            Some(stored) if item::has_expired(stored.bytes, self.now) => {
                self.expired.push(number);
                None
            }
            stored => stored,
        };
        self.hits += u64::from(stored.is_some());
        match &self.asked[number] {
            Asked::Value { returns_cas, is_last, .. } => {
                if let Some(stored) = stored {
                    append_value(self.output, key, stored.bytes, *returns_cas);
                    item::note_use(stored.bytes, self.now, FETCHED);
                }
                if *is_last {
                    reply::line(self.output, Line::End);
                }
            }
            Asked::Facts { meta, .. } => {
                self.meta += 1;
                match stored {
                    Some(stored) => {
                        append_hit(key, stored.bytes, meta, None, self.now, self.output);
                    }
                    None if meta.is_quiet() => {}
                    None => meta_reply::status(self.output, meta, Status::Miss),
                }
            }
        }
    }

    fn get(&mut self, _: usize, _: Option<Value<'_>>) {}

    fn put(&mut self, _: usize, _: Result<Stored, OutOfMemory>) {}

    fn delete(&mut self, _: usize, _: bool) {}
}

/// Replies to values, up to the first one for which there is no memory.
struct Stores<'b> {
    stores: &'b [Storing<'b>],
    output: &'b mut Vec<u8>,
    stored: usize,
    /// Requests `ms`.
    meta: u64,
}

impl Replies for Stores<'_> {
    #[inline(always)]
    fn put(&mut self, number: usize, stored: Result<Stored, OutOfMemory>) {
        if number != self.stored || stored.is_err() {
            return;
        }
        self.stored += 1;
        let storing = &self.stores[number];
        match &storing.request {
            Request::MetaSet { meta, .. } => {
                self.meta += 1;
                if !meta.is_quiet() {
                    meta_reply::stored(self.output, meta, Status::Done, storing.cas);
                }
            }
            Request::Store(store) if store.is_quiet => {}
            _ => reply::line(self.output, Line::Stored),
        }
    }

    fn get(&mut self, _: usize, _: Option<Value<'_>>) {}

    fn delete(&mut self, _: usize, _: bool) {}

    fn update(&mut self, _: usize, _: Option<ValueMut<'_>>) {}
}

impl Items {
    /// Replies to the keys of a batch, until the output has `limit` bytes. Returns the number of
    /// keys that were replied to.
    pub(crate) fn run_gets(
        &mut self,
        batch: &Gets<'_>,
        now: Now,
        output: &mut Vec<u8>,
        limit: usize,
    ) -> usize {
        let mut values = Values {
            requests: &batch.requests,
            asked: &batch.asked,
            output,
            limit,
            now,
            answered: 0,
            hits: 0,
            meta: 0,
            expired: vec![],
        };
        self.engine.run(&batch.requests, &mut values);
        let Values { answered, hits, meta, expired, .. } = values;
        self.counters.cmd_meta += meta;
        self.counters.cmd_get += answered as u64;
        self.counters.get_hits += hits;
        self.counters.get_misses += answered as u64 - hits;
        for number in expired {
            self.remove_expired(batch.key(number), true);
        }
        answered
    }

    /// Adds a request to a batch, if it stores a small value without a condition, and memory is not
    /// short, so that nothing has to be evicted amid the batch. False: it is none.
    pub(crate) fn push_set<'a>(
        &mut self,
        batch: &mut Sets<'a>,
        request: &Request<'a>,
        now: Now,
    ) -> bool {
        let (mode, key, value, client_flags, expiry) = match request {
            Request::Store(store) => {
                (store.mode, store.key, store.value, store.client_flags, Some(store.expiry))
            }
            Request::MetaSet { meta, mode, client_flags, value } if !meta.key.is_base64 => {
                (*mode, meta.key.written, *value, *client_flags, meta.expiry)
            }
            _ => return false,
        };
        let is_short = self.engine.used_bytes() + SLACK_BYTES > self.limit_bytes;
        if mode != StoreMode::Set || value.len() > VALUE_BYTES_MAX || batch.is_full() || is_short {
            return false;
        }
        let begin = batch.bytes.len();
        let time_s = expiry.and_then(|expiry| now.time_of(expiry));
        let header = self.new_header(time_s, client_flags, false, now);
        header.write(&mut batch.bytes);
        batch.bytes.extend_from_slice(value);
        self.may_expire |= header.expiry.is_some();
        let place = begin..batch.bytes.len();
        batch.stores.push(Storing { request: *request, key, cas: header.cas, place });
        true
    }

    /// Stores the values of a batch, and replies.
    pub(crate) fn run_sets(&mut self, batch: &Sets<'_>, now: Now, output: &mut Vec<u8>) {
        let mut puts: Vec<engine::Request<'_>> = std::mem::take(&mut self.spare.requests);
        let put = |storing: &Storing<'_>| &batch.bytes[storing.place.clone()];
        let stores = batch.stores.iter();
        puts.extend(stores.map(|storing| engine::Request::Put(storing.key, put(storing))));
        let mut replies = Stores { stores: &batch.stores, output, stored: 0, meta: 0 };
        self.engine.run(&puts, &mut replies);
        let Stores { stored, meta, .. } = replies;
        self.spare.requests = emptied(puts);
        self.counters.cmd_set += stored as u64;
        self.counters.cmd_meta += meta;
        self.counters.total_items += stored as u64;
        // From the first that failed on, all are stored once more, in their order.
        for storing in &batch.stores[stored..] {
            self.execute(&storing.request, now, output);
        }
    }
}
