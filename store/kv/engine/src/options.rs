// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of an engine, and errors.

use std::fmt;

use crate::bucket;

/// How many buckets the index has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Index {
    /// A fixed share of the memory, as published: `ratio` of [`Options::memory_bytes`].
    Fixed {
        /// Index bytes over all bytes, between 0 and 1.
        ratio: f64,
    },
    /// The index grows by one bucket at a time while more than `fill` of its slots are taken.
    Growing {
        /// Share of the slots that are taken, between 0 and 1.
        fill: f64,
    },
}

/// Options of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of memory for index and blocks together. Address space for all of it is reserved;
    /// pages are taken when they are first written.
    pub memory_bytes: usize,
    /// How many buckets the index has.
    pub index: Index,
    /// Pairs of at most this many bytes, key and value together, are kept in the index.
    pub inline_threshold: usize,
    /// Seed of the hash function.
    pub seed: u64,
}

impl Default for Options {
    /// A growing index for 1 GiB. Pairs of up to 20 bytes are kept in the index.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            index: Index::Growing { fill: 0.7 },
            inline_threshold: 20,
            seed: 0,
        }
    }
}

/// Why an engine cannot be made.
#[derive(Debug)]
pub enum OptionsError {
    /// The memory is too small or too large.
    Memory(usize),
    /// A ratio or fill is not between 0 and 1, or leaves no bucket.
    Ratio(f64),
    /// No slots hold such a pair.
    InlineThreshold(usize),
    /// The system refused the address space.
    Reserve(std::io::Error),
}

impl fmt::Display for OptionsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(
                formatter,
                "memory of {bytes} bytes: an engine needs 1 MiB at least and 128 GiB at most; \
                 use several engines for more"
            ),
            Self::Ratio(ratio) => {
                write!(formatter, "share {ratio} of the index: must lie between 0 and 1")
            }
            Self::InlineThreshold(bytes) => write!(
                formatter,
                "inline threshold of {bytes} bytes: a bucket holds {} at most",
                bucket::INLINE_BYTES
            ),
            Self::Reserve(error) => write!(formatter, "cannot reserve memory: {error}"),
        }
    }
}

impl std::error::Error for OptionsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Reserve(error) => Some(error),
            _ => None,
        }
    }
}

/// No memory is left for what an operation stores. The store is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no memory left for the pair; delete keys or give the engine more")
    }
}

impl std::error::Error for OutOfMemory {}
