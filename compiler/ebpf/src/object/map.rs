// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps as an object defines them.

use super::Layout;
use std::fmt;

/// Size of a page of the kernel in bytes.
const PAGE_BYTES: u32 = 4_096;

/// A map that must be created before the object's programs run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MapDefinition {
    /// Name; empty for the template of inner maps.
    pub name: String,
    /// Kind of the map.
    pub kind: MapKind,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of entries; the size in bytes for ring buffers. 0 if the kind has none, or if
    /// the loader chooses it.
    pub max_entries: u32,
    /// The kernel's `map_flags`.
    pub flags: u32,
    /// The kernel's `map_extra`: for Bloom filters the number of hash functions.
    pub extra: u64,
    /// Layout of keys, if the object has their type.
    pub key_layout: Option<Layout>,
    /// Layout of values, if the object has their type.
    pub value_layout: Option<Layout>,
    /// Offset of the `bpf_spin_lock` in a value, if it has one.
    pub lock_at: Option<u32>,
    /// For maps of maps, the template of their values.
    pub inner: Option<Box<MapDefinition>>,
    /// Contents of the only value, for data sections.
    pub initial: Option<Vec<u8>>,
    /// Whether it is pinned by its name in the BPF file system.
    pub pinned: bool,
    /// Entries that are set before the first program runs: by key, with their targets.
    pub slots: Vec<(u32, SlotTarget)>,
    /// Reason for which the definition could not be read completely.
    pub fault: Option<String>,
}

/// Target of an initial entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotTarget {
    /// A program, by its index in the object.
    Program(usize),
    /// A map, by its index in the object.
    Map(usize),
}

macro_rules! kinds {
    ($($(#[$default:meta])? $name:ident = $number:literal, $text:literal;)*) => {
        /// Kinds of maps, with the kernel's numbers and names.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[allow(missing_docs)]
        pub enum MapKind {
            $($(#[$default])? $name,)*
            /// Another kind, by the kernel's number.
            Other(u32),
        }

        impl MapKind {
            /// Returns the kernel's number.
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
    /// Sets the number of entries. The size of a ring buffer is rounded up to a power of two of
    /// pages, as loaders do.
    pub fn set_entries(&mut self, entries: u32) {
        let is_right = entries.is_power_of_two() && entries.is_multiple_of(PAGE_BYTES);
        self.max_entries = match self.kind {
            // A size of 0 stays 0, so that it is reported.
            MapKind::RingBuffer if entries > 0 && !is_right => {
                entries.max(PAGE_BYTES).checked_next_power_of_two().unwrap_or(entries)
            }
            _ => entries,
        };
    }
}

impl MapKind {
    /// Returns whether its values are other maps.
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
