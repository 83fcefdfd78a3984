// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contents of registers during lifting: values of the shared representation with their types.

use super::{Lifter, MapPlace, NotLiftable};
use crate::analysis::{Fact, MapName, Type, Unknown, Why};
use freeport_ir::{Op, Space, Spaces, Type as IrType, ValueId};
use std::collections::BTreeMap;

/// Represents 0 where a packet address may be 0: no offset is that large.
pub const NO_PACKET: u64 = 1 << 63;

/// Contents of a register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Held {
    /// A value that is never read.
    Nothing,
    /// A 64-bit number. The lower half of a packet address is also a number: only differences of
    /// such halves are meaningful, and they equal the differences of offsets.
    Number(ValueId),
    /// An address in the packet, or its end: a 64-bit offset from the packet's start.
    Packet(ValueId),
    /// The address of this byte of the context.
    Context(i64),
    /// An address in a frame: a 64-bit offset from the start of all frames.
    Stack(ValueId),
    /// A reference to a map, by its number.
    Map(u32),
    /// An address in a value of a table, or none: a reference.
    Value(ValueId),
    /// An address in data: the map's number, and a 64-bit offset from its start.
    Data(u32, ValueId),
    /// A function, by its slot.
    Function(usize),
}

/// Shape of a register's contents where blocks meet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    Number,
    Packet,
    Stack,
    Value,
    /// A reference to a value of some map, if it is one: see [`Mixed`](super::mixed::Mixed).
    Mixed,
    Data(u32),
    /// The same on all paths: no value is passed.
    Known(Known),
}

/// Contents that need no value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Known {
    /// No usable value: reading it is refused.
    Nothing,
    Number(u64),
    Context(i64),
    Stack(i64),
    Map(u32),
    Function(usize),
}

/// Registers, and references stored in frames, by their offset from the start of all frames.
#[derive(Clone, Debug)]
pub struct State {
    pub registers: [Held; 11],
    pub spilled: BTreeMap<i64, Held>,
}

impl State {
    /// Creates an empty state.
    pub fn new() -> Self {
        Self { registers: [Held::Nothing; 11], spilled: BTreeMap::new() }
    }

    pub fn get(&self, register: u8) -> Held {
        self.registers[usize::from(register)]
    }

    pub fn set(&mut self, register: u8, held: Held) {
        self.registers[usize::from(register)] = held;
    }

    /// Overwrites bytes of frames, which removes references stored there.
    pub fn overwrite(&mut self, place: (i64, i64), size: i64) {
        self.spilled.retain(|at, _| *at + 8 <= place.0 || *at >= place.1.saturating_add(size));
    }
}

impl Shape {
    /// Returns the type of a value of that shape.
    pub fn ty(self) -> IrType {
        match self {
            Self::Value | Self::Mixed => IrType::Ref(Spaces::of(Space::TableValue)),
            _ => IrType::Bits(64),
        }
    }

    /// Returns the contents that such a value represents.
    pub fn holding(self, value: ValueId) -> Held {
        match self {
            Self::Number => Held::Number(value),
            Self::Packet => Held::Packet(value),
            Self::Stack => Held::Stack(value),
            Self::Value | Self::Mixed => Held::Value(value),
            Self::Data(map) => Held::Data(map, value),
            Self::Known(_) => Held::Nothing,
        }
    }
}

