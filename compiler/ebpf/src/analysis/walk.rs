// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effect of an instruction that is not a jump on the abstract state.

use super::access::{Access, AccessKind, Space};
use super::scalar::Scalar;
use super::stack::bytes_of_frame;
use super::state::{METADATA, PACKET, State};
use super::unknown::{Place, Unknown, Why};
use super::value::{Kind, MapName, Region, Value};
use crate::abi::context::CONTEXT_BYTES;
use crate::instruction::{Arithmetic, AtomicOperation, Constant, Operand, Operation, Size, Width};
use crate::maps::flags;
use crate::object::MapDefinition;
use std::ops::Range;

/// Interprets instructions, and records their memory accesses.
pub(super) struct Walk<'o> {
    pub maps: &'o [MapDefinition],
    /// Accesses of the last instruction.
    pub accesses: Vec<Access>,
}

/// A memory access to be checked.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub slot: usize,
    /// Register with the address.
    pub register: u8,
    /// Offset from the address, in bytes.
    pub offset: i64,
    /// Maximum number of bytes, or `None` if unknown.
    pub size: Option<u64>,
    pub kind: AccessKind,
    /// Whether the address is passed to a helper.
    pub is_argument: bool,
}

impl Touch {
    /// Describes an access of the instruction itself, of this number of bytes.
    fn by(slot: usize, register: u8, offset: i16, bytes: u8, kind: AccessKind) -> Self {
        let (offset, size) = (offset.into(), Some(bytes.into()));
        Self { slot, register, offset, size, kind, is_argument: false }
    }
}

/// Memory that an access touches.
pub(super) enum Touched {
    /// The context, with the field's offset if the access is to a field.
    Field(Option<i64>),
    /// A frame, with the bytes if they are all inside.
    Stack(u8, Option<Range<usize>>),
    /// Memory that holds only numbers.
    Numbers,
    Unknown(Unknown),
}

