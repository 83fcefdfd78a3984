// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The abstract state at one instruction: registers, the frames of all active functions, and the
//! proven extent of the packet.
//!
//! An address in the packet is an offset from a base. The first two bases are the starts of packet
//! and metadata. Adding an unknown number to an address creates another base, which lies in a range
//! after the start; addresses with the same base keep their distance, whatever that number was.
//! Comparisons prove a number of bytes after a base.

mod join;
mod loss;

use super::stack::Content;
use super::unknown::{Place, Unknown, Why};
use super::value::{FAR, Kind, Region, Value};
use crate::abi::{FRAME_BYTES, HEAD_ROOM, PACKET_MAX};
use crate::instruction::{FRAME_POINTER, REGISTERS};

/// Number of registers.
pub(super) const COUNT: usize = REGISTERS as usize;
/// Base of addresses relative to the start of the packet.
pub(super) const PACKET: usize = 0;
/// Base of addresses relative to the start of the metadata.
pub(super) const METADATA: usize = 1;
/// Maximum length of a packet, however its ends were moved.
pub(super) const LENGTH_MAX: i64 = (HEAD_ROOM + PACKET_MAX) as i64;
/// Marks a base of which nothing is proven.
pub(super) const UNPROVEN: i64 = i64::MIN / 2;

/// The origin of packet addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Base {
    pub is_metadata: bool,
    /// Range of its offset from the start, in bytes.
    pub place: (i64, i64),
    /// Minimum number of bytes after it in the packet, or in the metadata.
    pub proven: i64,
    /// Maximum number of bytes after it.
    pub most: i64,
}

/// An active function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// Registers 6 to 9 of its caller.
    pub saved: [Value; 4],
    /// Registers 1 to 5 with which a helper calls it repeatedly.
    pub arguments: Option<[Value; 5]>,
    pub content: Content,
}

/// The abstract state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub registers: [Value; COUNT],
    pub frames: Vec<Frame>,
    pub bases: Vec<Base>,
    /// The last mark that was allocated.
    marks: u32,
}

impl State {
    /// Returns the state at the start of a program, with this value in register 1.
    pub fn start(context: Value) -> Self {
        let base = |is_metadata| Base { is_metadata, place: (0, 0), proven: 0, most: LENGTH_MAX };
        let mut state = Self {
            registers: [Value::NOTHING; COUNT],
            frames: vec![],
            bases: vec![base(false), base(true)],
            marks: 0,
        };
        state.enter(None);
        state.registers[1] = context;
        state
    }

    /// Returns the call depth.
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// Returns the number of values in the state.
    pub fn size(&self) -> usize {
        let frames = self.frames.iter();
        let pieces: usize = frames.map(|frame| frame.content.pieces().len()).sum();
        // Saved registers and arguments.
        COUNT + 9 * self.frames.len() + pieces
    }

    pub fn get(&self, register: u8) -> Value {
        self.registers[usize::from(register) % COUNT]
    }

    pub fn set(&mut self, register: u8, value: Value) {
        self.registers[usize::from(register) % COUNT] = value;
    }

    /// Returns the value of a register, marked so that copies are known to be equal.
    pub fn marked(&mut self, register: u8) -> Value {
        let mut value = self.get(register);
        if value.mark == 0 && value.constant().is_none() && value.kind != Kind::Nothing {
            value.mark = self.new_mark();
            self.set(register, value);
        }
        value
    }

    pub fn new_mark(&mut self) -> u32 {
        self.marks += 1;
        self.marks
    }

    /// Changes the register, and all values that are equal to the one with `mark`.
    pub fn refine(&mut self, register: u8, mark: u32, change: impl Fn(&mut Value)) {
        let mut value = self.get(register);
        change(&mut value);
        self.set(register, value);
        if mark != 0 {
            self.for_each_value(|other, _| {
                if other.mark == mark {
                    change(other);
                }
            });
        }
    }

    /// Pushes a frame. Registers 1 to 5 are set for the function.
    pub fn enter(&mut self, arguments: Option<[Value; 5]>) {
        let saved = [6, 7, 8, 9].map(|register| self.registers[register]);
        self.frames.push(Frame { saved, arguments, content: Content::default() });
        if let Some(arguments) = arguments {
            self.registers[1..6].copy_from_slice(&arguments);
        }
        self.registers[0] = Value::NOTHING;
        self.registers[6..10].fill(Value::NOTHING);
        self.set_frame_pointer();
    }

    /// Pops the top frame; `slot` is the function's exit. Returns the arguments with which a helper
    /// called it.
    pub fn leave(&mut self, slot: usize) -> Option<[Value; 5]> {
        let gone = self.depth();
        self.lose(slot, Why::FunctionGone, |value| match value.kind {
            Kind::Address { region: Region::Stack { depth }, .. }
            | Kind::Address { region: Region::Key { depth, .. }, .. } => usize::from(depth) == gone,
            _ => false,
        });
        let frame = self.frames.pop()?;
        self.registers[1..6].fill(Value::NOTHING);
        self.registers[6..10].copy_from_slice(&frame.saved);
        self.set_frame_pointer();
        frame.arguments
    }

    fn set_frame_pointer(&mut self) {
        let depth = self.depth() as u8;
        self.set(FRAME_POINTER, Value::start_of(Region::Stack { depth }));
    }

