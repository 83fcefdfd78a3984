// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts helpers that move the packet's ends, and copy bytes from and to it.

use super::flow::Frame;
use super::held::{Held, State};
use super::{Lifter, NotLiftable};
use crate::abi::{END_MAX, ETHERNET_BYTES, HEAD_ROOM, XDP_FRAME_BYTES};
use crate::maps::ErrorNumber;
use freeport_ir::{BinaryOp, BlockId, CompareOp, Op, Type, ValueId};

/// Maximum number of bytes of a copy.
const COPY_MAX: u64 = 512;

impl Lifter<'_> {
    /// Moves the start, if an Ethernet header remains and there is room.
    pub fn adjust_head(&mut self, state: &mut State) -> Result<ValueId, NotLiftable> {
        let delta = self.delta(state)?;
        let (length, before) = (self.length(), self.start_moved());
        let left = self.builder.binary(BinaryOp::Sub, length, delta);
        let is_left = self.is_header_left(left);
        let start = self.add(before, delta);
        let first = self.word((XDP_FRAME_BYTES as i64 - HEAD_ROOM as i64) as u64);
        let has_room = self.builder.compare(CompareOp::SLe, first, start);
        let may = self.both(is_left, has_room);
        let packet = self.packet;
        Ok(self.adjust(state, may, Op::PacketAdjustHead { packet, delta }, Some(start)))
    }

    /// Moves the end, if an Ethernet header remains and the page has room.
    pub fn adjust_tail(&mut self, state: &mut State) -> Result<ValueId, NotLiftable> {
        let delta = self.delta(state)?;
        let (length, start) = (self.length(), self.start_moved());
        let left = self.add(length, delta);
        let is_left = self.is_header_left(left);
        let (end, most) = (self.add(start, left), self.word(END_MAX));
        let has_room = self.builder.compare(CompareOp::SLe, end, most);
        let none = self.word(0);
        let shrinks = self.builder.compare(CompareOp::SLe, delta, none);
        let has_room = self.builder.binary(BinaryOp::Or, shrinks, has_room);
        let may = self.both(is_left, has_room);
        let packet = self.packet;
        Ok(self.adjust(state, may, Op::PacketAdjustTail { packet, delta }, None))
    }

    fn delta(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        let delta = self.number(state.get(2))?;
        Ok(self.signed_half(delta))
    }

    fn start_moved(&mut self) -> ValueId {
        let zero = self.builder.number(32, 0);
        self.builder.load(self.moved, zero, 0, 64)
    }

    fn is_header_left(&mut self, length: ValueId) -> ValueId {
        let least = self.word(ETHERNET_BYTES as u64);
        self.builder.compare(CompareOp::SLe, least, length)
    }

    /// Moves an end if permitted, and updates the offset of the packet's start. Returns the
    /// helper's result.
    fn adjust(
        &mut self,
        state: &mut State,
        may: ValueId,
        op: Op,
        start: Option<ValueId>,
    ) -> ValueId {
        let error = self.error(ErrorNumber::EINVAL);
        let (ends, result) = self.only_if(may, error);
        let is_moved = self.builder.push(op, Type::Bits(1));
        if let Some(start) = start {
            let zero = self.builder.number(32, 0);
            self.builder.store(self.moved, zero, 0, start);
        }
        let ok = self.word(0);
        let outcome = self.select(is_moved, ok, error);
        self.end_if(ends, outcome);
        // Packet addresses are invalid from here on.
        for held in &mut state.registers {
            if matches!(held, Held::Packet(_)) {
                *held = Held::Nothing;
            }
        }
        result
    }

    /// `bpf_xdp_load_bytes`.
    pub fn load_packet_bytes(
        &mut self,
        frame: &Frame,
        state: &mut State,
    ) -> Result<ValueId, NotLiftable> {
        let bytes = self.copied()?;
        let offset = self.number(state.get(2))?;
        let offset = self.low_half(offset);
        if let Held::Stack(_) = state.get(3) {
            self.forget_overwritten(frame, 3, state);
        }
        let (result, ends) = self.if_in_packet(offset, bytes);
        let load = Op::PacketLoad { packet: self.packet, offset, bytes };
        let value = self.builder.push(load, Type::Bits(bytes * 8));
        self.write(state.get(3), 0, value, 3)?;
        self.end_copy(ends);
        Ok(result)
    }

    /// `bpf_xdp_store_bytes`.
    pub fn store_packet_bytes(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        let bytes = self.copied()?;
        let offset = self.number(state.get(2))?;
        let offset = self.low_half(offset);
        let (result, ends) = self.if_in_packet(offset, bytes);
        let value = self.read(state.get(3), 0, bytes, 3)?;
        let packet = self.packet;
        self.builder.push_effect(Op::PacketStore { packet, offset, value });
        self.end_copy(ends);
        Ok(result)
    }

    fn copied(&self) -> Result<u32, NotLiftable> {
        match self.always(4) {
            Some(bytes) if (1..=COPY_MAX).contains(&bytes) => Ok(bytes as u32),
            _ => self.refuse("the number of bytes that it copies is not constant, or too large"),
        }
    }

    /// Continues only if this number of bytes exists. Returns the helper's result, and the block
    /// where both paths meet.
    fn if_in_packet(&mut self, offset: ValueId, bytes: u32) -> (ValueId, BlockId) {
        let (bytes, length) = (self.word(bytes.into()), self.length());
        let end = self.add(offset, bytes);
        let exists = self.at_most(end, length);
        let error = self.error(ErrorNumber::EINVAL);
        let (ends, result) = self.only_if(exists, error);
        (result, ends)
    }

    fn end_copy(&mut self, ends: BlockId) {
        let ok = self.word(0);
        self.end_if(ends, ok);
    }
}
