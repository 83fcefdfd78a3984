// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of values, most of them those up to which a value stays packed. The defaults are those
//! of Redis 7.2.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Sizes up to which a value of each type stays packed. A value that passes one of its limits
/// takes its large form, and keeps it. Strings have one form, and a largest size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a string (`proto-max-bulk-len`); longer ones are refused.
    pub text_bytes: usize,
    /// Bytes of a sparse HyperLogLog (`hll-sparse-max-bytes`).
    pub sparse_bytes: usize,
    /// Fields of a packed hash (`hash-max-listpack-entries`).
    pub hash_entries: usize,
    /// Bytes of a field or value in a packed hash (`hash-max-listpack-value`).
    pub hash_value_bytes: usize,
    /// Members of a set of sorted integers (`set-max-intset-entries`).
    pub set_integers: usize,
    /// Members of a packed set (`set-max-listpack-entries`).
    pub set_entries: usize,
    /// Bytes of a member of a packed set (`set-max-listpack-value`).
    pub set_value_bytes: usize,
    /// Members of a packed sorted set (`zset-max-listpack-entries`).
    pub zset_entries: usize,
    /// Bytes of a member of a packed sorted set (`zset-max-listpack-value`).
    pub zset_value_bytes: usize,
    /// Bytes of a node of a list (`list-max-listpack-size -2`).
    pub list_node_bytes: usize,
    /// Bytes of a node of a stream (`stream-node-max-bytes`).
    pub stream_node_bytes: usize,
    /// Entries of a node of a stream (`stream-node-max-entries`).
    pub stream_node_entries: usize,
    /// Seed of the hash functions of large forms. Secret in a server, so that clients cannot make
    /// members collide; fixed where a run has to be repeated exactly.
    pub hash_seed: u64,
}

impl Default for Limits {
    /// Returns the limits of Redis 7.2 and a random seed.
    fn default() -> Self {
        Self {
            text_bytes: 512 << 20,
            sparse_bytes: 3000,
            hash_entries: 512,
            hash_value_bytes: 64,
            set_integers: 512,
            set_entries: 128,
            set_value_bytes: 64,
            zset_entries: 128,
            zset_value_bytes: 64,
            list_node_bytes: 8192,
            stream_node_bytes: 4096,
            stream_node_entries: 100,
            hash_seed: RandomState::new().build_hasher().finish(),
        }
    }
}