    /// Calls `visit` on every value with its place.
    pub fn for_each_value(&mut self, mut visit: impl FnMut(&mut Value, Place)) {
        for (register, value) in self.registers.iter_mut().enumerate() {
            visit(value, Place::Register(register as u8));
        }
        for (depth, frame) in self.frames.iter_mut().enumerate() {
            for (at, value) in frame.saved.iter_mut().enumerate() {
                visit(value, Place::Register(6 + at as u8));
            }
            for (at, value) in frame.arguments.iter_mut().flatten().enumerate() {
                visit(value, Place::Register(1 + at as u8));
            }
            for (start, value) in frame.content.values_mut() {
                let offset = start as i16 - FRAME_BYTES as i16;
                visit(value, Place::Stack { depth: depth as u8, offset });
            }
        }
    }

    /// Makes values unknown, because of the instruction in `slot`.
    pub fn lose(&mut self, slot: usize, why: Why, is_lost: impl Fn(&Value) -> bool) {
        self.for_each_value(|value, place| {
            if is_lost(value) {
                *value = Value::unknown(Unknown { slot, place, why });
            }
        });
    }

    /// Invalidates all packet addresses, because the packet is moved.
    pub fn lose_packet(&mut self, slot: usize) {
        let is_in_packet = |value: &Value| {
            matches!(value.kind, Kind::Packet { .. } | Kind::PacketEnd | Kind::Half { .. })
        };
        self.lose(slot, Why::PacketMoved, is_in_packet);
        self.bases.truncate(2);
        for base in &mut self.bases {
            (base.proven, base.most) = (0, LENGTH_MAX);
        }
    }

    /// Forgets the contents of the stack, after a store of anything anywhere.
    pub fn lose_stack(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.content.forget());
    }

    /// Adds a base with this range of offsets from the start.
    pub fn add_base(&mut self, base: Base) -> usize {
        self.bases.push(base);
        self.bases.len() - 1
    }

    /// Returns the number of bytes that are proven after a base.
    pub fn proven(&self, base: usize) -> i64 {
        let found = self.bases[base];
        let proven = match found.is_metadata {
            true => found.proven,
            // Bytes proven after the start also count for a base that is not far after it.
            false => found.proven.max(self.bases[PACKET].proven - found.place.1),
        };
        if proven < -FAR { UNPROVEN } else { proven }
    }

    /// Returns the maximum number of bytes after a base.
    pub fn most(&self, base: usize) -> i64 {
        let found = self.bases[base];
        match found.is_metadata {
            true => found.most,
            false => found.most.min(self.bases[PACKET].most - found.place.0),
        }
    }

    /// Records that there are at least `bytes` bytes after a base, in the packet or in the
    /// metadata. Returns whether that is possible.
    pub fn prove(&mut self, base: usize, bytes: i64) -> bool {
        if bytes > self.most(base) {
            return false;
        }
        let found = &mut self.bases[base];
        found.proven = found.proven.max(bytes);
        if !found.is_metadata {
            found.place.1 = found.place.1.min(LENGTH_MAX - bytes).max(found.place.0);
            let behind_start = found.place.0 + found.proven;
            let start = &mut self.bases[PACKET];
            start.proven = start.proven.max(behind_start);
        }
        true
    }

    /// Records that there are at most `most` bytes after a base. Returns whether that is possible.
    pub fn refute(&mut self, base: usize, most: i64) -> bool {
        if most < self.proven(base) {
            return false;
        }
        let found = &mut self.bases[base];
        found.most = found.most.min(most);
        if !found.is_metadata {
            let behind_start = found.place.1 + found.most;
            let start = &mut self.bases[PACKET];
            start.most = start.most.min(behind_start);
        }
        true
    }

    /// Forgets registers that are not live, and renumbers marks and bases canonically, so that
    /// equivalent states are equal.
    pub fn tidy(&mut self, live: u16) {
        for (register, value) in self.registers.iter_mut().enumerate() {
            if live >> register & 1 == 0 && register != usize::from(FRAME_POINTER) {
                *value = Value::NOTHING;
            }
        }
        let mut counts = vec![0_u32; self.marks as usize + 1];
        self.for_each_value(|value, _| counts[value.mark as usize] += 1);
        let (mut marks, mut last) = (vec![0; counts.len()], 0);
        let mut bases = vec![None; self.bases.len()];
        (bases[PACKET], bases[METADATA]) = (Some(PACKET), Some(METADATA));
        let mut kept = vec![self.bases[PACKET], self.bases[METADATA]];
        let old_bases = std::mem::take(&mut self.bases);
        self.for_each_value(|value, _| {
            let mark = value.mark as usize;
            if mark != 0 && counts[mark] > 1 && marks[mark] == 0 {
                last += 1;
                marks[mark] = last;
            }
            value.mark = marks[mark];
            if let Kind::Packet { base, .. } | Kind::Half { base: Some(base), .. } = &mut value.kind
            {
                *base = *bases[*base].get_or_insert_with(|| {
                    kept.push(old_bases[*base]);
                    kept.len() - 1
                });
            }
        });
        (self.bases, self.marks) = (kept, last);
        for base in 0..self.bases.len() {
            (self.bases[base].proven, self.bases[base].most) = (self.proven(base), self.most(base));
        }
    }
}
