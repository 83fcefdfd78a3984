// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of a pipeline that are carried out together: retrievals, or `set` and `ms`.
//! How is in
//! `pipeline`.

use std::ops::Range;

use freeport_kv_engine::Request;
use freeport_kv_protocol::memcached::{self, Expiry, Meta, reply};

use crate::item::Header;

/// Requests of a batch at most.
pub(crate) const BATCH: usize = 64;

/// Memory that one batch leaves to the next.
#[derive(Default)]
pub(crate) struct Spare {
    pub requests: Vec<Request<'static>>,
    pub asked: Vec<Asked<'static>>,
    pub stores: Vec<Storing<'static>>,
    pub bytes: Vec<u8>,
}

/// The facts that a retrieval asks for of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    /// `get` or `gets`.
    Value {
        /// Where the request ends in the received bytes.
        end: usize,
        returns_cas: bool,
        /// The last key of its request.
        is_last: bool,
    },
    /// `mg`.
    Facts {
        /// Where the request begins in the received bytes.
        begin: usize,
        meta: Meta<'a>,
    },
}

/// Keys of retrievals.
pub(crate) struct Gets<'a> {
    pub requests: Vec<Request<'a>>,
    pub asked: Vec<Asked<'a>>,
}

impl<'a> Gets<'a> {
    pub fn new(spare: &mut Spare) -> Self {
        Self {
            requests: std::mem::take(&mut spare.requests),
            asked: std::mem::take(&mut spare.asked),
        }
    }

    pub fn push(&mut self, key: &'a [u8], asked: Asked<'a>) {
        self.requests.push(Request::Update(key));
        self.asked.push(asked);
    }

    pub fn is_full(&self) -> bool {
        self.requests.len() >= BATCH
    }

    pub fn key(&self, number: usize) -> &'a [u8] {
        self.requests[number].key()
    }

    /// Keys from a number on, of the request that ends there.
    pub fn keys_of(&self, number: usize, of_end: usize) -> impl Iterator<Item = &'a [u8]> {
        let is_of =
            move |asked: &Asked<'_>| matches!(asked, Asked::Value { end, .. } if *end == of_end);
        let asked = self.asked[number..].iter().take_while(move |asked| is_of(asked));
        asked.zip(&self.requests[number..]).map(|(_, request)| request.key())
    }

    /// Drops all keys.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.asked.clear();
    }

    /// Leaves the memory to the next batch.
    pub fn leave(mut self, spare: &mut Spare) {
        self.clear();
        spare.requests = emptied(self.requests);
        let end = Asked::Value { end: 0, returns_cas: false, is_last: true };
        spare.asked = self.asked.into_iter().map(|_| end).collect();
    }
}

/// The memory of requests whose keys are no longer borrowed: a conversion in place.
pub(crate) fn emptied(mut requests: Vec<Request<'_>>) -> Vec<Request<'static>> {
    requests.clear();
    requests.into_iter().map(|_| Request::Get(&[])).collect()
}

/// A value to store without a condition.
#[derive(Clone, Debug)]
pub(crate) struct Storing<'a> {
    /// `set` or `ms`.
    pub request: memcached::Request<'a>,
    pub key: &'a [u8],
    /// CAS number of the new item.
    pub cas: u64,
    /// Where its header and value are among the bytes of the batch.
    pub place: Range<usize>,
}

/// Values to store.
pub(crate) struct Sets<'a> {
    pub stores: Vec<Storing<'a>>,
    pub bytes: Vec<u8>,
}

impl Sets<'_> {
    pub fn new(spare: &mut Spare) -> Self {
        Self { stores: std::mem::take(&mut spare.stores), bytes: std::mem::take(&mut spare.bytes) }
    }

    pub fn is_full(&self) -> bool {
        self.stores.len() >= BATCH
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        self.stores.clear();
        self.bytes.clear();
    }

    /// Leaves the memory to the next batch.
    pub fn leave(mut self, spare: &mut Spare) {
        self.clear();
        let none = || Storing { request: memcached::Request::Quit, key: &[], cas: 0, place: 0..0 };
        spare.stores = self.stores.into_iter().map(|_| none()).collect();
        spare.bytes = self.bytes;
    }
}

/// Appends the value of a stored item to the reply of a retrieval.
#[inline]
pub(crate) fn append_value(output: &mut Vec<u8>, key: &[u8], stored: &[u8], returns_cas: bool) {
    let (header, value) = Header::read(stored);
    reply::value(output, key, header.client_flags, value, returns_cas.then_some(header.cas));
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
