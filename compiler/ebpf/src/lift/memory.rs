// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts loads, stores and atomic operations, and memory arguments of helpers.

use super::element::{INGRESS_VARIABLE, QUEUE_VARIABLE};
use super::flow::Frame;
use super::held::{Held, Shape, State};
use super::{Lifter, MapPlace, NotLiftable};
use crate::abi::context;
use crate::analysis::{Access, Space, Type as Known};
use crate::instruction::{Arithmetic, AtomicOperation, Condition, Operand, Size, Width};
use freeport_ir::{ObjectRef, Op, Type, ValueId};

impl Lifter<'_> {
    /// Returns the result of a load.
    pub fn load(
        &mut self,
        frame: &Frame,
        size: Size,
        is_signed: bool,
        destination: u8,
        place: (u8, i64),
        state: &State,
    ) -> Result<Held, NotLiftable> {
        let base = state.get(place.0);
        if let Held::Context(offset) = base {
            return self.context_field(offset + place.1);
        }
        let bytes = u32::from(size.bytes());
        let value = self.read(base, place.1, bytes, place.0)?;
        let value = self.builder.resize(value, 64, is_signed);
        match (base, size) {
            (Held::Stack(_), Size::Double) => self.typed(frame, place.0, destination, value, state),
            _ => Ok(Held::Number(value)),
        }
    }

    fn context_field(&mut self, offset: i64) -> Result<Held, NotLiftable> {
        let variable = |this: &mut Self, object| {
            let zero = this.builder.number(32, 0);
            let value = this.builder.load(object, zero, 0, 32);
            Held::Number(this.widen(value))
        };
        // A negative offset does not match any field.
        Ok(match offset as u64 {
            context::DATA => Held::Packet(self.word(0)),
            context::DATA_END => Held::Packet(self.length()),
            context::INGRESS_IFINDEX => match self.ports.device(self.input) {
                Some(device) => Held::Number(self.word(device.into())),
                None => variable(self, INGRESS_VARIABLE),
            },
            context::RX_QUEUE_INDEX => variable(self, QUEUE_VARIABLE),
            context::EGRESS_IFINDEX => Held::Number(self.word(0)),
            _ => return self.refuse("lifted programs have no metadata"),
        })
    }

    /// Returns the access of this instruction to frames by a register, if it is a single one.
    fn stack_access(&self, register: u8) -> Option<&Access> {
        let mut all = self.analysis.accesses(self.slot).iter();
        all.find(|it| it.register == Some(register) && matches!(it.space, Space::Stack { .. }))
    }

    /// Returns the least and greatest offset of an access within all frames.
    fn place_in_frames(&self, frame: &Frame, access: &Access) -> Option<(i64, i64)> {
        let Space::Stack { calls_up: Some(up) } = access.space else { return None };
        let end = frame.ends.iter().rev().nth(up.into())?;
        Some((end + access.offset.0, end + access.offset.1))
    }

    /// Returns 64 bits of a frame with their type, by the facts of the frame or, for a caller's
    /// frame, by the fact of the register after the load.
    fn typed(
        &mut self,
        frame: &Frame,
        register: u8,
        destination: u8,
        value: ValueId,
        state: &State,
    ) -> Result<Held, NotLiftable> {
        let access = self.stack_access(register).copied();
        let own = access.filter(|it| it.space == Space::Stack { calls_up: Some(0) });
        let own = own.filter(|it| it.offset.0 == it.offset.1);
        let spills = self.analysis.spills(self.slot);
        let found = own.and_then(|own| {
            spills.iter().find(|it| i64::from(it.offset) == own.offset.0 && it.size == 8)
        });
        let behind = self.analysis.registers(self.slot + 1);
        let behind = behind.map(|facts| facts[usize::from(destination)]);
        let fact = found.map(|spill| spill.fact).or(behind);
        let Some(fact) = fact.filter(|fact| !matches!(fact.holds, Known::Nothing)) else {
            return Ok(Held::Nothing);
        };
        if let Known::Unknown(unknown) = fact.holds {
            return self.refuse(format!("the loaded value is not known: {unknown}"));
        }
        Ok(match self.shape(&fact, &frame.ends)? {
            // A constant number is what the frame holds.
            Shape::Known(super::held::Known::Number(_)) => Held::Number(value),
            Shape::Known(known) => self.known(known),
            Shape::Value | Shape::Mixed => {
                let place = access.and_then(|it| self.place_in_frames(frame, &it));
                let at = place.filter(|(at, most)| at == most).map(|(at, _)| at);
                match at.and_then(|at| state.spilled.get(&at)) {
                    Some(held) => *held,
                    None => return self.refuse("it loads a reference that is not known here"),
                }
            }
            shape => shape.holding(value),
        })
    }

    /// Lifts a store.
    pub fn store(
        &mut self,
        frame: &Frame,
        size: Size,
        place: (u8, i64),
        source: Operand,
        state: &mut State,
    ) -> Result<(), NotLiftable> {
        let held = self.operand(source, state);
        let base = state.get(place.0);
        if let Held::Stack(_) = base {
            self.forget_overwritten(frame, place.0, state);
        }
        let value = match (base, held) {
            (_, Held::Number(value)) => value,
            (Held::Stack(_), _) if size != Size::Double => {
                return self.refuse("it stores part of an address");
            }
            (Held::Stack(_), Held::Value(_)) => return self.spill(frame, place.0, held, state),
            (Held::Stack(_), Held::Packet(at) | Held::Stack(at) | Held::Data(_, at)) => at,
            (Held::Stack(_), Held::Context(_) | Held::Map(_) | Held::Function(_)) => self.word(0),
            (_, Held::Nothing) => return self.refuse("it stores a register that is not set"),
            _ => return self.refuse("it stores an address outside the stack"),
        };
        let value = self.builder.resize(value, u32::from(size.bytes()) * 8, false);
        self.write(base, place.1, value, place.0)
    }

    /// Removes references in frames that this instruction overwrites.
    pub fn forget_overwritten(&self, frame: &Frame, register: u8, state: &mut State) {
        let access = self.stack_access(register).copied();
        let place = access.and_then(|it| self.place_in_frames(frame, &it));
        let size = access.and_then(|it| it.size).map_or(i64::MAX, |size| size as i64);
        state.overwrite(place.unwrap_or((0, i64::MAX)), size);
    }

    /// Keeps a reference beside the frames.
    fn spill(
        &self,
        frame: &Frame,
        register: u8,
        held: Held,
        state: &mut State,
    ) -> Result<(), NotLiftable> {
        let access = self.stack_access(register);
        if access.is_none_or(|it| it.space != (Space::Stack { calls_up: Some(0) })) {
            return self.refuse("it stores a reference in the frame of a caller");
        }
        match access.and_then(|it| self.place_in_frames(frame, it)) {
            Some((at, most)) if at == most => {
                state.spilled.insert(at, held);
                Ok(())
            }
            _ => self.refuse("it stores a reference at a variable offset"),
        }
    }

    /// Lifts an atomic operation, as a load and a store: nothing else runs during a firing.
    #[allow(clippy::too_many_arguments)]
    pub fn atomic(
        &mut self,
        frame: &Frame,
        width: Width,
        operation: AtomicOperation,
        is_fetching: bool,
        place: (u8, i64),
        source: u8,
        state: &mut State,
    ) -> Result<(), NotLiftable> {
        let base = state.get(place.0);
        if let Held::Stack(_) = base {
            self.forget_overwritten(frame, place.0, state);
        }
        let bytes = if width == Width::Bits32 { 4 } else { 8 };
        let old = self.read(base, place.1, bytes, place.0)?;
        let old = self.widen(old);
        let with = self.number(state.get(source))?;
        let (result, into) = match operation {
            AtomicOperation::Add => (self.computed(width, Arithmetic::Add, old, with), source),
            AtomicOperation::Or => (self.computed(width, Arithmetic::Or, old, with), source),
            AtomicOperation::And => (self.computed(width, Arithmetic::And, old, with), source),
            AtomicOperation::Xor => (self.computed(width, Arithmetic::Xor, old, with), source),
            AtomicOperation::Exchange => (with, source),
            AtomicOperation::CompareExchange => {
                let wanted = self.number(state.get(0))?;
                let [one, other] =
                    [wanted, old].map(|value| self.builder.resize(value, bytes * 8, false));
                let is_equal = self.compared(Condition::Equal, one, other);
                (self.select(is_equal, with, old), 0)
            }
        };
        let result = self.builder.resize(result, bytes * 8, false);
        self.write(base, place.1, result, place.0)?;
        if is_fetching || operation == AtomicOperation::CompareExchange {
            state.set(into, Held::Number(old));
        }
        Ok(())
    }

    /// Reads bytes at the address in `register` plus `offset`.
    pub fn read(
        &mut self,
        base: Held,
        offset: i64,
        bytes: u32,
        register: u8,
    ) -> Result<ValueId, NotLiftable> {
        self.check_inside(base, offset, bytes, register)?;
        let ty = Type::Bits(bytes * 8);
        let op = match base {
            Held::Packet(at) => {
                let offset = self.offset(at, offset);
                Op::PacketLoad { packet: self.packet, offset, bytes }
            }
            Held::Stack(at) => {
                let offset = self.offset(at, offset);
                Op::LoadBytes { object: self.stack, offset, bytes }
            }
            Held::Data(map, at) => {
                let (object, offset) = (self.data(map)?, self.offset(at, offset));
                Op::LoadBytes { object, offset, bytes }
            }
            Held::Value(reference) => {
                let reference = self.further(reference, offset);
                Op::RefLoad { reference, width: bytes * 8 }
            }
            _ => return self.refuse("it reads at an address whose memory is not known"),
        };
        Ok(self.builder.push(op, ty))
    }

    /// Writes bytes at the address in `register` plus `offset`.
    pub fn write(
        &mut self,
        base: Held,
        offset: i64,
        value: ValueId,
        register: u8,
    ) -> Result<(), NotLiftable> {
        let bytes = self.builder.function().width_of(value) / 8;
        self.check_inside(base, offset, bytes, register)?;
        let op = match base {
            Held::Packet(at) => {
                let offset = self.offset(at, offset);
                Op::PacketStore { packet: self.packet, offset, value }
            }
            Held::Stack(at) => {
                let offset = self.offset(at, offset);
                Op::StoreBytes { object: self.stack, offset, value }
            }
            Held::Data(map, at) => {
                let (object, offset) = (self.data(map)?, self.offset(at, offset));
                Op::StoreBytes { object, offset, value }
            }
            Held::Value(reference) => {
                let reference = self.further(reference, offset);
                Op::RefStore { reference, value }
            }
            _ => return self.refuse("it writes at an address whose memory is not known"),
        };
        self.builder.push_effect(op);
        Ok(())
    }

    fn further(&mut self, reference: ValueId, offset: i64) -> ValueId {
        if offset == 0 {
            return reference;
        }
        let offset = self.word(offset as u64);
        self.reference_at(reference, offset)
    }

    fn data(&self, map: u32) -> Result<ObjectRef, NotLiftable> {
        match self.maps[map as usize] {
            Some(MapPlace::Data(object)) => Ok(ObjectRef::State(object)),
            _ => self.refuse("it is not a data section"),
        }
    }

    /// Checks a packet access that is not proven, and aborts the program if it is out of bounds, as
    /// the interpreter does. Accesses to other memory must be proven.
    fn check_inside(
        &mut self,
        base: Held,
        offset: i64,
        bytes: u32,
        register: u8,
    ) -> Result<(), NotLiftable> {
        let all = self.analysis.accesses(self.slot).iter();
        let mut all = all.filter(|access| access.register == Some(register)).peekable();
        let is_any = all.peek().is_some();
        let is_proven = is_any && all.all(|access| access.is_proven && is_in(base, access));
        match base {
            _ if is_proven => Ok(()),
            Held::Packet(at) => {
                let (length, place) = (self.length(), self.offset(at, offset));
                let bytes = self.word(bytes.into());
                let fits = self.at_most(bytes, length);
                let last = self.builder.binary(freeport_ir::BinaryOp::Sub, length, bytes);
                let begins = self.at_most(place, last);
                let is_inside = self.both(fits, begins);
                self.abort_unless(is_inside);
                Ok(())
            }
            _ => self.refuse("it is not proven to be within bounds"),
        }
    }
}

/// Returns whether an access is to this memory.
fn is_in(base: Held, access: &Access) -> bool {
    match base {
        Held::Packet(_) => access.space == Space::Packet,
        Held::Stack(_) => matches!(access.space, Space::Stack { .. }),
        Held::Value(_) | Held::Data(..) => matches!(access.space, Space::MapValue(_)),
        _ => false,
    }
}
