// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A hash table in a memory of fixed size that counts its accesses: the engine, or a rival.

use std::fmt;

use crate::access::Accesses;

/// A table of pairs of byte strings. Its index and all values share one memory of fixed size.
pub trait Table {
    /// Name of the table in reports.
    fn name(&self) -> &'static str;

    /// Looks `key` up. If it is stored, replaces the contents of `value` by its value.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool;

    /// Stores a pair, in place of an earlier one with the same key.
    ///
    /// # Errors
    /// The table has no room for the pair, or never takes such pairs. It is unchanged.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused>;

    /// Removes a pair; returns whether there was one.
    fn delete(&mut self, key: &[u8]) -> bool;

    /// Number of pairs.
    fn pairs(&self) -> u64;

    /// Bytes of all keys and values.
    fn pair_bytes(&self) -> u64;

    /// Bytes of memory, for everything.
    fn memory_bytes(&self) -> u64;

    /// Number of accesses since the last call.
    fn take_accesses(&mut self) -> Accesses;

    /// Memory utilisation: bytes of all pairs by bytes of memory (KV-Direct, hash table).
    fn utilisation(&self) -> f64 {
        self.pair_bytes() as f64 / self.memory_bytes() as f64
    }
}

/// The effect of a put.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Put {
    /// The key is new.
    Inserted,
    /// The key had a value before.
    Replaced,
}

/// Reason why a table did not store a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refused {
    /// No block of the size is free.
    Memory,
    /// No slot of the index could be freed by moving other pairs.
    Displacement,
    /// The table takes no keys of this many bytes.
    KeyBytes(usize),
    /// The table takes no values of this many bytes.
    ValueBytes(usize),
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Memory => formatter.write_str("no memory left for the pair: delete pairs"),
            Refused::Displacement => formatter
                .write_str("no slot can be freed by moving pairs: give the index more memory"),
            Refused::KeyBytes(bytes) => write!(formatter, "a key of {bytes} bytes is too long"),
            Refused::ValueBytes(bytes) => write!(formatter, "a value of {bytes} bytes is too long"),
        }
    }
}

impl std::error::Error for Refused {}
