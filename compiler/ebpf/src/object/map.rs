// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps as an object defines them.

use super::Layout;
use std::fmt;

/// Bytes of a page of the kernel's memory.
const PAGE_BYTES: u32 = 4_096;

/// A map that has to be made before the object's programs run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MapDefinition {
    /// Its name; empty for the pattern of inner maps.
    pub name: String,
    /// What kind it is.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries at most; bytes for ring buffers. 0 where the kind has none, or where it is left to
    /// whoever loads the object.
    pub max_entries: u32,
    /// The kernel's `map_flags`.
    pub flags: u32,
    /// The kernel's `map_extra`: for bloom filters the number of hash functions.
    pub extra: u64,
    /// What keys are made of, as far as the object says.
    pub key_layout: Option<Layout>,
    /// What values are made of, as far as the object says.
    pub value_layout: Option<Layout>,
    /// Where in a value its `bpf_spin_lock` is, if it has one.
    pub lock_at: Option<u32>,
    /// For maps of maps, what their values are like.
    pub inner: Option<Box<MapDefinition>>,
    /// Content of the only value, for data.
    pub initial: Option<Vec<u8>>,
    /// Whether it is to be shared by its name in the file system of maps.
    pub pinned: bool,
    /// Entries that are set before the first program runs: by key, what they refer to.
    pub slots: Vec<(u32, SlotTarget)>,
    /// What of its definition could not be read.
    pub fault: Option<String>,
}

/// What an entry that is set at the start refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotTarget {
    /// A program, by its number in the object.
    Program(usize),
    /// A map, by its number in the object.
    Map(usize),
}

macro_rules! kinds {
    ($($(#[$default:meta])? $name:ident = $number:literal, $text:literal;)*) => {
        /// Kinds of maps, with the kernel's numbers and names.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[allow(missing_docs)]
        pub enum MapKind {
            $($(#[$default])? $name,)*
            /// Another, by the kernel's number.
            Other(u32),
        }

        impl MapKind {
            /// The kernel's number of it.
            pub fn number(self) -> u32 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Other(number) => number,
                }
            }
        }

        impl From<u32> for MapKind {
            fn from(number: u32) -> Self {
                match number {
                    $($number => Self::$name,)*
                    _ => Self::Other(number),
                }
            }
        }

        impl fmt::Display for MapKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Other(number) => write!(f, "kind {number}"),
                }
            }
        }
    };
}

kinds! {
    Hash = 1, "hash";
    #[default] Array = 2, "array";
    ProgramArray = 3, "prog_array";
    PerfEventArray = 4, "perf_event_array";
    PerCpuHash = 5, "percpu_hash";
    PerCpuArray = 6, "percpu_array";
    LruHash = 9, "lru_hash";
    LruPerCpuHash = 10, "lru_percpu_hash";
    LpmTrie = 11, "lpm_trie";
    ArrayOfMaps = 12, "array_of_maps";
    HashOfMaps = 13, "hash_of_maps";
    Devmap = 14, "devmap";
    Cpumap = 16, "cpumap";
    Xskmap = 17, "xskmap";
    Queue = 22, "queue";
    Stack = 23, "stack";
    DevmapHash = 25, "devmap_hash";
    RingBuffer = 27, "ringbuf";
    BloomFilter = 30, "bloom_filter";
}

impl MapDefinition {
    /// Gives it a number of entries. That of a ring buffer becomes a power of two of pages, as
    /// loaders make it.
    pub fn set_entries(&mut self, entries: u32) {
        let is_right = entries.is_power_of_two() && entries.is_multiple_of(PAGE_BYTES);
        self.max_entries = match self.kind {
            // Nothing is added to nothing, so that it is seen.
            MapKind::RingBuffer if entries > 0 && !is_right => {
                entries.max(PAGE_BYTES).checked_next_power_of_two().unwrap_or(entries)
            }
            _ => entries,
        };
    }
}

impl MapKind {
    /// Whether its values are other maps.
    pub fn is_of_maps(self) -> bool {
        matches!(self, Self::ArrayOfMaps | Self::HashOfMaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_buffers_are_whole_pages() {
        let sized = |kind, entries| {
            let mut map = MapDefinition { kind, ..MapDefinition::default() };
            map.set_entries(entries);
            map.max_entries
        };
        let all = [0, 1, 4_096, 5_000, 12_288, u32::MAX];
        let expected = [0, 4_096, 4_096, 8_192, 16_384, u32::MAX];
        assert_eq!(all.map(|entries| sized(MapKind::RingBuffer, entries)), expected);
        assert_eq!(all.map(|entries| sized(MapKind::Hash, entries)), all);
    }

    #[test]
    fn numbers_are_the_kernels() {
        for number in 0..40 {
            assert_eq!(MapKind::from(number).number(), number);
        }
        assert_eq!(MapKind::from(14).to_string(), "devmap");
        assert_eq!(MapKind::from(33).to_string(), "kind 33");
    }
}
