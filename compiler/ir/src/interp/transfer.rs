// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking state and items out of a running program and putting them into another, between firings.
//! Everything is told by positions in the program. Nothing here is recorded, for it is no act of
//! the host that a replay could repeat.

use super::Interpreter;
use super::channel::Token;
use super::packet::PacketBuffer;
use crate::{Bits, EndpointId, Item, flit};
use std::ops::Range;

/// What waits in a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitingItem {
    /// A flit or a record.
    Bits(Bits),
    /// A packet.
    Packet {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Bytes by which it may still grow in front.
        head_room: usize,
        /// Bytes by which it may still grow behind.
        tail_room: usize,
    },
}

/// Where a variable or a table is: the instance, and which of its element's it is.
type Place = (usize, usize);

impl Interpreter<'_> {
    /// Appends elements of a variable to `bytes`, each in whole bytes.
    pub fn read_elements(&self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>) {
        let memory = &self.instances[at.0].objects[at.1];
        let elements = elements.filter_map(|index| memory.element(index));
        elements.for_each(|element| bytes.extend_from_slice(&element.to_le_bytes()));
    }

    /// Writes elements of a variable from `first` on, each from whole bytes.
    pub fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]) {
        let memory = &mut self.instances[at.0].objects[at.1];
        let width = memory.elem_bits();
        let elements = bytes.chunks_exact(width.div_ceil(8) as usize);
        for (index, element) in (first..).zip(elements) {
            memory.store(index, 0, &Bits::from_le_bytes(width, element), None);
        }
    }

    /// Tells `each` the keys and values of a table, in whole bytes: in the order of their uses
    /// where that is kept, the longest unused first.
    pub fn read_entries(&self, at: Place, each: &mut dyn FnMut(&[u8], &[u8])) {
        for (key, value) in self.instances[at.0].tables[at.1].entries() {
            each(&key.to_le_bytes(), &value.to_le_bytes());
        }
    }

    /// Sets an entry of a table; false if there is no room, or no such key can be.
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

    /// The inputs that the next firing of an instance waits for.
    pub fn mask(&self, instance: usize) -> u64 {
        self.instances[instance].mask
    }

    /// Has the next firing of an instance wait for these inputs.
    pub fn set_mask(&mut self, instance: usize, mask: u64) {
        self.instances[instance].mask = mask;
        self.instances[instance].quiet_ready = None;
    }

    /// Whether the handler of an instance waits in the middle.
    pub fn is_suspended(&self, instance: usize) -> bool {
        self.instances[instance].resume.is_some()
    }

    /// What the time is, as `now` gives it.
    pub fn clock_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    /// Has the time go on from `clock_ns`, unless it is later already.
    pub fn advance_clock(&mut self, clock_ns: u64) {
        self.shared.clock_ns = self.shared.clock_ns.max(clock_ns);
    }

    /// Takes out what waits in a channel: the item too that its writer holds for want of room, and
    /// that counts as one that has entered, and what was fed to its endpoint.
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

    /// Puts an item at the end of a channel, uncounted and whatever its depth; false if it is not
    /// of the channel's kind.
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

    /// Feeds the rest of a packet of which that many bytes were taken as flits.
    pub fn feed_rest(&mut self, endpoint: EndpointId, packet: &[u8], taken: usize) {
        let flits = flit::cut(packet).into_iter().skip(taken / flit::PAYLOAD_BYTES);
        let input = &mut self.inputs[self.endpoints[endpoint.index()]];
        self.channels[input.channel.index()].set_inside_packet(Some(taken > 0));
        input.queue.extend(flits.map(Token::Bits));
    }

    /// Whether the packet that passes a channel of flits is being dropped, and whether one that is
    /// kept has begun to enter it, if that is known.
    pub fn passing(&self, channel: usize) -> (bool, Option<bool>) {
        self.channels[channel].passing()
    }

    /// Sets what [`passing`](Self::passing) tells.
    pub fn set_passing(&mut self, channel: usize, (is_dropping, is_inside): (bool, Option<bool>)) {
        self.channels[channel].set_passing(is_dropping, is_inside);
    }

    /// What has left an endpoint of flits of a packet whose end is to come.
    pub fn take_begun(&mut self, endpoint: EndpointId) -> Option<Vec<u8>> {
        self.outputs[self.endpoints[endpoint.index()]].take_begun()
    }

    /// Has an endpoint of flits go on with a packet that has begun.
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
