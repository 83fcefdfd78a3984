// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts about registers and memory before each instruction, on all paths to it.

use super::access::Access;
use super::check::Checked;
use super::scalar::Scalar;
use super::spill::{self, Spill};
use super::state::{COUNT, State, UNPROVEN};
use super::unknown::{Place, Unknown, Why};
use super::value::{Kind, MapName, Region, Value};
use std::fmt;

/// A fact about a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// Type of the value.
    pub holds: Type,
    /// Whether it may also be 0.
    pub may_be_null: bool,
}

/// Type of a value. Offsets are in bytes, with a least and a greatest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// No usable value: not set on every path, or not read again.
    Nothing,
    /// A number.
    Number(Scalar),
    /// The address of the context.
    Context {
        /// Offset from its start.
        offset: (i64, i64),
    },
    /// An address in the packet.
    Packet {
        /// Offset from its start.
        offset: (i64, i64),
        /// Number of bytes from the address on that comparisons have proven to be in the packet.
        /// Negative if only bytes before the address are proven; `None` if nothing is.
        proven: Option<i64>,
    },
    /// An address in the metadata before the packet.
    Metadata {
        /// Offset from its start.
        offset: (i64, i64),
        /// As for the packet, proven by comparisons with the packet's start.
        proven: Option<i64>,
    },
    /// The address after the packet's last byte.
    PacketEnd,
    /// The lower half of an address in the packet or of its end. Only differences between such
    /// halves are meaningful.
    Half,
    /// An address in a frame.
    Stack {
        /// Number of calls from this function up to the frame's function; `None` if it may differ.
        calls_up: Option<u8>,
        /// Offset from its frame pointer.
        offset: (i64, i64),
    },
    /// A reference to a map.
    Map(MapName),
    /// An address in a value of a map.
    MapValue {
        /// The map.
        map: MapName,
        /// Offset from the value's start.
        offset: (i64, i64),
    },
    /// An address in a record of a ring buffer.
    Record {
        /// The ring buffer.
        map: MapName,
        /// Minimum size of the record in bytes.
        size: u64,
        /// Offset from the record's start.
        offset: (i64, i64),
    },
    /// An address in the key of a map element for which a helper calls the function.
    Key {
        /// The map.
        map: MapName,
        /// Offset from the key's start.
        offset: (i64, i64),
    },
    /// A function of the program, by its first slot.
    Function(usize),
    /// An unknown value, with the reason.
    Unknown(Unknown),
}

/// Facts at one instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotFacts {
    /// Facts of registers; `None` if the instruction is unreachable.
    pub registers: Option<Box<[Fact; COUNT]>>,
    /// Known contents of the top frame.
    pub spills: Vec<Spill>,
    pub accesses: Vec<Access>,
    pub check: Checked,
    /// Whether a conditional jump can be taken, and whether it can fall through.
    pub outcomes: [bool; 2],
    /// Entries of functions that a helper calls here.
    pub callbacks: Vec<usize>,
}

impl Fact {
    /// Creates the fact of an unknown value, with the reason.
    pub(super) fn unknown(unknown: Unknown) -> Self {
        Self { holds: Type::Unknown(unknown), may_be_null: false }
    }

    /// Returns the fact about a value of a state.
    pub(super) fn of(state: &State, value: &Value) -> Self {
        Self { holds: Type::of(state, value), may_be_null: value.may_be_null }
    }

    /// Joins two facts of a value in `place` at `slot`: what holds in both cases.
    pub(super) fn join(&self, other: &Self, slot: usize, place: Place) -> Self {
        let is_null = |fact: &Self| fact.holds == Type::Number(Scalar::constant(0));
        let nullable = |fact: &Self| Self { may_be_null: true, ..*fact };
        let holds = match (self.holds.join(&other.holds), is_null(self), is_null(other)) {
            (Some(holds), ..) => holds,
            (None, true, _) if other.holds.is_address() => return nullable(other),
            (None, _, true) if self.holds.is_address() => return nullable(self),
            _ => Type::Unknown(Unknown { slot, place, why: Why::PathsDiffer }),
        };
        Self { holds, may_be_null: self.may_be_null || other.may_be_null }
    }
}

