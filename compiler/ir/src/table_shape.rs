// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory layout of keyed tables in native code. It is computed early, so that a program whose
//! tables are too large is rejected before any code is generated.

use crate::{Table, TableKind};

/// Maximum size of a table: links within it are 32 bits.
const BYTES_MAX: u128 = 1 << 32;

/// Size of `struct table`, at the start of a table's memory.
const HEAD_BYTES: u64 = 24;

/// Size of a cache line.
const LINE_BYTES: u64 = 64;

/// Maximum ways of a chunk: each has a byte in the chunk's head of [`CHUNK_HEAD_BYTES`].
const WAYS_MAX: u64 = 7;
const CHUNK_HEAD_BYTES: u64 = 8;

/// Size of a root of a longest-prefix table, and the maximum number of bits that index roots.
const ROOT_BYTES: u64 = 16;
const ROOT_BITS_MAX: u32 = 16;

/// Layout of a table in memory; the fields match `struct table_shape` in native code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableShape {
    /// Width of the data of a longest-prefix key.
    pub data_bits: u32,
    /// Entries per chunk.
    pub ways: u64,
    /// Size of an entry.
    pub entry_bytes: u64,
    /// Size of a chunk.
    pub chunk_bytes: u64,
    /// Number of leading data bits that index roots.
    pub root_bits: u32,
    /// Offset of the roots.
    pub roots: u64,
    /// Offset of the chunks.
    pub first: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Maximum number of entries.
    pub capacity: u64,
    /// Total size.
    pub bytes: u64,
}

impl TableShape {
    /// Computes the layout; `None` if the table is too large, because links within one are 32 bits.
    pub fn of(table: &Table) -> Option<Self> {
        let key_bytes = u64::from(bytes_of(table.key_bits));
        let value_bytes = u64::from(bytes_of(table.value_bits));
        if table.kind == TableKind::Array {
            // Entries that no key can name are omitted.
            let keys = 1_u64.checked_shl(table.key_bits).unwrap_or(u64::MAX);
            let capacity = table.capacity.min(keys);
            let bytes = u128::from(capacity) * u128::from(value_bytes);
            let bytes = u64::try_from(bytes).ok().filter(|it| u128::from(*it) <= BYTES_MAX)?;
            let none = Self::default();
            return Some(Self { capacity, bytes, ..none });
        }
        let links = if table.kind == TableKind::LruHash { 8 } else { 0 };
        let generation = 4;
        let entry_bytes = key_bytes + links + generation + value_bytes;
        let (ways, chunk_bytes) = chunk(entry_bytes);
        // A third of the ways stay free, so that few entries overflow their chunk.
        let chunks = (u128::from(table.capacity) * 3).div_ceil(u128::from(ways) * 2);
        let data_bits = match table.kind {
            TableKind::LongestPrefix => table.key_bits - 32,
            _ => 0,
        };
        let lengths = u64::from(data_bits);
        let head = match table.kind {
            TableKind::LongestPrefix => {
                HEAD_BYTES + (lengths / 64 + 1) * 8 + (lengths + 1).next_multiple_of(2) * 4
            }
            _ => HEAD_BYTES,
        };
        let roots = head.next_multiple_of(LINE_BYTES);
        let (root_bits, root_bytes) = match table.kind {
            TableKind::LongestPrefix => {
                let bits = root_bits(table.capacity, data_bits);
                (bits, ROOT_BYTES << bits)
            }
            _ => (0, 0),
        };
        let first = (roots + root_bytes).next_multiple_of(LINE_BYTES);
        let bytes = u128::from(first) + chunks * u128::from(chunk_bytes);
        if bytes > BYTES_MAX {
            return None;
        }
        let (chunks, capacity) = (chunks as u64, table.capacity);
        let bytes = bytes as u64;
        Some(Self {
            data_bits,
            ways,
            entry_bytes,
            chunk_bytes,
            root_bits,
            roots,
            first,
            chunks,
            capacity,
            bytes,
        })
    }
}

impl Default for TableShape {
    fn default() -> Self {
        let (data_bits, root_bits, roots, first, capacity, bytes) = (0, 0, 0, 0, 0, 0);
        let (ways, entry_bytes, chunk_bytes, chunks) = (1, 1, LINE_BYTES, 1);
        Self {
            data_bits,
            ways,
            entry_bytes,
            chunk_bytes,
            root_bits,
            roots,
            first,
            chunks,
            capacity,
            bytes,
        }
    }
}

/// Returns the ways and bytes of a chunk: one line if it holds four entries or more, two lines if
/// they hold two or more, otherwise as many lines as [`WAYS_MAX`] entries need.
fn chunk(entry_bytes: u64) -> (u64, u64) {
    let fits = |bytes: u64| (bytes - CHUNK_HEAD_BYTES) / entry_bytes;
    for (bytes, fewest) in [(LINE_BYTES, 4), (2 * LINE_BYTES, 2)] {
        if fits(bytes) >= fewest {
            return (fits(bytes).min(WAYS_MAX), bytes);
        }
    }
    (WAYS_MAX, (CHUNK_HEAD_BYTES + WAYS_MAX * entry_bytes).next_multiple_of(LINE_BYTES))
}

/// Returns the number of leading data bits that a longest-prefix table has roots for: at least as
/// many roots as entries, up to a small limit.
fn root_bits(capacity: u64, data_bits: u32) -> u32 {
    let enough = capacity.checked_next_power_of_two().map_or(ROOT_BITS_MAX, u64::trailing_zeros);
    enough.clamp(1, ROOT_BITS_MAX).min(data_bits)
}

/// Returns the number of bytes that hold a value.
fn bytes_of(width: u32) -> u32 {
    width.div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loc;

    fn table(kind: TableKind, key_bits: u32, value_bits: u32, capacity: u64) -> Table {
        let name = "t".to_owned();
        Table { name, kind, key_bits, value_bits, capacity, loc: Loc::default() }
    }

    #[test]
    fn a_table_takes_its_keys_and_links_as_well_as_its_values() {
        // 12 bytes per entry, 4 entries in a line, a third of the ways free.
        let small = TableShape::of(&table(TableKind::Hash, 32, 32, 1024)).expect("it is small");
        assert_eq!((small.entry_bytes, small.ways, small.chunk_bytes), (12, 4, 64));
        assert_eq!((small.chunks, small.first), (384, 64));
        assert_eq!(small.bytes, 64 + 384 * 64);
        let values = TableShape::of(&table(TableKind::Array, 32, 32, 1 << 30));
        assert_eq!(values.map(|it| it.bytes), Some(1 << 32), "an array has values alone");
        // Values of 4,000,000,000 bytes would fit, but not together with their keys.
        assert_eq!(TableShape::of(&table(TableKind::Hash, 32, 32, 1_000_000_000)), None);
        assert_eq!(TableShape::of(&table(TableKind::Array, 32, 64, 1 << 30)), None);
        assert_eq!(TableShape::of(&table(TableKind::LruHash, 32, 64, u64::MAX)), None);
        let few_keys = TableShape::of(&table(TableKind::Array, 8, 64, u64::MAX));
        assert_eq!(few_keys.map(|it| it.capacity), Some(256), "no key names more");
    }
}
