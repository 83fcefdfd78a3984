// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of a graph between two runs, for transfer to or from another graph: memory of
//! variables and tables, items in rings, and unfinished frames of endpoints. All unsafe code for
//! this is here.

use crate::library::Instance;
use crate::{abi, memory};
use std::ptr;

/// A packet taken out of a ring, or to be put in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoosePacket {
    /// Contents of the packet.
    pub bytes: Vec<u8>,
    /// Remaining head room in bytes.
    pub head_room: u32,
    /// Remaining tail room in bytes.
    pub tail_room: u32,
}

impl Instance {
    /// Returns all memory of a variable of `depth` elements, and the size of each; the caller has
    /// checked the arguments against the manifest.
    pub fn whole_variable(
        &mut self,
        instance: usize,
        object: usize,
        depth: u64,
    ) -> (&mut [u8], usize) {
        let layout = self.instance_layout(instance);
        // SAFETY: there is a layout for every object of the manifest.
        let object = unsafe { layout.objects.add(object) };
        // SAFETY: as above; layouts are constants of the library.
        let object = unsafe { &*object };
        let start = self.at(layout.state_offset + object.offset);
        let stride = object.stride as usize;
        // SAFETY: the variable has that many elements, and the graph is borrowed exclusively.
        (unsafe { std::slice::from_raw_parts_mut(start, depth as usize * stride) }, stride)
    }

    /// Returns all memory of a table of the manifest.
    pub fn whole_table(&mut self, instance: usize, table: usize) -> &mut [u8] {
        let layout = self.instance_layout(instance);
        // SAFETY: there is a layout for every table of the manifest.
        let table = unsafe { layout.tables.add(table) };
        // SAFETY: as above; layouts are constants of the library.
        let table = unsafe { &*table };
        let start = self.at(layout.state_offset + table.offset);
        // SAFETY: the range is within the graph, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start, table.stride as usize) }
    }

    /// Returns the number of slots in the ring of a channel; 0 if items never wait there.
    pub fn slots(&self, channel: usize) -> u32 {
        self.channel_layout(channel).slots as u32
    }

    /// Removes the bytes of all items from a ring, in order.
    pub fn take_items(&mut self, channel: usize) -> Vec<Vec<u8>> {
        let found = self.channel(channel);
        let (head, fill) = (found.head, found.fill);
        let items = (0..fill).map(|at| self.slot(channel, head.wrapping_add(at)).to_vec());
        let items = items.collect();
        self.channel_mut(channel).fill = 0;
        items
    }

    /// Appends an item to a ring; returns false if there is no room, or the item is too large.
    pub fn put_item(&mut self, channel: usize, item: &[u8]) -> bool {
        let abi::Channel { head, fill, .. } = *self.channel(channel);
        let layout = self.channel_layout(channel);
        if fill >= layout.slots as u32 || layout.item_bytes < item.len() as u64 {
            return false;
        }
        let slot = self.slot(channel, head.wrapping_add(fill));
        slot.fill(0);
        slot[..item.len()].copy_from_slice(item);
        self.channel_mut(channel).fill += 1;
        true
    }

    /// Removes all packets from a ring of packets, in order. Their buffers are freed with the
    /// graph.
    pub fn take_packets(&mut self, channel: usize) -> Vec<LoosePacket> {
        let items = self.take_items(channel);
        let packets = items.iter().map(|item| {
            assert!(item.len() >= size_of::<abi::Packet>(), "a ring of packets has such items");
            // SAFETY: an item of a ring of packets is such a structure.
            let packet = unsafe { item.as_ptr().cast::<abi::Packet>().read_unaligned() };
            let length = packet.length as usize;
            // SAFETY: between runs a packet lies in a buffer of the graph, or has no bytes.
            let bytes = unsafe { std::slice::from_raw_parts(packet.data, length) }.to_vec();
            let abi::Packet { head_room, tail_room, .. } = packet;
            LoosePacket { bytes, head_room, tail_room }
        });
        packets.collect()
    }

    /// Appends a packet to a ring of packets; returns false if there is no room.
    pub fn put_packet(&mut self, channel: usize, packet: &LoosePacket) -> bool {
        if self.channel(channel).fill >= self.slots(channel) {
            return false;
        }
        let LoosePacket { bytes, head_room, tail_room } = packet;
        let (head, tail) = (*head_room as usize, *tail_room as usize);
        let extent = (head + bytes.len() + tail).max(abi::POOL_BUFFER_BYTES);
        let buffer = self.new_buffer(extent);
        // SAFETY: the buffer is large enough for the packet with its head room and tail room.
        let data = unsafe { buffer.add(head) };
        // SAFETY: as above; the buffer is new, so the ranges do not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        let made = abi::Packet {
            data,
            length: bytes.len() as u64,
            head_room: *head_room,
            tail_room: *tail_room,
            head_space: *head_room,
            tail_space: *tail_room,
            owner: abi::OWNER_POOL,
        };
        let size = size_of::<abi::Packet>();
        // SAFETY: the structure has no padding, and is read as bytes.
        let item = unsafe { std::slice::from_raw_parts((&raw const made).cast::<u8>(), size) };
        self.put_item(channel, item)
    }

    /// Returns the count of bytes already read from the frame that the next run has to begin with.
    pub fn read_of_frame(&mut self, endpoint: usize) -> Option<&mut u64> {
        let offset = self.endpoint_layout(endpoint).begun;
        // SAFETY: where flits come in, this is the offset of a number in the graph.
        (offset != u64::MAX).then(|| unsafe { &mut *self.at(offset).cast::<u64>() })
    }

    /// Returns the state of a frame that an endpoint has not finished writing.
    pub fn begun_frame(&mut self, endpoint: usize) -> Option<&mut abi::FlitOutput> {
        let offset = self.endpoint_layout(endpoint).begun;
        // SAFETY: where flits leave, this is the offset of such a structure in the graph.
        (offset != u64::MAX).then(|| unsafe { &mut *self.at(offset).cast::<abi::FlitOutput>() })
    }

    fn slot(&mut self, channel: usize, position: u32) -> &mut [u8] {
        let abi::ChannelLayout { items, item_bytes, slots, .. } = *self.channel_layout(channel);
        let at = u64::from(position) & (slots - 1);
        let start = self.at(items + at * item_bytes);
        // SAFETY: the slot is in the ring, and the graph is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start, item_bytes as usize) }
    }
}

/// Moves the contents of `from` to `to`, which has the same length; `from` is unspecified
/// afterwards. Large memory is moved by page remapping instead of copying.
pub(crate) fn move_memory(from: &mut [u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "the callers compare the types");
    let moved = memory::move_pages(from, to);
    let rest = moved.end..from.len();
    to[..moved.start].copy_from_slice(&from[..moved.start]);
    to[rest.clone()].copy_from_slice(&from[rest]);
}
