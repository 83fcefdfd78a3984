// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Extraction of state and items from a graph and insertion into another one, between runs.
//! Everything is addressed by position in the manifest. Nothing here is recorded, because a replay
//! could not repeat it.

use crate::inside::{LoosePacket, move_memory};
use crate::manifest::ItemInfo;
use crate::{Graph, abi};
use freeport_ir::{Bits, InstanceId, TableKind};
use std::ops::Range;

/// An item waiting in a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LooseItem {
    /// A flit or a record.
    Bits(Bits),
    /// A packet.
    Packet(LoosePacket),
}

/// A frame that has partly left an endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BegunFrame {
    /// Bytes that have left.
    pub bytes: Vec<u8>,
    /// Whether the end of the frame is still to come.
    pub is_inside: bool,
}

/// Position of a variable or table: the instance, and the index within its element.
pub type Place = (usize, usize);

impl Graph {
    /// Appends elements of a variable to `bytes`, each rounded up to whole bytes.
    pub fn read_elements(&mut self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>) {
        let (width, depth) = self.variable_type(at);
        let (memory, stride) = self.code.whole_variable(at.0, at.1, depth);
        let range = elements.start as usize * stride..elements.end as usize * stride;
        match stride == width {
            true => bytes.extend_from_slice(&memory[range]),
            false => {
                let elements = memory[range].chunks_exact(stride);
                elements.for_each(|element| bytes.extend_from_slice(&element[..width]));
            }
        }
    }

