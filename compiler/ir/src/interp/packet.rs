// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet as a value: its bytes, and the room around them.
//!
//! A packet enters the graph with [`HEAD_ROOM_BYTES`] free bytes in front, and tail room up to
//! [`TAIL_LIMIT_BYTES`] from its start. Both travel with the packet, so that how much an element
//! may add depends on the packet alone and not on how a back end stores it.

use crate::Bits;

/// Free bytes in front of a packet that has just entered the graph.
pub const HEAD_ROOM_BYTES: usize = 256;
/// Maximum distance from a packet's original start to its end.
pub const TAIL_LIMIT_BYTES: usize = 9_216;

/// Maximum number of packets that one firing can create: as many as it can put.
pub const MOST_NEW_PACKETS: u32 = 64;

/// Bytes of a packet, with its head room and tail room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PacketBuffer {
    bytes: Vec<u8>,
    head_room: usize,
    tail_room: usize,
}

impl PacketBuffer {
    pub fn new(bytes: &[u8]) -> Self {
        let tail_room = TAIL_LIMIT_BYTES.saturating_sub(bytes.len());
        Self { bytes: bytes.to_vec(), head_room: HEAD_ROOM_BYTES, tail_room }
    }

    /// Creates a packet from elsewhere with its remaining head room and tail room.
    pub fn with_rooms(bytes: Vec<u8>, head_room: usize, tail_room: usize) -> Self {
        Self { bytes, head_room, tail_room }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the head room and the tail room.
    pub fn rooms(&self) -> (usize, usize) {
        (self.head_room, self.tail_room)
    }

    /// Loads `count` bytes from `offset`; `None` if any of them is beyond the packet.
    pub fn load(&self, offset: &Bits, count: u32) -> Option<Bits> {
        let range = byte_range(offset, count as usize, self.bytes.len())?;
        Some(Bits::from_le_bytes(count * 8, &self.bytes[range]))
    }

    /// Stores at `offset`; returns false and stores nothing if any byte is beyond the packet.
    pub fn store(&mut self, offset: &Bits, value: &Bits) -> bool {
        let value = value.to_le_bytes();
        let Some(range) = byte_range(offset, value.len(), self.bytes.len()) else { return false };
        self.bytes[range].copy_from_slice(&value);
        true
    }

    /// Moves the start; returns false and moves nothing if room or length does not allow it.
    pub fn adjust_head(&mut self, delta: &Bits) -> bool {
        let Some((shrinks, by)) = magnitude(delta) else { return false };
        if !shrinks && by <= self.head_room {
            self.head_room -= by;
            self.bytes.splice(..0, std::iter::repeat_n(0, by));
        } else if shrinks && by <= self.bytes.len() {
            self.head_room += by;
            self.bytes.drain(..by);
        } else {
            return false;
        }
        true
    }

    /// Moves the end; returns false and moves nothing if room or length does not allow it.
    pub fn adjust_tail(&mut self, delta: &Bits) -> bool {
        let Some((grows, by)) = magnitude(delta) else { return false };
        if grows && by <= self.tail_room {
            self.tail_room -= by;
            self.bytes.resize(self.bytes.len() + by, 0);
        } else if !grows && by <= self.bytes.len() {
            self.tail_room += by;
            self.bytes.truncate(self.bytes.len() - by);
        } else {
            return false;
        }
        true
    }
}

/// Converts a packet to an item of a channel's history: byte k in bits 8k+7:8k; a single 0 bit for
/// an empty packet, since a bit vector cannot be empty.
pub fn packet_bits(bytes: &[u8]) -> Bits {
    match u32::try_from(bytes.len() * 8) {
        Ok(width) if width > 0 => Bits::from_le_bytes(width, bytes),
        _ => Bits::zero(1),
    }
}

/// Returns the positions of `count` bytes from `offset`, if all are below `length`.
pub(super) fn byte_range(
    offset: &Bits,
    count: usize,
    length: usize,
) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset.checked_u64()?).ok()?;
    let end = start.checked_add(count)?;
    (end <= length).then_some(start..end)
}

/// Returns whether a signed number is 0 or more, and its magnitude; `None` if beyond any packet's
/// size.
fn magnitude(delta: &Bits) -> Option<(bool, usize)> {
    let by = delta.to_i64();
    if delta.width() > 64 && Bits::from_u64(64, by as u64).sign_extend(delta.width()) != *delta {
        return None;
    }
    Some((by >= 0, usize::try_from(by.unsigned_abs()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(by: i64) -> Bits {
        Bits::from_u64(16, by as u64)
    }

    #[test]
    fn the_head_moves_within_its_room_and_new_bytes_are_0() {
        let mut packet = PacketBuffer::new(&[1, 2, 3]);
        assert!(packet.adjust_head(&signed(2)));
        assert_eq!(packet.bytes(), [3]);
        assert!(packet.adjust_head(&signed(-2)));
        assert_eq!(packet.bytes(), [0, 0, 3]);
        assert!(!packet.adjust_head(&signed(4)));
        assert!(!packet.adjust_head(&signed(-(HEAD_ROOM_BYTES as i64) - 1)));
        assert!(packet.adjust_head(&signed(-(HEAD_ROOM_BYTES as i64))));
        assert_eq!(packet.bytes().len(), 3 + HEAD_ROOM_BYTES);
        assert!(!packet.adjust_head(&signed(-1)));
    }

    #[test]
    fn the_tail_moves_within_its_room_and_new_bytes_are_0() {
        let mut packet = PacketBuffer::new(&[1, 2, 3]);
        assert!(packet.adjust_tail(&signed(-1)));
        assert!(packet.adjust_tail(&signed(2)));
        assert_eq!(packet.bytes(), [1, 2, 0, 0]);
        assert!(packet.adjust_tail(&signed(TAIL_LIMIT_BYTES as i64 - 4)));
        assert!(!packet.adjust_tail(&signed(1)));
        assert!(!packet.adjust_tail(&signed(-(TAIL_LIMIT_BYTES as i64) - 1)));
    }

    #[test]
    fn a_distance_too_wide_for_a_machine_word_is_refused() {
        let mut packet = PacketBuffer::new(&[1, 2, 3]);
        let far = Bits::zero(100).insert(64, &Bits::from_u64(1, 1));
        assert!(!packet.adjust_head(&far) && !packet.adjust_tail(&far));
        let minus_one = Bits::ones(100);
        assert!(packet.adjust_tail(&minus_one));
        assert_eq!(packet.bytes(), [1, 2]);
    }

    #[test]
    fn accesses_reach_to_the_last_byte_and_no_further() {
        let mut packet = PacketBuffer::new(&[1, 2, 3, 4]);
        assert_eq!(packet.load(&signed(2), 2), Some(Bits::from_u64(16, 0x0403)));
        assert_eq!(packet.load(&signed(3), 2), None);
        assert_eq!(packet.load(&Bits::ones(64), 2), None);
        assert!(packet.store(&signed(1), &Bits::from_u64(16, 0xbbaa)));
        assert!(!packet.store(&signed(3), &Bits::from_u64(16, 0xffff)));
        assert_eq!(packet.bytes(), [1, 0xaa, 0xbb, 4]);
    }
}