impl<'o> Walk<'o> {
    /// Returns the definition of a map.
    pub fn map(&self, name: MapName) -> Option<&'o MapDefinition> {
        match name {
            MapName::Map(map) => self.maps.get(map as usize),
            MapName::Inside(outer) => self.maps.get(outer as usize)?.inner.as_deref(),
        }
    }

    /// Interprets an instruction that is no jump, call or exit.
    pub fn step(&mut self, state: &mut State, slot: usize, operation: Operation) {
        match operation {
            Operation::Alu { width, operation, destination, source } => {
                let value = self.alu(state, slot, (width, operation), destination, source);
                state.set(destination, value);
            }
            Operation::Negate { width, destination } => {
                let number = number_or_unknown(state, slot, destination);
                let negate = |scalar: Scalar| {
                    Scalar::constant(0).computed(Arithmetic::Subtract, width, &scalar)
                };
                state.set(
                    destination,
                    number.map_or_else(Value::unknown, |it| Value::number(negate(it))),
                );
            }
            Operation::MoveSigned { width, destination, source, bits } => {
                let number = number_or_unknown(state, slot, source);
                let extend = |scalar: Scalar| match width {
                    Width::Bits64 => scalar.sign_extended(bits),
                    Width::Bits32 => scalar.sign_extended(bits).lower_half(),
                };
                state.set(
                    destination,
                    number.map_or_else(Value::unknown, |it| Value::number(extend(it))),
                );
            }
            Operation::Swap { order, destination, bits } => {
                let number = number_or_unknown(state, slot, destination);
                let swap = |scalar: Scalar| Value::number(scalar.swapped(order, bits));
                state.set(destination, number.map_or_else(Value::unknown, swap));
            }
            Operation::Load { size, is_signed, destination, base, offset } => {
                let bytes = size.bytes();
                let touch = Touch::by(slot, base, offset, bytes, AccessKind::Read);
                let value = self.load(state, touch, usize::from(bytes), is_signed);
                state.set(destination, value);
            }
            Operation::Store { size, base, offset, source } => {
                self.store(state, slot, size, base, offset, source);
            }
            Operation::Atomic { width, operation, is_fetching, base, offset, source } => {
                let fetched = match operation {
                    AtomicOperation::CompareExchange => Some(0),
                    _ => is_fetching.then_some(source),
                };
                self.atomic(state, slot, width, (base, offset), (source, fetched));
            }
            Operation::LoadConstant { destination, constant } => {
                let value = constant_value(slot, destination, constant);
                state.set(destination, value);
            }
            Operation::LoadPacket { .. } => {
                state.set(0, Value::unknown(unknown(slot, 0, Why::OfTheKernel)));
            }
            Operation::Jump { .. }
            | Operation::Goto { .. }
            | Operation::Call(_)
            | Operation::Exit => {}
        }
    }

    fn load(&mut self, state: &State, touch: Touch, bytes: usize, is_signed: bool) -> Value {
        let (slot, register) = (touch.slot, touch.register);
        let value = match self.touch(state, touch) {
            Touched::Unknown(unknown) => return Value::unknown(unknown),
            Touched::Numbers => Value::number(Scalar::of_bits(bytes as u32 * 8)),
            Touched::Field(field) if bytes == 4 && !is_signed => {
                return loaded_field(slot, register, field);
            }
            Touched::Field(_) => return Value::unknown(unknown(slot, register, Why::NoField)),
            Touched::Stack(depth, Some(range)) => {
                let lost = unknown(slot, register, Why::PartOfAddress);
                let content = &state.frames[usize::from(depth)].content;
                match range.len() == bytes {
                    true => content.load(range.start, bytes, lost),
                    false => content.load_within(&range, bytes, lost),
                }
            }
            Touched::Stack(_, None) => return Value::unknown(unknown(slot, register, Why::TooFar)),
        };
        match value.scalar() {
            Some(scalar) if is_signed => Value::number(scalar.sign_extended(bytes as u8 * 8)),
            _ => value,
        }
    }

    fn store(
        &mut self,
        state: &mut State,
        slot: usize,
        size: Size,
        base: u8,
        offset: i16,
        source: Operand,
    ) {
        let bytes = size.bytes();
        let touch = Touch::by(slot, base, offset, bytes, AccessKind::Write);
        let value = match source {
            Operand::Immediate(number) => Value::number(Scalar::constant(i64::from(number) as u64)),
            Operand::Register(register) => state.marked(register),
        };
        match self.touch(state, touch) {
            Touched::Stack(depth, Some(range)) => {
                let content = &mut state.frames[usize::from(depth)].content;
                match range.len() == usize::from(bytes) {
                    true => content.store(range.start, bytes.into(), value),
                    false => content.blur(range, value.scalar().is_some()),
                }
            }
            Touched::Stack(_, None) | Touched::Unknown(_) => state.lose_stack(),
            Touched::Field(_) | Touched::Numbers => {}
        }
    }

    fn atomic(
        &mut self,
        state: &mut State,
        slot: usize,
        width: Width,
        (base, offset): (u8, i16),
        (source, fetched): (u8, Option<u8>),
    ) {
        let bytes = if width == Width::Bits64 { 8 } else { 4 };
        let touch = Touch::by(slot, base, offset, bytes, AccessKind::Change);
        let old = self.load(state, Touch { kind: AccessKind::Read, ..touch }, bytes.into(), false);
        // An exchange may store an address.
        let is_number = old.scalar().and(state.get(source).scalar()).is_some();
        // The read is part of the change, and only the change is recorded.
        self.accesses.pop();
        match self.touch(state, touch) {
            Touched::Stack(depth, Some(range)) => {
                let content = &mut state.frames[usize::from(depth)].content;
                content.blur(range, is_number);
            }
            Touched::Stack(_, None) | Touched::Unknown(_) => state.lose_stack(),
            Touched::Field(_) | Touched::Numbers => {}
        }
        if let Some(register) = fetched {
            state.set(register, Value { mark: 0, ..old });
        }
    }

    /// Records an access, and returns the memory that it touches.
    pub fn touch(&mut self, state: &State, touch: Touch) -> Touched {
        let value = state.get(touch.register);
        let moved = |range: (i64, i64)| (range.0 + touch.offset, range.1 + touch.offset);
        let unknown = |why| unknown(touch.slot, touch.register, why);
        let (space, offset, is_inside, touched) = match value.kind {
            Kind::Packet { base, offset } => {
                let place = state.bases[base].place;
                let range = moved((place.0 + offset, place.1 + offset));
                let end = touch.size.map(|size| offset + touch.offset + size as i64);
                let is_inside = range.0 >= 0 && end.is_some_and(|end| end <= state.proven(base));
                let space =
                    if state.bases[base].is_metadata { Space::Metadata } else { Space::Packet };
                (space, range, is_inside, Touched::Numbers)
            }
            Kind::Address { region, offset } => {
                let range = moved(offset);
                let (space, touched) = self.region(state, region, range, touch.size);
                let is_inside = self.is_inside(region, range, touch);
                (space, range, is_inside, touched)
            }
            kind => {
                let reason = match kind {
                    Kind::Unknown(unknown) => unknown,
                    Kind::Nothing => unknown(Why::NeverSet),
                    Kind::Number(_) => unknown(Why::Number),
                    _ => unknown(Why::NoAddress),
                };
                (Space::Unknown(reason), (0, 0), false, Touched::Unknown(reason))
            }
        };
        let is_proven = is_inside && !value.may_be_null;
        let Touch { slot, register, size, kind, .. } = touch;
        let register = Some(register);
        self.accesses.push(Access { slot, register, kind, space, offset, size, is_proven });
        touched
    }

    fn region(
        &self,
        state: &State,
        region: Region,
        range: (i64, i64),
        size: Option<u64>,
    ) -> (Space, Touched) {
        match region {
            Region::Context => {
                (Space::Context, Touched::Field((range.0 == range.1).then_some(range.0)))
            }
            Region::Stack { depth } => {
                let bytes = size.and_then(|size| bytes_of_frame(range, size));
                // An access that leaves the frame may reach another one.
                let calls_up = bytes.as_ref().map(|_| state.depth() as u8 - depth);
                (Space::Stack { calls_up }, Touched::Stack(depth, bytes))
            }
            Region::Value(map) => (Space::MapValue(map), Touched::Numbers),
            Region::Record { map, .. } => (Space::Record(map), Touched::Numbers),
            Region::Key { map, .. } => (Space::Key(map), Touched::Numbers),
        }
    }

    /// Returns whether an access to a region is certain to be in bounds.
    fn is_inside(&self, region: Region, range: (i64, i64), touch: Touch) -> bool {
        let Some(size) = touch.size else { return false };
        let fits = |room: u64| {
            range.0 >= 0 && range.1.checked_add_unsigned(size).is_some_and(|end| end as u64 <= room)
        };
        match region {
            Region::Context => {
                let is_field = range.0 == range.1 && range.0 % 4 == 0 && size == 4;
                // Fields can only be loaded, and helpers cannot use the context as memory.
                let is_load = !touch.kind.writes() && !touch.is_argument;
                is_field && fits(CONTEXT_BYTES) && is_load
            }
            Region::Stack { .. } => bytes_of_frame(range, size).is_some(),
            Region::Record { size: room, .. } => fits(room),
            Region::Value(map) => self.map(map).is_some_and(|map| {
                let refused = match touch.kind {
                    AccessKind::Read => flags::WRITE_ONLY_TO_PROGRAMS,
                    AccessKind::Write => flags::READ_ONLY_TO_PROGRAMS,
                    AccessKind::Change => {
                        flags::READ_ONLY_TO_PROGRAMS | flags::WRITE_ONLY_TO_PROGRAMS
                    }
                };
                map.flags & refused == 0 && fits(map.value_size.into())
            }),
            Region::Key { map, .. } => {
                let room = self.map(map).map_or(0, |map| map.key_size);
                touch.kind == AccessKind::Read && fits(room.into())
            }
        }
    }
}