impl Lifter<'_> {
    /// Returns the shape for a fact; `frames` has the ends of the frames of the function and of its
    /// callers.
    pub fn shape(&self, fact: &Fact, frames: &[i64]) -> Result<Shape, NotLiftable> {
        let exact = |offset: (i64, i64)| (offset.0 == offset.1).then_some(offset.0);
        let has_null =
            matches!(fact.holds, Type::MapValue { .. } | Type::Packet { .. } | Type::Number(_));
        if fact.may_be_null && !has_null {
            return self.refuse(format!("it may be 0 instead of an address ({fact})"));
        }
        Ok(match fact.holds {
            Type::Number(scalar) => match scalar.value() {
                Some(value) => Shape::Known(Known::Number(value)),
                None => Shape::Number,
            },
            Type::Half => Shape::Number,
            Type::Packet { .. } | Type::PacketEnd => Shape::Packet,
            Type::Context { offset } => match exact(offset) {
                Some(offset) => Shape::Known(Known::Context(offset)),
                None => return self.refuse("the field of the context is not known"),
            },
            Type::Stack { calls_up, offset } => {
                let end = calls_up.and_then(|up| frames.iter().rev().nth(up.into()));
                match (end, exact(offset)) {
                    (Some(end), Some(offset)) => Shape::Known(Known::Stack(end + offset)),
                    _ => Shape::Stack,
                }
            }
            Type::Map(MapName::Map(map)) => Shape::Known(Known::Map(map)),
            Type::MapValue { map: MapName::Map(map), .. } => match &self.maps[map as usize] {
                Some(MapPlace::Data(_)) if fact.may_be_null => {
                    return self.refuse("data may be 0 instead of an address");
                }
                Some(MapPlace::Data(_)) => Shape::Data(map),
                _ => Shape::Value,
            },
            Type::Function(slot) => Shape::Known(Known::Function(slot)),
            // These may be values of different maps.
            Type::Unknown(Unknown { why: Why::PathsDiffer, .. }) => Shape::Mixed,
            Type::Nothing | Type::Unknown(_) => Shape::Known(Known::Nothing),
            Type::Metadata { .. } => return self.refuse("lifted programs have no metadata"),
            Type::Record { .. } => return self.refuse("ring-buffer records are not supported"),
            Type::Key { .. } | Type::Map(_) | Type::MapValue { .. } => {
                return self.refuse(format!("this kind of value is not supported: {fact}"));
            }
        })
    }

    /// Returns known contents as those of a register.
    pub fn known(&mut self, known: Known) -> Held {
        match known {
            Known::Nothing => Held::Nothing,
            Known::Number(value) => Held::Number(self.word(value)),
            Known::Context(offset) => Held::Context(offset),
            Known::Stack(place) => Held::Stack(self.word(place as u64)),
            Known::Map(map) => Held::Map(map),
            Known::Function(slot) => Held::Function(slot),
        }
    }

    /// Returns the value that is passed where `shape` is expected, as parameter `to`; `None` if the
    /// contents are known.
    pub fn passed(
        &mut self,
        held: Held,
        shape: Shape,
        to: Option<ValueId>,
    ) -> Result<Option<ValueId>, NotLiftable> {
        let Some(to) = to else { return Ok(None) };
        Ok(Some(match (shape, held) {
            (Shape::Value | Shape::Mixed, Held::Value(value)) => {
                self.mixed.pass(value, to);
                value
            }
            (Shape::Mixed, held) => {
                let is_null = matches!(held, Held::Number(it) if self.constant_of(it) == Some(0));
                if !is_null {
                    self.mixed.be_wrong(to);
                }
                self.no_value()
            }
            (Shape::Number, Held::Number(value))
            | (Shape::Packet, Held::Packet(value))
            | (Shape::Stack, Held::Stack(value)) => value,
            // A half of an address keeps its value.
            (Shape::Number, Held::Packet(value)) => value,
            (Shape::Data(map), Held::Data(other, value)) if map == other => value,
            // The only number that can occur where an address may be 0.
            (Shape::Value, Held::Number(_)) => self.no_value(),
            (Shape::Packet, Held::Number(_)) => self.word(NO_PACKET),
            (shape, held) => {
                return self.refuse(format!("expected a {shape:?}, found {held:?}"));
            }
        }))
    }

    /// Returns a reference to nothing.
    pub fn no_value(&mut self) -> ValueId {
        let spaces = Spaces::of(Space::TableValue);
        self.builder.push(Op::NullRef(spaces), IrType::Ref(spaces))
    }

    /// Returns the number that is held.
    pub fn number(&self, held: Held) -> Result<ValueId, NotLiftable> {
        match held {
            Held::Number(value) => Ok(value),
            Held::Nothing => {
                self.refuse("it reads a register that is not set on every path to here")
            }
            _ => self.refuse("it computes with an address"),
        }
    }
}
