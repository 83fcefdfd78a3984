// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stores that are measured: the engine in batches, the engine one operation at a time, and the
//! standard library's map; and the limit, which only reads lines of memory.

use anyhow::{Context, Result};
use freeport_kv_engine::{
    Engine, Hasher, Index, Options, OutOfMemory, Replies, Request, Stored, Value, ValueMut,
};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Something that executes operations.
pub trait Store {
    /// Name in results.
    fn name(&self) -> &'static str;

    /// Executes operations; returns how many of them found their key.
    fn run(&mut self, requests: &[Request<'_>]) -> u64;
}

/// Adds the eight first bytes of each value, so that a get reads what it returns, and counts hits.
#[derive(Default)]
struct Client {
    hits: u64,
    sum: u64,
}

/// The first eight bytes of a value, or its first, as a number.
#[inline(always)]
fn head(value: &[u8]) -> u64 {
    match value.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => value.first().copied().map_or(0, u64::from),
    }
}

/// Adds one to the number that begins a value.
#[inline(always)]
fn add(value: &mut [u8]) {
    match value.first_chunk_mut::<8>() {
        Some(word) => *word = u64::from_le_bytes(*word).wrapping_add(1).to_le_bytes(),
        None => value[0] = value[0].wrapping_add(1),
    }
}

impl Replies for Client {
    #[inline(always)]
    fn get(&mut self, _: usize, value: Option<Value<'_>>) {
        if let Some(value) = value {
            self.hits += 1;
            self.sum = self.sum.wrapping_add(head(value.bytes));
        }
    }

    #[inline(always)]
    fn put(&mut self, _: usize, stored: Result<Stored, OutOfMemory>) {
        self.hits += u64::from(stored.is_ok());
    }

    #[inline(always)]
    fn delete(&mut self, _: usize, is_deleted: bool) {
        self.hits += u64::from(is_deleted);
    }

    #[inline(always)]
    fn update(&mut self, _: usize, value: Option<ValueMut<'_>>) {
        if let Some(value) = value {
            self.hits += 1;
            add(value.bytes);
        }
    }
}

/// The engine, by batches.
pub struct Batches {
    /// The engine.
    pub engine: Engine,
}

impl Batches {
    /// An engine with a fixed index, as the publication's. Pairs in buckets get about the largest
    /// index that leaves room for half of the memory full of them. Pairs in blocks get ten slots
    /// for six of them, since a larger index saves them no access.
    pub fn new(memory_bytes: usize, pair_bytes: usize) -> Result<Self> {
        let (ratio, inline_threshold) = match pair_bytes {
            ..=10 => (0.8, 10),
            11..=20 => (0.7, 20),
            // Ten slots of a bucket, six of them used.
            _ => (0.5 * 64.0 / 6.0 / pair_bytes as f64, 20),
        };
        let options = Options {
            memory_bytes,
            index: Index::Fixed { ratio: ratio.min(0.8) },
            inline_threshold,
            seed: 1,
        };
        Ok(Self { engine: Engine::new(options).context("an engine for the bench")? })
    }
}

impl Store for Batches {
    fn name(&self) -> &'static str {
        "freeport"
    }

    fn run(&mut self, requests: &[Request<'_>]) -> u64 {
        let mut client = Client::default();
        self.engine.run(requests, &mut client);
        std::hint::black_box(client.sum);
        client.hits
    }
}

/// The same engine, one operation at a time.
pub struct OneAtATime<'a>(pub &'a mut Engine);

impl Store for OneAtATime<'_> {
    fn name(&self) -> &'static str {
        "freeport, one by one"
    }

    fn run(&mut self, requests: &[Request<'_>]) -> u64 {
        let mut client = Client::default();
        for (number, request) in requests.iter().enumerate() {
            match *request {
                Request::Get(key) => client.get(number, self.0.get(key)),
                Request::Put(key, value) => client.put(number, self.0.put(key, value)),
                Request::Delete(key) => client.delete(number, self.0.delete(key)),
                Request::Update(key) => {
                    let found = self.0.update(key, |value| add(value.bytes));
                    client.hits += u64::from(found.is_some());
                }
            }
        }
        std::hint::black_box(client.sum);
        client.hits
    }
}

/// The engine's hash function for the standard map, so that the tables are compared and not the
/// functions.
#[derive(Default)]
pub struct SameHash(u64);

impl std::hash::Hasher for SameHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = Hasher::new(1).hash(bytes).bits;
    }

    // Slices hash their length first, which the function does by itself.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The standard library's map of byte strings.
#[derive(Default)]
pub struct StandardMap {
    map: HashMap<Box<[u8]>, Box<[u8]>, BuildHasherDefault<SameHash>>,
}

impl StandardMap {
    /// Stores a pair.
    pub fn fill(&mut self, key: &[u8], value: &[u8]) {
        self.map.insert(key.into(), value.into());
    }
}

impl Store for StandardMap {
    fn name(&self) -> &'static str {
        "std HashMap"
    }

    fn run(&mut self, requests: &[Request<'_>]) -> u64 {
        let (mut hits, mut sum) = (0, 0_u64);
        for request in requests {
            hits += u64::from(match *request {
                Request::Get(key) => {
                    let value = self.map.get(key);
                    sum = sum.wrapping_add(value.map_or(0, |value| head(value)));
                    value.is_some()
                }
                Request::Put(key, value) => match self.map.get_mut(key) {
                    Some(old) if old.len() == value.len() => {
                        old.copy_from_slice(value);
                        true
                    }
                    _ => self.map.insert(key.into(), value.into()).is_some(),
                },
                Request::Delete(key) => self.map.remove(key).is_some(),
                Request::Update(key) => {
                    let value = self.map.get_mut(key);
                    value.map(|value| add(value)).is_some()
                }
            });
        }
        std::hint::black_box(sum);
        hits
    }
}

/// Reads one random line of memory for each operation: the limit of a store whose every operation
/// takes one.
pub struct Lines {
    lines: Vec<[u64; 8]>,
    hasher: Hasher,
}

impl Lines {
    /// As many bytes of memory, in huge pages as the engine's where the system gives them.
    pub fn new(bytes: usize) -> Self {
        let mut lines = Vec::with_capacity(bytes / 64);
        let page = 1 << 12;
        let start = lines.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(page);
        if bytes > skipped + page {
            let length = (bytes - skipped) & !(page - 1);
            // SAFETY: the range lies in the allocation, and the call is advice.
            unsafe {
                libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE)
            };
        }
        lines.resize(bytes / 64, [1; 8]);
        Self { lines, hasher: Hasher::new(3) }
    }
}

impl Store for Lines {
    fn name(&self) -> &'static str {
        "limit: random lines"
    }

    fn run(&mut self, requests: &[Request<'_>]) -> u64 {
        let count = self.lines.len() as u128;
        let line = |request: &Request<'_>| {
            let bits = u128::from(self.hasher.hash(request.key()).bits);
            self.lines[((bits * count) >> 64) as usize][0]
        };
        requests.iter().map(line).sum()
    }
}
