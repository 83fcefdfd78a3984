// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking state and items out of a graph and putting them into another, between runs. Everything
//! is told by positions in the manifest. Nothing here is recorded, for it is no act of the host
//! that a replay could repeat.

use crate::inside::{LoosePacket, move_memory};
use crate::manifest::ItemInfo;
use crate::{Graph, abi};
use freeport_ir::{Bits, InstanceId, TableKind};
use std::ops::Range;

/// What waits in a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LooseItem {
    /// A flit or a record.
    Bits(Bits),
    /// A packet.
    Packet(LoosePacket),
}

/// A frame that has left an endpoint in part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BegunFrame {
    /// What has left.
    pub bytes: Vec<u8>,
    /// Whether the end of the frame is to come.
    pub is_inside: bool,
}

/// Where a variable or a table is: the instance, and which of its element's it is.
pub type Place = (usize, usize);

impl Graph {
    /// Appends elements of a variable to `bytes`, each in whole bytes.
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

    /// Writes elements of a variable from `first` on, each from whole bytes.
    pub fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]) {
        let (width, depth) = self.variable_type(at);
        let (memory, stride) = self.code.whole_variable(at.0, at.1, depth);
        let elements = memory.chunks_exact_mut(stride).skip(first as usize);
        for (element, bytes) in elements.zip(bytes.chunks_exact(width)) {
            element[..width].copy_from_slice(bytes);
        }
    }

    /// Takes a variable over from another graph where it has the same type. Large ones are moved by
    /// their pages: `other` is left with anything in it.
    pub fn take_variable(&mut self, at: Place, other: &mut Graph, from: Place) {
        let (_, depth) = self.variable_type(at);
        let (source, source_stride) = other.code.whole_variable(from.0, from.1, depth);
        let (target, stride) = self.code.whole_variable(at.0, at.1, depth);
        assert_eq!(stride, source_stride, "equal types are stored alike");
        move_memory(source, target);
    }

    /// Takes a table over as it is, with the order of its uses, if both lie alike in memory: if
    /// kind, widths and capacity are the same; gives how many entries it has then.
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
        // Other kinds begin with how many entries there are, see `runtime/tables.h`.
        Some(match kind == TableKind::Array.name() {
            true => capacity,
            false => Bits::from_le_bytes(64, &head[..8]).to_u64(),
        })
    }

    /// Tells `each` the keys and values of a table, in whole bytes: in the order of their uses
    /// where that is kept, the longest unused first.
    pub fn read_entries(&self, at: Place, each: &mut dyn FnMut(&[u8], &[u8])) {
        let (_, _, key_bytes, value_bytes, _) = self.table_info(at);
        let request = abi::TableRequest::new(InstanceId::new(at.0), at.1, abi::TABLE_NEXT);
        let (mut key, mut value) = (vec![0; key_bytes], vec![0; value_bytes]);
        let mut cursor = 0;
        while self.code.act_on_table(request, &mut key, &mut value, &mut cursor) {
            each(&key, &value);
        }
    }

    /// Sets an entry of a table; false if there is no room, or no such key can be.
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

    /// The inputs that the next firing of an instance waits for.
    pub fn mask(&self, instance: usize) -> u64 {
        self.code.instance(instance).mask
    }

    /// Has the next firing of an instance wait for these inputs.
    pub fn set_mask(&mut self, instance: usize, mask: u64) {
        let instance = self.code.instance_mut(instance);
        instance.mask = mask;
        instance.is_quiet = 0;
    }

    /// Whether the handler of an instance waits in the middle.
    pub fn is_suspended(&self, instance: usize) -> bool {
        self.code.instance(instance).resume != 0
    }

    /// Most items that can wait in a channel; none in one that the host feeds.
    pub fn slots(&self, channel: usize) -> u32 {
        self.code.slots(channel)
    }

    /// Takes out what waits in a channel.
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

    /// Puts an item at the end of a channel, uncounted; false if there is no room for it.
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

    /// Whether the packet that passes a lossy channel is being dropped, and whether one that is
    /// kept has begun.
    pub fn passing(&self, channel: usize) -> (bool, bool) {
        let channel = self.code.channel(channel);
        (channel.is_dropping != 0, channel.is_inside != 0)
    }

    /// Sets what [`passing`](Self::passing) tells.
    pub fn set_passing(&mut self, channel: usize, (is_dropping, is_inside): (bool, bool)) {
        let channel = self.code.channel_mut(channel);
        (channel.is_dropping, channel.is_inside) = (is_dropping.into(), is_inside.into());
    }

    /// Bytes that were taken, as flits, of the frame that has to come first at an endpoint.
    pub fn read_of_frame(&mut self, endpoint: usize) -> u64 {
        self.input_of_flits(endpoint).map_or(0, |read| *read)
    }

    /// Has the next frame at an endpoint of flits be one of which that much was taken.
    pub fn set_read_of_frame(&mut self, endpoint: usize, bytes: u64) {
        if let Some(read) = self.input_of_flits(endpoint) {
            *read = bytes;
        }
    }

    /// The frame that an endpoint of flits has begun to write; none where it has not.
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

    /// Has an endpoint of flits go on with a frame that another graph has begun; false if it
    /// cannot.
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

    /// Bytes of an element of a variable, and how many there are.
    fn variable_type(&self, (instance, variable): Place) -> (usize, u64) {
        let element = self.manifest().instances[instance].element;
        let info = &self.manifest().elements[element].variables[variable];
        (info.width.div_ceil(8) as usize, info.depth)
    }

    /// Kind, bits of key and value in whole bytes, and capacity of a table: what it lies in memory
    /// by.
    fn table_info(&self, (instance, table): Place) -> (String, u32, usize, usize, u64) {
        let element = self.manifest().instances[instance].element;
        let info = &self.manifest().elements[element].tables[table];
        let (key, value) = (info.key_bytes(), info.value_bytes());
        (info.kind.clone(), info.key_bits, key, value, info.capacity)
    }
}
