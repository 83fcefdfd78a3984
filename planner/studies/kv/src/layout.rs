// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a store, and where its parts are in the memory of host and processor.

use freeport_study_verbs::Way;
use std::time::Duration;
use thiserror::Error;

/// Longest key in bytes.
pub const KEY_MAX: usize = 255;
/// Longest value in bytes that a store can be configured for.
pub const VALUE_MAX: usize = 1 << 20;
/// Bytes of an entry of the index.
pub const ENTRY_BYTES: u64 = 16;
/// Buckets in which a key is searched at most.
pub const PROBES_MAX: u64 = 64;
/// Addresses of items begin behind this one, so that small numbers are free for marks.
const ITEMS_FROM: u64 = 64;

/// A step of a put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The new item is written to the host's memory, pending.
    Write,
    /// The old item becomes dead, and its cached copies invalid.
    Retire,
    /// All indexes have the new item's address.
    Publish,
    /// The new item becomes alive: the moment from which on all gets return it.
    Enliven,
    /// The cache receives copies of the new item.
    Fill,
}

/// The order of a put. Gets of all alternatives together are linearizable with it.
pub const ORDER: [Step; 5] = [Step::Write, Step::Retire, Step::Publish, Step::Enliven, Step::Fill];

/// Options of a store. All places of a store need the same ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Number of buckets of the index. A key can be in [`PROBES_MAX`] of them.
    pub buckets: u64,
    /// Number of entries of a bucket. A get reads whole buckets.
    pub bucket_entries: u64,
    /// Number of copies of the index in the processor's memory. Clients read one at random.
    pub index_copies: u64,
    /// Memory of the host for items, in bytes.
    pub item_memory: u64,
    /// Memory of the processor for cached items, in bytes.
    pub cache_memory: u64,
    /// Largest item that is cached, in bytes with its header.
    pub cached_item_max: u64,
    /// Number of copies of a cached item.
    pub item_copies: u64,
    /// Memory of the processor for index and cache together, in bytes.
    pub soc_memory: u64,
    /// Longest value in bytes.
    pub value_max: usize,
    /// The engine of the processor's accesses to the host's memory.
    pub way: Way,
    /// Work of a core of the processor for each call, before it answers.
    pub soc_work: Duration,
    /// Work of the core after that: room for the next call, counts of requests.
    pub soc_rest: Duration,
    /// Time after which a get fails whose item changes all the time.
    pub patience: Duration,
    /// Order of a put. Tests show what other orders break.
    pub order: Vec<Step>,
    /// Whether a delete keeps inserts away until all indexes have the entry free. Tests show what
    /// happens otherwise.
    pub locks_deletes: bool,
    /// Whether readers compare the versions of entry and item. Tests show what happens otherwise.
    pub compares_versions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            buckets: 1 << 16,
            bucket_entries: 4,
            index_copies: 2,
            item_memory: 256 << 20,
            cache_memory: 16 << 20,
            cached_item_max: 1024,
            item_copies: 2,
            soc_memory: 16 << 30,
            value_max: VALUE_MAX,
            way: Way::Dma,
            soc_work: Duration::from_nanos(100),
            soc_rest: Duration::from_nanos(132),
            patience: Duration::from_secs(1),
            order: ORDER.to_vec(),
            locks_deletes: true,
            compares_versions: true,
        }
    }
}

/// A store that cannot exist.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LimitError {
    /// An option has a value that makes no sense.
    #[error("{option} is {value}; it has to be {wanted}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: u64,
        /// Values that it can have.
        wanted: &'static str,
    },
    /// Keys cannot have this skew.
    #[error("the skew is {0}; it has to be at least 0 and below 1, such as 0.99")]
    Skew(String),
    /// The processor has too little memory.
    #[error(
        "soc_memory is {limit} B: less than the {index} B of the index and the {cache} B of the \
         cache; use fewer buckets or copies, or a smaller cache"
    )]
    SocMemory {
        /// The configured memory in bytes.
        limit: u64,
        /// Bytes of all copies of the index.
        index: u64,
        /// Bytes of the cache.
        cache: u64,
    },
}

/// Where the parts of a store are. Both memories begin with the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Number of buckets.
    pub buckets: u64,
    /// Bytes of a bucket.
    pub bucket_bytes: u64,
    /// Number of copies of the index in the processor's memory.
    pub index_copies: u64,
    /// First byte of the host's memory for items.
    pub items: u64,
    /// First byte of the processor's memory for cached items.
    pub cache: u64,
    /// Bytes of the host's memory.
    pub host_bytes: u64,
    /// Bytes of the processor's memory.
    pub soc_bytes: u64,
}

