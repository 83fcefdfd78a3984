// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carrying out batches: the engine fetches the memory of later requests while it serves earlier
//! ones. A batch has only one kind of request, in the order of the pipeline.

use std::ops::Range;

use freeport_kv_engine::{OutOfMemory, Replies, Request, Stored, Value, ValueMut};
use freeport_kv_protocol::memcached::Store;
use freeport_kv_protocol::memcached::meta_reply::{self, Status};
use freeport_kv_protocol::memcached::reply::{self, Line};

use crate::batch::{Asked, BATCH, Gets, Sets, append_value, emptied};
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
    requests: &'b [Request<'b>],
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

/// Replies to `set`, up to the first one for which there is no memory.
struct Stores<'b> {
    stores: &'b [(Store<'b>, Range<usize>)],
    output: &'b mut Vec<u8>,
    stored: usize,
}

impl Replies for Stores<'_> {
    #[inline(always)]
    fn put(&mut self, number: usize, stored: Result<Stored, OutOfMemory>) {
        if number != self.stored || stored.is_err() {
            return;
        }
        self.stored += 1;
        if !self.stores[number].0.is_quiet {
            reply::line(self.output, Line::Stored);
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

    /// Whether a `set` can be one of a batch: it is small, and memory is not short, so that nothing
    /// has to be evicted amid it.
    pub(crate) fn may_batch(&self, store: &Store<'_>) -> bool {
        store.value.len() <= VALUE_BYTES_MAX
            && self.engine.used_bytes() + SLACK_BYTES <= self.limit_bytes
    }

    /// Adds a `set` to a batch.
    pub(crate) fn push_set<'a>(&mut self, batch: &mut Sets<'a>, store: Store<'a>, now: Now) {
        let begin = batch.bytes.len();
        let header = self.new_header(now.time_of(store.expiry), store.client_flags, false, now);
        header.write(&mut batch.bytes);
        batch.bytes.extend_from_slice(store.value);
        self.may_expire |= header.expiry.is_some();
        batch.stores.push((store, begin..batch.bytes.len()));
    }

    /// Stores the values of a batch, replies, and leaves the batch empty.
    pub(crate) fn run_sets(&mut self, batch: &mut Sets<'_>, now: Now, output: &mut Vec<u8>) {
        let mut requests: Vec<Request<'_>> = std::mem::take(&mut self.spare.requests);
        let puts = batch.stores.iter();
        requests.extend(
            puts.map(|(store, place)| Request::Put(store.key, &batch.bytes[place.clone()])),
        );
        let mut replies = Stores { stores: &batch.stores, output, stored: 0 };
        self.engine.run(&requests, &mut replies);
        let Stores { stored, .. } = replies;
        self.spare.requests = emptied(requests);
        self.counters.cmd_set += stored as u64;
        self.counters.total_items += stored as u64;
        // From the first that failed on, all are stored once more, in their order.
        for (store, _) in &batch.stores[stored..] {
            let line = self.store_classic(store, now);
            if !store.is_quiet {
                reply::line(output, line);
            }
        }
        batch.stores.clear();
        batch.bytes.clear();
    }
}
