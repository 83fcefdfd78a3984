// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Extraction of state and items from a running program and insertion into another one, between
//! firings. Everything is addressed by position in the program. Nothing here is recorded, because a
//! replay could not repeat it.

use super::Interpreter;
use super::channel::Token;
use super::packet::PacketBuffer;
use crate::{Bits, EndpointId, Item, flit};
use std::ops::Range;

/// An item waiting in a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitingItem {
    /// A flit or a record.
    Bits(Bits),
    /// A packet.
    Packet {
        /// Contents of the packet.
        bytes: Vec<u8>,
        /// Remaining head room in bytes.
        head_room: usize,
        /// Remaining tail room in bytes.
        tail_room: usize,
    },
}

/// Position of a variable or table: the instance, and the index within its element.
type Place = (usize, usize);

impl Interpreter<'_> {
    /// Appends elements of a variable to `bytes`, each rounded up to whole bytes.
    pub fn read_elements(&self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>) {
        let memory = &self.instances[at.0].objects[at.1];
        let elements = elements.filter_map(|index| memory.element(index));
        elements.for_each(|element| bytes.extend_from_slice(&element.to_le_bytes()));
    }

    /// Writes elements of a variable, starting at `first`, each from whole bytes.
    pub fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]) {
        let memory = &mut self.instances[at.0].objects[at.1];
        let width = memory.elem_bits();
        let elements = bytes.chunks_exact(width.div_ceil(8) as usize);
        for (index, element) in (first..).zip(elements) {
            memory.store(index, 0, &Bits::from_le_bytes(width, element), None);
        }
    }

    /// Calls `each` with the keys and values of a table, in whole bytes, least recently used first
    /// if the table keeps that order.
    pub fn read_entries(&self, at: Place, each: &mut dyn FnMut(&[u8], &[u8])) {
        for (key, value) in self.instances[at.0].tables[at.1].entries() {
            each(&key.to_le_bytes(), &value.to_le_bytes());
        }
    }

    /// Sets an entry of a table; returns false if there is no room or the key is invalid.
    pub fn write_entry(&mut self, at: Place, key: &[u8], value: &[u8]) -> bool {
        let instance = &self.program.graph.instances[at.0];
        let table = &self.program.element(instance.element).tables[at.1];
        let key = Bits::from_le_bytes(table.key_bits, key);
        let value = Bits::from_le_bytes(table.value_bits, value);
        self.instances[at.0].tables[at.1].update(&key, &value)
    }

    /// Removes the entry under exactly `key`, if there is one.
    pub fn delete_entry(&mut self, at: Place, key: &[u8]) {
        let instance = &self.program.graph.instances[at.0];
        let table = &self.program.element(instance.element).tables[at.1];
        let key = Bits::from_le_bytes(table.key_bits, key);
        self.instances[at.0].tables[at.1].delete(&key);
    }

    /// Returns the inputs that the next firing of an instance waits for.
    pub fn mask(&self, instance: usize) -> u64 {
        self.instances[instance].mask
    }

    /// Makes the next firing of an instance wait for these inputs.
    pub fn set_mask(&mut self, instance: usize, mask: u64) {
        self.instances[instance].mask = mask;
        self.instances[instance].quiet_ready = None;
    }

    /// Returns whether the handler of an instance is suspended.
    pub fn is_suspended(&self, instance: usize) -> bool {
        self.instances[instance].resume.is_some()
    }

    /// Returns the time that `now` reads.
    pub fn clock_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    /// Advances the clock to `clock_ns`, unless it is already later.
    pub fn advance_clock(&mut self, clock_ns: u64) {
        self.shared.clock_ns = self.shared.clock_ns.max(clock_ns);
    }

    /// Removes the items waiting for the reader of a channel: those in it, the item that its writer
    /// holds for lack of room, which is counted as having entered, and those fed to its endpoint.
    pub fn take_waiting(&mut self, channel: usize) -> Vec<WaitingItem> {
        let mut tokens = self.channels[channel].take_all();
        for instance in &mut self.instances {
            let at = instance.outputs.iter().position(|output| output.index() == channel);
            let staged = at.and_then(|port| instance.staged[port].take());
            staged.iter().for_each(|token| self.channels[channel].count(token));
            tokens.extend(staged);
        }
        for input in &mut self.inputs {
            if input.channel.index() == channel {
                tokens.extend(input.queue.drain(..));
            }
        }
        tokens.into_iter().map(WaitingItem::of).collect()
    }

    /// Appends an item to a channel, uncounted and regardless of its depth; returns false if it is
    /// not of the channel's kind.
    pub fn put_waiting(&mut self, channel: usize, item: WaitingItem) -> bool {
        let kind = self.program.graph.channels[channel].item;
        let fits = match &item {
            WaitingItem::Bits(bits) => kind.value_type().bits() == Some(bits.width()),
            WaitingItem::Packet { .. } => matches!(kind, Item::Packet { .. }),
        };
        if fits {
            self.channels[channel].put_back(item.into_token());
        }
        fits
    }

    /// Feeds the rest of a packet, of which `taken` bytes were taken as flits.
    pub fn feed_rest(&mut self, endpoint: EndpointId, packet: &[u8], taken: usize) {
        let flits = flit::cut(packet).into_iter().skip(taken / flit::PAYLOAD_BYTES);
        let input = &mut self.inputs[self.endpoints[endpoint.index()]];
        self.channels[input.channel.index()].set_inside_packet(Some(taken > 0));
        input.queue.extend(flits.map(Token::Bits));
    }

    /// Returns whether the current packet of a flit channel is being dropped, and whether a kept
    /// packet is incomplete, if known.
    pub fn passing(&self, channel: usize) -> (bool, Option<bool>) {
        self.channels[channel].passing()
    }

    /// Restores the state that [`passing`](Self::passing) returns.
    pub fn set_passing(&mut self, channel: usize, (is_dropping, is_inside): (bool, Option<bool>)) {
        self.channels[channel].set_passing(is_dropping, is_inside);
    }

    /// Returns the bytes of an unfinished packet that have left an endpoint of flits.
    pub fn take_begun(&mut self, endpoint: EndpointId) -> Option<Vec<u8>> {
        self.outputs[self.endpoints[endpoint.index()]].take_begun()
    }

    /// Makes an endpoint of flits continue with an unfinished packet.
    pub fn put_begun(&mut self, endpoint: EndpointId, bytes: Vec<u8>) {
        self.outputs[self.endpoints[endpoint.index()]].put_begun(bytes);
    }
}

impl WaitingItem {
    fn of(token: Token) -> Self {
        match token {
            Token::Bits(bits) => Self::Bits(bits),
            Token::Packet(packet) => {
                let (head_room, tail_room) = packet.rooms();
                Self::Packet { bytes: packet.bytes().to_vec(), head_room, tail_room }
            }
        }
    }

    fn into_token(self) -> Token {
        match self {
            Self::Bits(bits) => Token::Bits(bits),
            Self::Packet { bytes, head_room, tail_room } => {
                Token::Packet(PacketBuffer::with_rooms(bytes, head_room, tail_room))
            }
        }
    }
}
