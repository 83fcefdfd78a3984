// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moving the packet's ends, and copying from and to it.

use super::flow::Frame;
use super::held::{Held, State};
use super::{Lifter, NotLiftable};
use crate::interpreter::ETHERNET_BYTES;
use crate::maps::ErrorNumber;
use freeport_ir::{BinaryOp, CompareOp, Op, Target, Term, Type, ValueId};

/// Most bytes of a copy.
const COPY_MAX: u64 = 512;

impl Lifter<'_> {
    pub fn adjust_head(&mut self, state: &mut State) -> Result<ValueId, NotLiftable> {
        self.adjust(state, BinaryOp::Sub, |packet, delta| Op::PacketAdjustHead { packet, delta })
    }

    pub fn adjust_tail(&mut self, state: &mut State) -> Result<ValueId, NotLiftable> {
        self.adjust(state, BinaryOp::Add, |packet, delta| Op::PacketAdjustTail { packet, delta })
    }

    /// Moves an end if an Ethernet header is left; `new_length` says what the length becomes.
    fn adjust(
        &mut self,
        state: &mut State,
        new_length: BinaryOp,
        op: impl Fn(ValueId, ValueId) -> Op,
    ) -> Result<ValueId, NotLiftable> {
        let delta = self.number(state.get(2))?;
        let delta = self.signed_half(delta);
        let length = self.length();
        let left = self.builder.binary(new_length, length, delta);
        let least = self.word(ETHERNET_BYTES as u64);
        let is_left = self.builder.compare(CompareOp::SLe, least, left);
        let [moves, ends] = [(); 2].map(|()| self.builder.new_block());
        let result = self.builder.add_param(ends, Type::Bits(64), None);
        let error = self.error(ErrorNumber::EINVAL);
        self.builder.end(Term::Branch {
            cond: is_left,
            if_true: Target::to(moves),
            if_false: Target { block: ends, args: vec![error] },
        });
        self.builder.switch_to(moves);
        let moved = self.builder.push(op(self.packet, delta), Type::Bits(1));
        let ok = self.word(0);
        let outcome = self.select(moved, ok, error);
        self.builder.end(Term::Jump(Target { block: ends, args: vec![outcome] }));
        self.builder.switch_to(ends);
        // Addresses in the packet mean nothing any more.
        for held in &mut state.registers {
            if matches!(held, Held::Packet(_)) {
                *held = Held::Nothing;
            }
        }
        Ok(result)
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
            _ => self.refuse("how much it copies is computed, or too much"),
        }
    }

    /// Goes on only if so many bytes are there; gives what the helper gives, and where it ends.
    fn if_in_packet(&mut self, offset: ValueId, bytes: u32) -> (ValueId, freeport_ir::BlockId) {
        let (bytes, length) = (self.word(bytes.into()), self.length());
        let end = self.add(offset, bytes);
        let is_there = self.at_most(end, length);
        let [copies, ends] = [(); 2].map(|()| self.builder.new_block());
        let result = self.builder.add_param(ends, Type::Bits(64), None);
        let error = self.error(ErrorNumber::EINVAL);
        self.builder.end(Term::Branch {
            cond: is_there,
            if_true: Target::to(copies),
            if_false: Target { block: ends, args: vec![error] },
        });
        self.builder.switch_to(copies);
        (result, ends)
    }

    fn end_copy(&mut self, ends: freeport_ir::BlockId) {
        let ok = self.word(0);
        self.builder.end(Term::Jump(Target { block: ends, args: vec![ok] }));
        self.builder.switch_to(ends);
    }
}
