// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches of retrievals and of `set`: the engine fetches the memory of later ones while it serves
//! earlier ones. A batch has only one kind of request, in the order of the pipeline.

use std::ops::Range;

use freeport_kv_engine::{OutOfMemory, Replies, Request, Stored, Value, ValueMut};
use freeport_kv_protocol::memcached::reply::{self, Line};
use freeport_kv_protocol::memcached::{Expiry, Store};

use crate::item::{self, FETCHED, HEADER_BYTES_MAX, Header};
use crate::items::Items;
use crate::now::Now;

/// Requests of a batch at most.
const BATCH: usize = 64;
/// Bytes of a value at most that is stored by a batch: it is copied twice.
const VALUE_BYTES_MAX: usize = 2_048;
/// Memory that has to be free for a batch, with room for the growth of the index.
const SLACK_BYTES: usize = 2 * BATCH * (VALUE_BYTES_MAX + HEADER_BYTES_MAX + 256);

/// Memory that one batch leaves to the next.
#[derive(Default)]
pub(crate) struct Spare {
    requests: Vec<Request<'static>>,
    asked: Vec<Asked>,
    bytes: Vec<u8>,
}

/// What a retrieval wants to know of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Where the request ends in the received bytes.
    pub end: usize,
    pub returns_cas: bool,
    /// The last key of its request.
    pub is_last: bool,
}

/// Keys of retrievals.
pub(crate) struct Gets<'a> {
    requests: Vec<Request<'a>>,
    pub asked: Vec<Asked>,
}

impl<'a> Gets<'a> {
    pub fn new(spare: &mut Spare) -> Self {
        Self {
            requests: std::mem::take(&mut spare.requests),
            asked: std::mem::take(&mut spare.asked),
        }
    }

    pub fn push(&mut self, key: &'a [u8], asked: Asked) {
        self.requests.push(Request::Update(key));
        self.asked.push(asked);
    }

    pub fn is_full(&self) -> bool {
        self.requests.len() >= BATCH
    }

    pub fn key(&self, number: usize) -> &'a [u8] {
        self.requests[number].key()
    }

    /// Drops all keys.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.asked.clear();
    }

    pub fn leave(mut self, spare: &mut Spare) {
        self.clear();
        spare.requests = emptied(self.requests);
        spare.asked = self.asked;
    }
}

/// The memory of requests whose keys are no longer borrowed: a conversion in place.
fn emptied(mut requests: Vec<Request<'_>>) -> Vec<Request<'static>> {
    requests.clear();
    requests.into_iter().map(|_| Request::Get(&[])).collect()
}

/// Appends the value of a stored item to the reply of a retrieval.
#[inline]
pub(crate) fn append_value(output: &mut Vec<u8>, key: &[u8], stored: &[u8], returns_cas: bool) {
    let (header, value) = Header::read(stored);
    reply::value(output, key, header.client_flags, value, returns_cas.then_some(header.cas));
}

/// Replies to retrievals.
struct Values<'b> {
    requests: &'b [Request<'b>],
    asked: &'b [Asked],
    output: &'b mut Vec<u8>,
    limit: usize,
    now: Now,
    answered: usize,
    hits: u64,
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
        let asked = &self.asked[number];
        if let Some(stored) = value {
            if item::has_expired(stored.bytes, self.now) {
                self.expired.push(number);
            } else {
                let key = self.requests[number].key();
                append_value(self.output, key, stored.bytes, asked.returns_cas);
                item::note_use(stored.bytes, self.now, FETCHED);
                self.hits += 1;
            }
        }
        if asked.is_last {
            reply::line(self.output, Line::End);
        }
    }

    fn get(&mut self, _: usize, _: Option<Value<'_>>) {}

    fn put(&mut self, _: usize, _: Result<Stored, OutOfMemory>) {}

    fn delete(&mut self, _: usize, _: bool) {}
}

/// Values of `set`, and where each stored item begins and ends in `bytes`.
pub(crate) struct Sets<'a> {
    stores: Vec<(Store<'a>, Range<usize>)>,
    bytes: Vec<u8>,
}

impl<'a> Sets<'a> {
    pub fn new(spare: &mut Spare) -> Self {
        Self { stores: vec![], bytes: std::mem::take(&mut spare.bytes) }
    }

    pub fn is_full(&self) -> bool {
        self.stores.len() >= BATCH
    }

    pub fn leave(mut self, spare: &mut Spare) {
        self.bytes.clear();
        spare.bytes = self.bytes;
    }
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
            expired: vec![],
        };
        self.engine.run(&batch.requests, &mut values);
        let Values { answered, hits, expired, .. } = values;
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

/// A retrieval of the keys that were not replied to, as a request.
pub(crate) fn rest_of<'a>(
    touch: Option<Expiry>,
    returns_cas: bool,
    keys: impl Iterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let name = match (touch, returns_cas) {
        (None, false) => "get",
        (None, true) => "gets",
        (Some(_), false) => "gat",
        (Some(_), true) => "gats",
    };
    let mut line = name.as_bytes().to_vec();
    if let Some(expiry) = touch {
        let seconds = match expiry {
            Expiry::Never => 0,
            Expiry::Now => -1,
            Expiry::InSeconds(time) | Expiry::AtUnixTime(time) => i64::from(time),
        };
        line.extend_from_slice(format!(" {seconds}").as_bytes());
    }
    for key in keys {
        line.push(b' ');
        line.extend_from_slice(key);
    }
    line.push(b'\n');
    line
}
