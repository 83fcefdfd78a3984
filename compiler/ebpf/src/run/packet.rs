// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet as a program sees it: contiguous bytes, with head room and tail room.

use crate::abi::{
    ETHERNET_BYTES, HEAD_ROOM, PACKET_MAX, PAGE_BYTES, SHARED_INFO_BYTES, XDP_FRAME_BYTES,
};
use thiserror::Error;

/// The packet is longer than [`PACKET_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a packet of {0} bytes is longer than {PACKET_MAX}")]
pub struct TooLong(pub usize);

/// A packet with its room and the context's fields. It can be refilled repeatedly.
pub struct Packet {
    /// Room, metadata, packet, room. Bytes outside metadata and packet are zero unless this
    /// packet's program has written them.
    buffer: Vec<u8>,
    metadata: usize,
    data: usize,
    end: usize,
    /// Maximum offset of the packet's end.
    limit: usize,
    /// Range outside of which all bytes are zero since the packet was filled in.
    touched: (usize, usize),
    /// Number of the ingress device.
    pub ingress_ifindex: u32,
    /// Number of the receive queue.
    pub rx_queue_index: u32,
    /// Number of the egress device, for programs of a devmap.
    pub egress_ifindex: u32,
}

impl Packet {
    /// Creates a packet with these bytes, [`HEAD_ROOM`] before them, and the rest of a page after
    /// them.
    ///
    /// # Errors
    /// There are too many bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, TooLong> {
        let mut packet = Self {
            buffer: vec![0; PAGE_BYTES],
            metadata: HEAD_ROOM,
            data: HEAD_ROOM,
            end: HEAD_ROOM,
            limit: PAGE_BYTES - SHARED_INFO_BYTES,
            touched: (HEAD_ROOM, HEAD_ROOM),
            ingress_ifindex: 1,
            rx_queue_index: 0,
            egress_ifindex: 0,
        };
        packet.fill(bytes)?;
        Ok(packet)
    }

    /// Replaces the packet by another one; nothing of the old one remains, except the numbers of
    /// devices and queue.
    ///
    /// # Errors
    /// The packet is too long.
    pub fn fill(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if bytes.len() > PACKET_MAX {
            return Err(TooLong(bytes.len()));
        }
        let (start, end) = self.touched;
        self.buffer[start..end].fill(0);
        let end = HEAD_ROOM + bytes.len();
        self.limit = end.max(PAGE_BYTES - SHARED_INFO_BYTES);
        if self.buffer.len() < self.limit {
            self.buffer.resize(self.limit, 0);
        }
        self.buffer[HEAD_ROOM..end].copy_from_slice(bytes);
        (self.metadata, self.data, self.end) = (HEAD_ROOM, HEAD_ROOM, end);
        self.touched = (HEAD_ROOM, end);
        Ok(())
    }

    /// Returns the packet's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.data..self.end]
    }

    /// Returns the metadata before the packet.
    pub fn metadata(&self) -> &[u8] {
        &self.buffer[self.metadata..self.data]
    }

    /// Returns the packet's length in bytes.
    pub fn len(&self) -> usize {
        self.end - self.data
    }

    /// Returns whether the packet is empty.
    pub fn is_empty(&self) -> bool {
        self.end == self.data
    }

    /// Returns the offsets of metadata, packet and end in the address window.
    pub(crate) fn places(&self) -> [u64; 3] {
        [self.metadata as u64, self.data as u64, self.end as u64]
    }

    /// Returns `size` bytes of metadata or packet from `offset` of the window.
    #[inline]
    pub(crate) fn at(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let start = self.inside(offset, size)?;
        self.buffer.get(start..start + size)
    }

    /// As `at`, mutable.
    #[inline]
    pub(crate) fn at_mut(&mut self, offset: u64, size: usize) -> Option<&mut [u8]> {
        let start = self.inside(offset, size)?;
        self.buffer.get_mut(start..start + size)
    }

    #[inline]
    fn inside(&self, offset: u64, size: usize) -> Option<usize> {
        let start = usize::try_from(offset).ok()?;
        let fits = start >= self.metadata && start.checked_add(size)? <= self.end;
        fits.then_some(start)
    }

    /// Moves the start of the packet, with its metadata; returns whether that is possible.
    pub(crate) fn move_head(&mut self, by: i32) -> bool {
        let Some(data) = self.data.checked_add_signed(by as isize) else { return false };
        let length = self.data - self.metadata;
        if data < XDP_FRAME_BYTES + length || data + ETHERNET_BYTES > self.end {
            return false;
        }
        self.buffer.copy_within(self.metadata..self.data, data - length);
        (self.metadata, self.data) = (data - length, data);
        self.touched.0 = self.touched.0.min(self.metadata);
        true
    }

    /// Moves the end of the packet; returns whether that is possible. New bytes are zero.
    pub(crate) fn move_tail(&mut self, by: i32) -> bool {
        let Some(end) = self.end.checked_add_signed(by as isize) else { return false };
        if end > self.limit || end < self.data + ETHERNET_BYTES {
            return false;
        }
        if end > self.end {
            self.buffer[self.end..end].fill(0);
        }
        self.end = end;
        self.touched.1 = self.touched.1.max(end);
        true
    }

    /// Returns the offset of the metadata after moving its start, if there is room.
    pub(crate) fn moved_metadata(&self, by: i32) -> Option<usize> {
        let metadata = self.metadata.checked_add_signed(by as isize)?;
        (XDP_FRAME_BYTES..=self.data).contains(&metadata).then_some(metadata)
    }

    /// Sets the start of the metadata to a result of [`Packet::moved_metadata`].
    pub(crate) fn set_metadata(&mut self, metadata: usize) {
        self.metadata = metadata;
        self.touched.0 = self.touched.0.min(metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_move_as_far_as_there_is_room() {
        let mut packet = Packet::new(&[1; 60]).expect("a short one");
        assert!(!packet.move_head(-217) && packet.move_head(-216));
        assert_eq!(packet.len(), 276);
        assert!(packet.move_head(262) && !packet.move_head(1), "an Ethernet header stays");
        assert_eq!(packet.bytes(), [1; 14]);
        assert!(!packet.move_tail(-1));
        let room = PAGE_BYTES - SHARED_INFO_BYTES - HEAD_ROOM - 60;
        assert!(!packet.move_tail(room as i32 + 1) && packet.move_tail(room as i32));
        assert_eq!(packet.bytes()[14..], vec![0; room]);
    }

    #[test]
    fn metadata_goes_with_the_head() {
        let mut packet = Packet::new(&[1; 60]).expect("a short one");
        let metadata = packet.moved_metadata(-4).expect("there is room");
        packet.set_metadata(metadata);
        packet.at_mut(metadata as u64, 4).expect("inside").fill(9);
        assert!(packet.move_head(-20));
        assert_eq!(packet.metadata(), [9; 4]);
        assert_eq!(packet.moved_metadata(5), None, "beyond the packet's start");
    }

    #[test]
    fn nothing_of_the_last_packet_is_left() {
        let mut packet = Packet::new(&[7; 100]).expect("a short one");
        assert!(packet.move_head(-100) && packet.move_tail(50));
        let [_, data, end] = packet.places();
        packet.at_mut(data, (end - data) as usize).expect("inside").fill(7);
        packet.fill(&[1; 20]).expect("a short one");
        assert!(packet.move_head(-216) && packet.move_tail(200));
        assert!(packet.bytes().iter().filter(|&&byte| byte != 0).eq([1; 20].iter()));
        assert!(packet.fill(&vec![0; PACKET_MAX + 1]).is_err());
    }

    #[test]
    fn an_access_lies_between_metadata_and_end() {
        let packet = Packet::new(&[1; 20]).expect("a short one");
        let [_, data, end] = packet.places();
        assert!(packet.at(data, 20).is_some() && packet.at(data, 21).is_none());
        assert!(packet.at(data - 1, 1).is_none() && packet.at(end, 1).is_none());
        assert!(packet.at(u64::MAX, 8).is_none());
    }
}