impl Type {
    fn of(state: &State, value: &Value) -> Self {
        match value.kind {
            Kind::Nothing => Self::Nothing,
            Kind::Number(scalar) => Self::Number(scalar),
            Kind::PacketEnd => Self::PacketEnd,
            Kind::Half { .. } => Self::Half,
            Kind::Map(map) => Self::Map(map),
            Kind::Function(slot) => Self::Function(slot),
            Kind::Unknown(unknown) => Self::Unknown(unknown),
            Kind::Packet { base, offset } => {
                let place = state.bases[base].place;
                let proven = Some(state.proven(base)).filter(|proven| *proven != UNPROVEN);
                let proven = proven.map(|proven| proven - offset);
                let offset = (place.0 + offset, place.1 + offset);
                match state.bases[base].is_metadata {
                    true => Self::Metadata { offset, proven },
                    false => Self::Packet { offset, proven },
                }
            }
            Kind::Address { region, offset } => match region {
                Region::Context => Self::Context { offset },
                Region::Stack { depth } => {
                    Self::Stack { calls_up: Some(state.depth() as u8 - depth), offset }
                }
                Region::Value(map) => Self::MapValue { map, offset },
                Region::Record { map, size, .. } => Self::Record { map, size, offset },
                Region::Key { map, .. } => Self::Key { map, offset },
            },
        }
    }

    /// Returns whether it is an address, or refers to a map or a function.
    pub fn is_address(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Number(_) | Self::Half | Self::Unknown(_))
    }

    /// Joins two types, or returns `None` if they have nothing in common.
    fn join(&self, other: &Self) -> Option<Self> {
        let hull = |one: &(i64, i64), other: &(i64, i64)| (one.0.min(other.0), one.1.max(other.1));
        Some(match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::Unknown(unknown), _) | (_, Self::Unknown(unknown)) => Self::Unknown(*unknown),
            (Self::Number(one), Self::Number(another)) => Self::Number(one.join(another)),
            (Self::Context { offset: one }, Self::Context { offset: another }) => {
                Self::Context { offset: hull(one, another) }
            }
            (
                Self::Packet { offset: one, proven },
                Self::Packet { offset: another, proven: less },
            ) => Self::Packet { offset: hull(one, another), proven: *proven.min(less) },
            (
                Self::Metadata { offset: one, proven },
                Self::Metadata { offset: another, proven: less },
            ) => Self::Metadata { offset: hull(one, another), proven: *proven.min(less) },
            (
                Self::Stack { calls_up: up, offset: one },
                Self::Stack { calls_up: other, offset: another },
            ) => {
                let calls_up = if up == other { *up } else { None };
                Self::Stack { calls_up, offset: hull(one, another) }
            }
            (
                Self::MapValue { map, offset: one },
                Self::MapValue { map: other, offset: another },
            ) if map == other => Self::MapValue { map: *map, offset: hull(one, another) },
            (
                Self::Record { map, size, offset: one },
                Self::Record { map: other, size: less, offset: another },
            ) if map == other => {
                Self::Record { map: *map, size: *size.min(less), offset: hull(one, another) }
            }
            (Self::Key { map, offset: one }, Self::Key { map: other, offset: another })
                if map == other =>
            {
                Self::Key { map: *map, offset: hull(one, another) }
            }
            (one, another) if one == another => *one,
            _ => return None,
        })
    }
}