pub(super) fn unknown(slot: usize, register: u8, why: Why) -> Unknown {
    Unknown { slot, place: Place::Register(register), why }
}

/// Returns the number in a register, or the reason for which there is none.
pub(super) fn number_or_unknown(
    state: &State,
    slot: usize,
    register: u8,
) -> Result<Scalar, Unknown> {
    match state.get(register).kind {
        Kind::Number(scalar) => Ok(scalar),
        Kind::Unknown(unknown) => Err(unknown),
        Kind::Nothing => Err(unknown(slot, register, Why::NeverSet)),
        _ => Err(unknown(slot, register, Why::NoAddress)),
    }
}

/// Returns the value of a field of the context.
fn loaded_field(slot: usize, register: u8, field: Option<i64>) -> Value {
    let packet = |base| Value::new(Kind::Packet { base, offset: 0 });
    match field {
        Some(0) => packet(PACKET),
        Some(4) => Value::new(Kind::PacketEnd),
        Some(8) => packet(METADATA),
        Some(12 | 16 | 20) => Value::number(Scalar::of_bits(32)),
        _ => Value::unknown(unknown(slot, register, Why::NoField)),
    }
}

fn constant_value(slot: usize, register: u8, constant: Constant) -> Value {
    match constant {
        Constant::Value(value) => Value::number(Scalar::constant(value)),
        Constant::Map(map) => Value::new(Kind::Map(MapName::Map(map))),
        Constant::MapValue { map, offset } => {
            let (region, offset) = (Region::Value(MapName::Map(map)), i64::from(offset));
            Value::new(Kind::Address { region, offset: (offset, offset) })
        }
        Constant::Function(distance) => match super::graph::target(slot, distance) {
            Some(function) => Value::new(Kind::Function(function)),
            None => Value::unknown(unknown(slot, register, Why::NoAddress)),
        },
        Constant::Variable(_) => Value::unknown(unknown(slot, register, Why::OfTheKernel)),
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{LOOKUP, at_end, last_touched};

    #[test]
    fn what_is_stored_is_loaded_again() {
        assert_eq!(at_end("*(u64 *)(r10 - 8) = r1\nr2 = *(u64 *)(r10 - 8)\nexit", 2), "context+0");
        let text = "*(u32 *)(r10 - 8) = -1\nr2 = *(u32 *)(r10 - 8)\nexit";
        assert_eq!(at_end(text, 2), "0xffffffff");
        let text = "*(u16 *)(r10 - 8) = -2\nr2 = *(s16 *)(r10 - 8)\nexit";
        assert_eq!(at_end(text, 2), "0xfffffffffffffffe");
    }

    #[test]
    fn a_store_to_anywhere_may_be_to_the_stack() {
        let text = |store: &str| {
            format!(
                "*(u64 *)(r10 - 8) = r1\nr3 = *(u32 *)(r1 + 12)\nr4 = 7\n{store}\n\
                     r2 = *(u64 *)(r10 - 8)\nexit"
            )
        };
        for store in [
            "*(u8 *)(r3 + 0) = 1",
            "*(u64 *)(r4 + 0) = r3",
            "r3 += r10\n*(u8 *)(r3 + 0) = 1",
            "*(u8 *)(r10 + 0) = 1",
            "*(u64 *)(r10 - 516) = r3",
            "lock *(u64 *)(r4 + 0) += r3",
        ] {
            assert!(at_end(&text(store), 2).starts_with("not known"), "{store}");
        }
        for store in ["*(u64 *)(r10 - 16) = r3", "*(u64 *)(r1 + 0) = r3"] {
            assert_eq!(at_end(&text(store), 2), "context+0", "{store}");
        }
    }

    #[test]
    fn a_store_somewhere_in_the_frame_leaves_what_it_cannot_reach() {
        let text = "*(u64 *)(r10 - 8) = r1\n*(u64 *)(r10 - 16) = 5\n*(u64 *)(r10 - 32) = 6\n\
                    r3 = *(u32 *)(r1 + 12)\nr3 &= 7\nr3 += r10\n*(u8 *)(r3 - 16) = 1\n\
                    r2 = *(u64 *)(r10 - 8)\nr4 = *(u64 *)(r10 - 16)\nr5 = *(u64 *)(r10 - 32)\nexit";
        assert_eq!([2, 4, 5].map(|at| at_end(text, at)), ["context+0", "any number", "0x6"]);
    }

    #[test]
    fn what_an_exchange_puts_into_memory_may_be_an_address() {
        let text = |exchanged: &str| {
            format!(
                "*(u64 *)(r10 - 8) = 1\nr2 = {exchanged}\n\
                     r2 = xchg_64(r10 - 8, r2)\nr3 = *(u64 *)(r10 - 8)\nexit"
            )
        };
        assert_eq!(at_end(&text("r1"), 2), "0x1");
        assert!(at_end(&text("r1"), 3).starts_with("not known"));
        assert_eq!(at_end(&text("5"), 3), "any number");
    }

    #[test]
    fn fields_of_the_context_are_what_they_stand_for() {
        let field = |load: &str| at_end(&format!("r2 = {load}\nexit"), 2);
        assert_eq!(field("*(u32 *)(r1 + 0)"), "packet+0 (0 bytes there)");
        assert_eq!(field("*(u32 *)(r1 + 4)"), "end of the packet");
        assert_eq!(field("*(u32 *)(r1 + 8)"), "metadata+0 (0 bytes there)");
        assert_eq!(field("*(u32 *)(r1 + 16)"), "0x0..=0xffffffff");
        for no_field in ["*(u32 *)(r1 + 24)", "*(u32 *)(r1 + 2)", "*(u16 *)(r1 + 0)"] {
            assert!(field(no_field).contains("not a field of the context"), "{no_field}");
        }
        let stored = last_touched("*(u32 *)(r1 + 16) = r2\nexit");
        assert_eq!(stored, ["Write context 16..=16 for 4, not proven"]);
    }

    #[test]
    fn values_of_maps_end_where_the_definition_says() {
        let at = |load: &str| {
            last_touched(&format!("{LOOKUP}if r0 == 0 goto out\nr1 = {load}\nout:\nexit"))
        };
        assert_eq!(at("*(u32 *)(r0 + 4)"), ["Read value of map 0 4..=4 for 4"]);
        assert_eq!(at("*(u32 *)(r0 + 5)"), ["Read value of map 0 5..=5 for 4, not proven"]);
        assert_eq!(at("*(u8 *)(r0 - 1)"), ["Read value of map 0 -1..=-1 for 1, not proven"]);
        let unchecked = last_touched(&format!("{LOOKUP}r1 = *(u8 *)(r0 + 0)\nexit"));
        assert_eq!(unchecked, ["Read value of map 0 0..=0 for 1, not proven"]);
    }
}