    /// Writes elements of a variable, starting at `first`, each from whole bytes.
    pub fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]) {
        let (width, depth) = self.variable_type(at);
        let (memory, stride) = self.code.whole_variable(at.0, at.1, depth);
        let elements = memory.chunks_exact_mut(stride).skip(first as usize);
        for (element, bytes) in elements.zip(bytes.chunks_exact(width)) {
            element[..width].copy_from_slice(bytes);
        }
    }

    /// Takes a variable from another graph, where it has the same type. Pages of large variables
    /// are moved, which leaves the variable of `other` with unspecified contents.
    pub fn take_variable(&mut self, at: Place, other: &mut Graph, from: Place) {
        let (_, depth) = self.variable_type(at);
        let (source, source_stride) = other.code.whole_variable(from.0, from.1, depth);
        let (target, stride) = self.code.whole_variable(at.0, at.1, depth);
        assert_eq!(stride, source_stride, "equal types are stored alike");
        move_memory(source, target);
    }

    /// Takes a table unchanged, with its order of use, if both have the same memory layout: the
    /// same kind, widths and capacity. Returns the number of its entries.
    pub fn take_table(&mut self, at: Place, other: &mut Graph, from: Place) -> Option<u64> {
        let alike = self.table_info(at) == other.table_info(from);
        let source = other.code.whole_table(from.0, from.1);
        let target = self.code.whole_table(at.0, at.1);
        if !alike || source.len() != target.len() {
            return None;
        }
        move_memory(source, target);
        let (kind, .., capacity) = self.table_info(at);
        let head = self.code.whole_table(at.0, at.1);
        // Other kinds begin with the number of entries, see `runtime/tables.h`.
        Some(match kind == TableKind::Array.name() {
            true => capacity,
            false => Bits::from_le_bytes(64, &head[..8]).to_u64(),
        })
    }

    /// Calls `each` with the keys and values of a table, in whole bytes, least recently used first
    /// if the table keeps that order.
    pub fn read_entries(&self, at: Place, each: &mut dyn FnMut(&[u8], &[u8])) {
        let (_, _, key_bytes, value_bytes, _) = self.table_info(at);
        let request = abi::TableRequest::new(InstanceId::new(at.0), at.1, abi::TABLE_NEXT);
        let (mut key, mut value) = (vec![0; key_bytes], vec![0; value_bytes]);
        let mut cursor = 0;
        while self.code.act_on_table(request, &mut key, &mut value, &mut cursor) {
            each(&key, &value);
        }
    }

    /// Sets an entry of a table; returns false if there is no room or the key is invalid.
    pub fn write_entry(&mut self, at: Place, key: &[u8], value: &[u8]) -> bool {
        let request = abi::TableRequest::new(InstanceId::new(at.0), at.1, abi::TABLE_UPDATE);
        let (mut key, mut value) = (key.to_vec(), value.to_vec());
        self.code.act_on_table(request, &mut key, &mut value, &mut 0)
    }

    /// Removes the entry under exactly `key`, if there is one.
    pub fn delete_entry(&mut self, at: Place, key: &[u8]) {
        let request = abi::TableRequest::new(InstanceId::new(at.0), at.1, abi::TABLE_DELETE);
        let mut value = vec![0; self.table_info(at).3];
        self.code.act_on_table(request, &mut key.to_vec(), &mut value, &mut 0);
    }

    /// Returns the inputs that the next firing of an instance waits for.
    pub fn mask(&self, instance: usize) -> u64 {
        self.code.instance(instance).mask
    }

    /// Makes the next firing of an instance wait for these inputs.
    pub fn set_mask(&mut self, instance: usize, mask: u64) {
        let instance = self.code.instance_mut(instance);
        instance.mask = mask;
        instance.is_quiet = 0;
    }

    /// Returns whether the handler of an instance is suspended.
    pub fn is_suspended(&self, instance: usize) -> bool {
        self.code.instance(instance).resume != 0
    }

    /// Returns the maximum number of items that can wait in a channel; 0 if the host feeds it.
    pub fn slots(&self, channel: usize) -> u32 {
        self.code.slots(channel)
    }

    /// Removes the items waiting in a channel.
    pub fn take_items(&mut self, channel: usize) -> Vec<LooseItem> {
        match self.manifest().channels[channel].item.bits() {
            _ if self.code.slots(channel) == 0 => vec![],
            Some(width) => {
                let items = self.code.take_items(channel).into_iter();
                let bytes = width.div_ceil(8) as usize;
                items
                    .map(|item| LooseItem::Bits(Bits::from_le_bytes(width, &item[..bytes])))
                    .collect()
            }
            None => self.code.take_packets(channel).into_iter().map(LooseItem::Packet).collect(),
        }
    }

    /// Appends an item to a channel, uncounted; returns false if there is no room for it.
    pub fn put_item(&mut self, channel: usize, item: &LooseItem) -> bool {
        let fits = self.manifest().channels[channel].item;
        match (item, fits) {
            _ if self.code.slots(channel) == 0 => false,
            (LooseItem::Bits(bits), ItemInfo::Flit | ItemInfo::Record(_)) => {
                fits.bits() == Some(bits.width())
                    && self.code.put_item(channel, &bits.to_le_bytes())
            }
            (LooseItem::Packet(packet), ItemInfo::Packet) => self.code.put_packet(channel, packet),
            _ => false,
        }
    }

    /// Returns whether the current packet of a lossy channel is being dropped, and whether a kept
    /// packet is incomplete.
    pub fn passing(&self, channel: usize) -> (bool, bool) {
        let channel = self.code.channel(channel);
        (channel.is_dropping != 0, channel.is_inside != 0)
    }

    /// Restores the state that [`passing`](Self::passing) returns.
    pub fn set_passing(&mut self, channel: usize, (is_dropping, is_inside): (bool, bool)) {
        let channel = self.code.channel_mut(channel);
        (channel.is_dropping, channel.is_inside) = (is_dropping.into(), is_inside.into());
    }

    /// Returns the number of bytes already taken, as flits, from the first frame at an endpoint.
    pub fn read_of_frame(&mut self, endpoint: usize) -> u64 {
        self.input_of_flits(endpoint).map_or(0, |read| *read)
    }

    /// Declares how many bytes were already taken from the next frame at an endpoint of flits.
    pub fn set_read_of_frame(&mut self, endpoint: usize, bytes: u64) {
        if let Some(read) = self.input_of_flits(endpoint) {
            *read = bytes;
        }
    }

    /// Returns the frame that an endpoint of flits has begun to write; `None` if there is none.
    pub fn take_begun_frame(&mut self, endpoint: usize) -> Option<BegunFrame> {
        let output = self.output_of_flits(endpoint)?;
        if output.is_inside == 0 {
            return None;
        }
        let used = (output.used as usize).min(output.begun.len());
        let frame = BegunFrame { bytes: output.begun[..used].to_vec(), is_inside: true };
        (output.used, output.is_inside, output.is_too_long) = (0, 0, 0);
        Some(frame)
    }

    /// Makes an endpoint of flits continue with a frame that another graph has begun; returns false
    /// if it cannot.
    pub fn put_begun_frame(&mut self, endpoint: usize, frame: &BegunFrame) -> bool {
        let Some(output) = self.output_of_flits(endpoint) else { return false };
        let Some(room) = output.begun.get_mut(..frame.bytes.len()) else { return false };
        room.copy_from_slice(&frame.bytes);
        output.used = frame.bytes.len() as u64;
        output.is_inside = frame.is_inside.into();
        true
    }

    fn input_of_flits(&mut self, endpoint: usize) -> Option<&mut u64> {
        let info = &self.manifest().endpoints[endpoint];
        let is_one = info.is_input && info.item == ItemInfo::Flit;
        self.code.read_of_frame(endpoint).filter(|_| is_one)
    }

    fn output_of_flits(&mut self, endpoint: usize) -> Option<&mut abi::FlitOutput> {
        let info = &self.manifest().endpoints[endpoint];
        if info.is_input || info.item != ItemInfo::Flit {
            return None;
        }
        self.code.begun_frame(endpoint)
    }

    /// Returns the size of an element of a variable, and the number of elements.
    fn variable_type(&self, (instance, variable): Place) -> (usize, u64) {
        let element = self.manifest().instances[instance].element;
        let info = &self.manifest().elements[element].variables[variable];
        (info.width.div_ceil(8) as usize, info.depth)
    }

    /// Returns the properties that determine the memory layout of a table: kind, width of the key,
    /// sizes of key and value in bytes, and capacity.
    fn table_info(&self, (instance, table): Place) -> (String, u32, usize, usize, u64) {
        let element = self.manifest().instances[instance].element;
        let info = &self.manifest().elements[element].tables[table];
        let (key, value) = (info.key_bytes(), info.value_bytes());
        (info.kind.clone(), info.key_bits, key, value, info.capacity)
    }
}