impl Options {
    /// Sets an option that has a number, by its name; `patience_ms` is the patience in
    /// milliseconds.
    ///
    /// # Errors
    /// There is no such option; the error lists those that exist.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
        let mut patience = self.patience.as_millis() as u64;
        let options = [
            ("patience_ms", &mut patience),
            ("buckets", &mut self.buckets),
            ("bucket_entries", &mut self.bucket_entries),
            ("index_copies", &mut self.index_copies),
            ("item_memory", &mut self.item_memory),
            ("cache_memory", &mut self.cache_memory),
            ("cached_item_max", &mut self.cached_item_max),
            ("item_copies", &mut self.item_copies),
            ("soc_memory", &mut self.soc_memory),
        ];
        let names = options.each_ref().map(|option| option.0).join(", ");
        let found = options.into_iter().find(|option| option.0 == name);
        let (_, option) = found.ok_or_else(|| format!("no option {name}; there are {names}"))?;
        *option = value;
        if name == "patience_ms" {
            self.patience = Duration::from_millis(patience);
        }
        Ok(())
    }

    /// Returns where the parts of the store are.
    ///
    /// # Errors
    /// The store would exceed a limit.
    pub fn layout(&self) -> Result<Layout, LimitError> {
        // Index and items together are within the 40 bits of addresses in entries.
        let copies = |count: u64| (1..=64).contains(&count);
        let entries = (1..=64).contains(&self.bucket_entries);
        let buckets = (1..=1 << 28).contains(&self.buckets);
        let items = (1..=1 << 39).contains(&self.item_memory);
        let cached = (1..=1 << 24).contains(&self.cached_item_max);
        let values = (1..=VALUE_MAX).contains(&self.value_max);
        let checks = [
            ("buckets", self.buckets, "1 to 2^28", buckets),
            ("bucket_entries", self.bucket_entries, "1 to 64", entries),
            ("index_copies", self.index_copies, "1 to 64", copies(self.index_copies)),
            ("item_copies", self.item_copies, "1 to 64", copies(self.item_copies)),
            ("item_memory", self.item_memory, "1 to 2^39 B", items),
            ("cached_item_max", self.cached_item_max, "1 to 2^24 B", cached),
            ("value_max", self.value_max as u64, "1 to 2^20 B", values),
        ];
        if let Some((option, value, wanted, _)) = checks.into_iter().find(|check| !check.3) {
            return Err(LimitError::Option { option, value, wanted });
        }
        let bucket_bytes = self.bucket_entries * ENTRY_BYTES;
        let index = self.buckets * bucket_bytes;
        let (limit, cache) = (self.soc_memory, self.cache_memory);
        let copies = index * self.index_copies;
        if copies.checked_add(cache).is_none_or(|bytes| bytes > limit) {
            return Err(LimitError::SocMemory { limit, index: copies, cache });
        }
        let items = index.max(ITEMS_FROM);
        Ok(Layout {
            buckets: self.buckets,
            bucket_bytes,
            index_copies: self.index_copies,
            items,
            cache: copies,
            host_bytes: items + self.item_memory,
            soc_bytes: copies + cache,
        })
    }
}

/// The hash of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hash(pub u64);

impl Hash {
    /// Hashes a key: FNV-1a, with its bits mixed, so that all of them can select a bucket.
    pub fn of(key: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let mut hash: u64 = key.iter().fold(0xcbf2_9ce4_8422_2325, step);
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            hash = (hash ^ hash >> 33).wrapping_mul(factor);
        }
        Self(hash ^ hash >> 33)
    }

    /// Returns the part of the hash that entries have.
    pub fn fingerprint(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

impl Layout {
    /// Returns the buckets in which a key can be, in the order of the search.
    pub fn probes(&self, hash: Hash) -> impl Iterator<Item = u64> + use<> {
        let buckets = self.buckets;
        let home = ((u128::from(hash.0 << 16) * u128::from(buckets)) >> 64) as u64;
        (0..buckets.min(PROBES_MAX)).map(move |probe| (home + probe) % buckets)
    }

    /// Returns the first byte of a bucket in the host's memory.
    pub fn host_bucket(&self, bucket: u64) -> u64 {
        bucket * self.bucket_bytes
    }

    /// Returns the first byte of a bucket in a copy of the index in the processor's memory.
    pub fn soc_bucket(&self, bucket: u64, copy: u64) -> u64 {
        (copy * self.buckets + bucket) * self.bucket_bytes
    }
}
