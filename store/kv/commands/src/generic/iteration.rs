// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All keys: KEYS, SCAN, RANDOMKEY.
//!
//! A cursor of SCAN is `place * shards + shard`: the shard that the scan continues in, and the
//! cursor of [`Keyspace::scan`] in it. Shards are scanned one after the other, so cursor 0, the
//! start of the first shard, is also the end behind the last one. Any number is a cursor; the
//! number of shards of a server does not change.

use freeport_kv_keyspace::{Keyspace, Kind};
use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_types::pattern::matches;

use crate::arguments::{cursor, integer, is};
use crate::call::Call;
use crate::error::Error;
use crate::store::Store;

/// Chains that SCAN visits at most for each key that it is asked for.
const CHAINS_PER_KEY: u64 = 10;
/// Chains that it visits at least, unless it finds keys: all of a few small shards.
const LEAST_CHAINS: u64 = 1024;

pub(super) fn keys(call: &mut Call<'_>) -> Result<(), Error> {
    let (number, now_ms) = (call.database.number(), call.now_ms());
    let filter = Filter { pattern: Some(call.arguments[1]), kind: None };
    let mut found = Found::default();
    for keyspace in call.database.store.shards().filter_map(|shard| shard.database(number)) {
        let mut cursor = 0;
        loop {
            cursor = keyspace.scan(cursor, now_ms, |key, kind| found.add(&filter, key, kind));
            if cursor == 0 {
                break;
            }
        }
    }
    found.reply(&mut call.reply);
    Ok(())
}

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type].
pub(super) fn scan(call: &mut Call<'_>) -> Result<(), Error> {
    let cursor = cursor(call.arguments[1])?;
    let (filter, count) = Filter::read(&call.arguments[2..])?;
    let (number, now_ms) = (call.database.number(), call.now_ms());
    let (mut found, mut expired) = (Found::default(), vec![]);
    let mut scan = Scan { store: call.database.store, number, cursor };
    let mut chains = count.saturating_mul(CHAINS_PER_KEY).max(LEAST_CHAINS);
    loop {
        scan.step(now_ms, |key, kind| match kind {
            Some(kind) => found.add(&filter, key, kind),
            None => expired.push(key.to_vec()),
        });
        chains -= 1;
        if scan.cursor == 0 || chains == 0 || found.visited >= count {
            break;
        }
    }
    let next = scan.cursor;
    for key in expired {
        call.database.expire_key(&key);
    }
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    found.reply(&mut call.reply);
    Ok(())
}

pub(super) fn random_key(call: &mut Call<'_>) -> Result<(), Error> {
    let (number, now_ms) = (call.database.number(), call.now_ms());
    let databases = call.database.store.shards().filter_map(|shard| shard.database(number));
    let mut databases: Vec<&Keyspace> = databases.filter(|database| !database.is_empty()).collect();
    let mut choose = |n: usize| fastrand::usize(0..n);
    // A shard without living keys is left out then.
    while !databases.is_empty() {
        let at = weighted(&databases, &mut choose);
        if let Some(key) = databases[at].random_key(now_ms, &mut choose) {
            call.reply.bulk(&key);
            return Ok(());
        }
        databases.swap_remove(at);
    }
    call.reply.null();
    Ok(())
}

/// A random keyspace, with a probability in proportion to its keys.
fn weighted(databases: &[&Keyspace], choose: &mut impl FnMut(usize) -> usize) -> usize {
    let mut key = choose(databases.iter().map(|database| database.len()).sum());
    let has_key = |database: &&Keyspace| {
        let is_here = key < database.len();
        key = key.saturating_sub(database.len());
        is_here
    };
    databases.iter().position(has_key).unwrap_or(0)
}

/// Keys that are wanted.
#[derive(Clone, Copy, Default)]
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    /// Name of a type, which need not exist.
    kind: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    /// The words of SCAN behind the cursor, with the number of keys to look at.
    fn read(words: &[&'a [u8]]) -> Result<(Self, u64), Error> {
        let (mut filter, mut count) = (Self::default(), 10);
        for pair in words.chunks(2) {
            let [word, value] = *pair else { return Err(Error::SYNTAX) };
            if is(word, "COUNT") {
                count = integer(value)?;
                if count < 1 {
                    return Err(Error::SYNTAX);
                }
            } else if is(word, "MATCH") {
                filter.pattern = Some(value);
            } else if is(word, "TYPE") {
                filter.kind = Some(value);
            } else {
                return Err(Error::SYNTAX);
            }
        }
        Ok((filter, count.unsigned_abs()))
    }

    fn takes(&self, key: &[u8], kind: Kind) -> bool {
        // The pattern of all keys is not compared, so that it also takes the empty key.
        self.kind.is_none_or(|name| is(name, kind.name()))
            && self.pattern.is_none_or(|pattern| pattern == b"*" || matches(pattern, key))
    }
}

/// Keys that were found, as they are replied.
#[derive(Default)]
struct Found {
    replies: Vec<u8>,
    keys: usize,
    /// Number of keys that were looked at.
    visited: u64,
}

impl Found {
    fn add(&mut self, filter: &Filter<'_>, key: &[u8], kind: Kind) {
        self.visited += 1;
        if filter.takes(key, kind) {
            self.keys += 1;
            Writer::new(&mut self.replies, Version::Two).bulk(key);
        }
    }

    fn reply(&self, reply: &mut Writer<'_>) {
        reply.array(self.keys);
        reply.raw(&self.replies);
    }
}

/// A scan over the shards.
struct Scan<'a> {
    store: &'a Store,
    number: u16,
    cursor: u64,
}

impl Scan<'_> {
    /// Visits the next chain, or leaves a shard without keys.
    fn step(&mut self, now_ms: u64, visit: impl FnMut(&[u8], Option<Kind>)) {
        let shards = self.store.count() as u64;
        let (shard, place) = (self.cursor % shards, self.cursor / shards);
        let next = match self.store.shard(shard as usize).database(self.number) {
            Some(keyspace) if !keyspace.is_empty() => keyspace.scan_all(place, now_ms, visit),
            _ => 0,
        };
        self.cursor = match next {
            0 if shard + 1 == shards => 0,
            0 => shard + 1,
            // Places are below the number of buckets of a shard, far from the largest number.
            _ => next * shards + shard,
        };
    }
}
