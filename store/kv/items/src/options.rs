// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of the items of a worker.

use freeport_kv_protocol::memcached::Limits;

/// Options of [`Items`](crate::Items).
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of memory for items and their index, 1 MiB to 128 GiB (`-m`).
    pub memory_bytes: usize,
    /// Limits for requests, among them the size of an item (`-I`).
    pub limits: Limits,
    /// Items that were not used for long make room for new ones. Otherwise a full memory refuses
    /// new items (`-M`).
    pub is_eviction_allowed: bool,
    /// `flush_all` is carried out (without `-F`).
    pub is_flush_allowed: bool,
    /// `shutdown` is carried out (`-A`).
    pub is_shutdown_allowed: bool,
    /// `lru_crawler metadump` is carried out (without `-X`).
    pub is_dump_allowed: bool,
    /// Bytes of replies after which [`Items::serve`](crate::Items::serve) waits until they are
    /// sent. One more value may follow.
    pub output_bytes: usize,
    /// Version that clients are told.
    pub version: String,
    /// Seed of the hash function. A server for strangers takes a random one.
    pub seed: u64,
    /// The first CAS number follows this one. A server takes a random one below 2^39, so that
    /// numbers of an earlier run match no item of this one, and are still short.
    pub cas_before: u64,
}

impl Default for Options {
    /// 64 MiB, items of up to 1 MiB, and everything is allowed but `shutdown`, as in the original.
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            limits: Limits::default(),
            is_eviction_allowed: true,
            is_flush_allowed: true,
            is_shutdown_allowed: false,
            is_dump_allowed: true,
            output_bytes: 256 << 10,
            version: "1.6.18".to_owned(),
            seed: 0,
            cas_before: 0,
        }
    }
}