impl SlotFacts {
    /// Adds the facts of another path to here; `room` limits the facts of frames that may still be
    /// added.
    pub fn add_state(&mut self, slot: usize, state: &State, room: &mut usize) {
        let more = state.registers.each_ref().map(|value| Fact::of(state, value));
        match &mut self.registers {
            None => {
                self.registers = Some(Box::new(more));
                let spills = spill::spills(state);
                if let Some(left) = room.checked_sub(spills.len()) {
                    (self.spills, *room) = (spills, left);
                }
            }
            Some(known) => {
                if !self.spills.is_empty() {
                    spill::join(&mut self.spills, &spill::spills(state), slot);
                }
                for (register, (known, more)) in (0..).zip(known.iter_mut().zip(&more)) {
                    *known = known.join(more, slot, Place::Register(register));
                }
            }
        }
    }

    /// Adds an access: one for each register and space.
    pub fn add_access(&mut self, access: &Access) {
        let is_alike = |known: &&mut Access| {
            (known.register, known.kind, known.space)
                == (access.register, access.kind, access.space)
        };
        match self.accesses.iter_mut().find(is_alike) {
            None => self.accesses.push(*access),
            Some(known) => {
                let offset = known.offset;
                known.offset = (offset.0.min(access.offset.0), offset.1.max(access.offset.1));
                known.size = known.size.zip(access.size).map(|(one, other)| one.max(other));
                known.is_proven &= access.is_proven;
            }
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.holds, if self.may_be_null { " or 0" } else { "" })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |offset: &(i64, i64)| match offset {
            (least, most) if least == most => format!("{least:+}"),
            (least, most) => format!("{least:+}..={most:+}"),
        };
        let there = |proven: &Option<i64>| match proven {
            Some(bytes) => format!(" ({bytes} bytes there)"),
            None => String::new(),
        };
        match self {
            Self::Nothing => formatter.write_str("nothing"),
            Self::Number(scalar) => write!(formatter, "{scalar}"),
            Self::Context { offset } => write!(formatter, "context{}", place(offset)),
            Self::Packet { offset, proven } => {
                write!(formatter, "packet{}{}", place(offset), there(proven))
            }
            Self::Metadata { offset, proven } => {
                write!(formatter, "metadata{}{}", place(offset), there(proven))
            }
            Self::PacketEnd => formatter.write_str("end of the packet"),
            Self::Half => formatter.write_str("lower half of an address"),
            Self::Stack { calls_up: Some(0), offset } => {
                write!(formatter, "stack{}", place(offset))
            }
            Self::Stack { calls_up: Some(calls), offset } => {
                write!(formatter, "stack{} of {calls} calls up", place(offset))
            }
            Self::Stack { calls_up: None, offset } => {
                write!(formatter, "stack{} of some function", place(offset))
            }
            Self::Map(map) => write!(formatter, "{map}"),
            Self::MapValue { map, offset } => write!(formatter, "value{} of {map}", place(offset)),
            Self::Record { map, size, offset } => {
                write!(formatter, "record{} of {map} ({size} bytes)", place(offset))
            }
            Self::Key { map, offset } => write!(formatter, "key{} of {map}", place(offset)),
            Self::Function(slot) => write!(formatter, "function at {slot}"),
            Self::Unknown(unknown) => write!(formatter, "not known ({unknown})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{analysed, before};

    #[test]
    fn facts_of_two_ways_are_what_both_have_in_common() {
        let text = |one: &str, other: &str| {
            let text = format!(
                "r5 = *(u32 *)(r1 + 12)\nif r5 == 0 goto other\n{one}\ngoto join\nother:\n\
                 {other}\njoin:\nr0 = r2\nexit"
            );
            let analysis = analysed(&text);
            let last = analysis.graph().slots() - 2;
            before(&analysis, last, 2)
        };
        assert_eq!(text("r2 = 3", "r2 = 9"), "0x3..=0x9");
        assert_eq!(text("r2 = r10", "r2 = 0"), "stack+0 or 0");
        assert_eq!(text("r2 = map[0]", "r2 = map[0]"), "map 0");
        assert!(text("r2 = map[0]", "r2 = map[1]").starts_with("not known"));
        assert!(text("r2 = r10", "r2 = 4").starts_with("not known"));
    }
}
