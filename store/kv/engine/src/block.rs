// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocks: pairs that are not kept in the index. A block is a header, the key, and the value.
//!
//! - Up to 512 bytes, with a key of up to 255: two bytes of header, as published. One is the
//!   key's length; the other has the tag and the unused bytes of the block.
//! - Larger: eight bytes of header, the lengths of key and value. The publication stores no pairs
//!   above 510 bytes; here a block has consecutive bytes whatever its size, so that vectors and
//!   documents stay one range.

use freeport_kv_slab::Class;

use crate::memory::Memory;

/// Most bytes of a key and of a value.
pub const PART_BYTES: usize = 512 << 20;

const SHORT_HEADER: usize = 2;
const LONG_HEADER: usize = 8;
const SHORT_BLOCK_BYTES: usize = 512;
const SHORT_KEY_BYTES: usize = 255;
const TAG: u8 = 0x80;
const LONG_TAG: u32 = 1 << 31;

/// Place and lengths of a pair, wherever it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Offset of the key; the value follows it.
    pub at: usize,
    /// Bytes of the key.
    pub key_bytes: usize,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// The user's tag.
    pub is_tagged: bool,
}

/// The class of a block for a pair; none if the pair is larger than [`PART_BYTES`] allows.
#[inline]
pub fn class_for(key_bytes: usize, value_bytes: usize, unit_shift: u32) -> Option<Class> {
    if key_bytes > PART_BYTES || value_bytes > PART_BYTES {
        return None;
    }
    let short = SHORT_HEADER + key_bytes + value_bytes;
    let bytes = if short <= SHORT_BLOCK_BYTES && key_bytes <= SHORT_KEY_BYTES {
        short
    } else {
        (LONG_HEADER + key_bytes + value_bytes).max(SHORT_BLOCK_BYTES + 1)
    };
    Class::holding_units(u32::try_from(bytes.div_ceil(1 << unit_shift)).ok()?)
}

/// Writes a pair into a block of the class that [`class_for`] gave.
#[inline]
pub fn write(
    memory: &mut Memory,
    (offset, class): (usize, Class),
    (key, value): (&[u8], &[u8]),
    is_tagged: bool,
    unit_shift: u32,
) {
    let lengths = (key.len(), value.len());
    let start = write_header(memory, (offset, class), lengths, is_tagged, unit_shift);
    let pair = memory.bytes_mut(start, key.len() + value.len());
    pair[..key.len()].copy_from_slice(key);
    pair[key.len()..].copy_from_slice(value);
}

/// Writes the header of a block for lengths of key and value that it has room for. Returns the
/// offset of the key.
#[inline]
pub fn write_header(
    memory: &mut Memory,
    (offset, class): (usize, Class),
    (key_bytes, value_bytes): (usize, usize),
    is_tagged: bool,
    unit_shift: u32,
) -> usize {
    let capacity = (class.units() as usize) << unit_shift;
    if capacity <= SHORT_BLOCK_BYTES {
        let unused = (capacity - SHORT_HEADER - key_bytes - value_bytes) as u8;
        let header = memory.bytes_mut(offset, SHORT_HEADER);
        header[0] = key_bytes as u8;
        header[1] = unused | if is_tagged { TAG } else { 0 };
        offset + SHORT_HEADER
    } else {
        let tag = if is_tagged { LONG_TAG } else { 0 };
        let header = memory.bytes_mut(offset, LONG_HEADER);
        header[..4].copy_from_slice(&(key_bytes as u32 | tag).to_le_bytes());
        header[4..8].copy_from_slice(&(value_bytes as u32).to_le_bytes());
        offset + LONG_HEADER
    }
}

/// The pair in a block.
#[inline(always)]
pub fn read(memory: &Memory, (offset, class): (usize, Class), unit_shift: u32) -> Pair {
    let capacity = (class.units() as usize) << unit_shift;
    if capacity <= SHORT_BLOCK_BYTES {
        let header = memory.bytes(offset, SHORT_HEADER);
        let key_bytes = usize::from(header[0]);
        let unused = usize::from(header[1] & !TAG);
        Pair {
            at: offset + SHORT_HEADER,
            key_bytes,
            value_bytes: capacity - SHORT_HEADER - unused - key_bytes,
            is_tagged: header[1] & TAG != 0,
        }
    } else {
        let header = memory.bytes(offset, LONG_HEADER);
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        Pair {
            at: offset + LONG_HEADER,
            key_bytes: (word(0) & !LONG_TAG) as usize,
            value_bytes: word(4) as usize,
            is_tagged: word(0) & LONG_TAG != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_they_were_written() {
        for unit_shift in 4..=6 {
            let mut memory = Memory::reserve(64, 1 << 20, unit_shift).expect("address space");
            let lengths = [0, 1, 5, 30, 100, 254, 255, 256, 300, 509, 510, 511, 512, 70_000];
            for key_bytes in lengths {
                for value_bytes in lengths {
                    let class = class_for(key_bytes, value_bytes, unit_shift).expect("small");
                    let (key, value) = (vec![3; key_bytes], vec![4; value_bytes]);
                    let place = (memory.offset_of(1), class);
                    for is_tagged in [true, false] {
                        write(&mut memory, place, (&key, &value), is_tagged, unit_shift);
                        let pair = read(&memory, place, unit_shift);
                        let expected = Pair { at: pair.at, key_bytes, value_bytes, is_tagged };
                        assert_eq!(pair, expected, "unit shift {unit_shift}");
                        assert_eq!(memory.bytes(pair.at, key_bytes), key);
                        assert_eq!(memory.bytes(pair.at + key_bytes, value_bytes), value);
                        let end = pair.at + key_bytes + value_bytes - place.0;
                        assert!(end <= (class.units() as usize) << unit_shift);
                    }
                }
            }
        }
    }

    #[test]
    fn a_pair_of_100_bytes_takes_112() {
        let class = class_for(16, 84, 4).expect("small");
        assert_eq!(class.units() * 16, 112);
    }

    #[test]
    fn there_are_blocks_for_512_mib_and_none_for_more() {
        assert!(class_for(20, PART_BYTES, 4).is_some());
        assert!(class_for(20, PART_BYTES + 1, 4).is_none());
    }
}
