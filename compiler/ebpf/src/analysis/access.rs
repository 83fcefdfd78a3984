// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory accesses, and which of them may overlap.

use super::unknown::Unknown;
use super::value::MapName;
use std::fmt;

/// A memory access of an instruction: for a load, a store or an atomic operation, of the memory at
/// its address; for a call, of memory that the helper is passed or changes otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Slot of the instruction.
    pub slot: usize,
    /// Register that holds the address; `None` for memory that a helper accesses without receiving
    /// its address.
    pub register: Option<u8>,
    /// Kind of the access.
    pub kind: AccessKind,
    /// Memory that is accessed.
    pub space: Space,
    /// Least and greatest offset of the first byte from the start of the space.
    pub offset: (i64, i64),
    /// Maximum number of bytes, or `None` if unknown.
    pub size: Option<u64>,
    /// Whether the access is proven to be in bounds on every execution.
    pub is_proven: bool,
}

/// Kind of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum AccessKind {
    Read,
    Write,
    /// Read and write.
    Change,
}

impl AccessKind {
    /// Returns whether the access can modify memory.
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

/// A region of memory; offsets count from its start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// The context, `xdp_md`.
    Context,
    /// The packet.
    Packet,
    /// The metadata before the packet.
    Metadata,
    /// A stack frame; offsets count from its frame pointer and are negative.
    Stack {
        /// Number of calls up the stack: 0 is the function's own frame. `None` if it may be any
        /// frame.
        calls_up: Option<u8>,
    },
    /// A value of a map.
    MapValue(MapName),
    /// A record that a helper reserved in a ring buffer.
    Record(MapName),
    /// The key of a map element for which a helper calls the function.
    Key(MapName),
    /// Any memory, because the address is unknown.
    Unknown(Unknown),
}

impl Access {
    /// Returns whether both may touch the same byte, provided that control stays in the function
    /// and no packet address is invalidated in between. `false` is certain.
    pub fn may_touch(&self, other: &Self) -> bool {
        match (self.space, other.space) {
            (Space::Unknown(_), _) | (_, Space::Unknown(_)) => true,
            // An address that is not proven may lead from one space into the other.
            (Space::Packet, Space::Metadata) | (Space::Metadata, Space::Packet) => {
                !(self.is_proven && other.is_proven)
            }
            (Space::Stack { calls_up: one }, Space::Stack { calls_up: another }) => {
                match (one, another) {
                    (Some(one), Some(another)) => one == another && self.overlaps(other),
                    _ => true,
                }
            }
            (Space::MapValue(one), Space::MapValue(another)) => {
                may_be_one(one, another) && self.meets_in_element(other)
            }
            (Space::Record(one), Space::Record(another)) => {
                may_be_one(one, another) && self.meets_in_element(other)
            }
            (one, another) => one == another && self.overlaps(other),
        }
    }

    /// Returns whether one access writes bytes that the other may touch, so that their order
    /// matters.
    pub fn conflicts(&self, other: &Self) -> bool {
        (self.kind.writes() || other.kind.writes()) && self.may_touch(other)
    }

    /// Returns whether accesses proven to be within one element may overlap.
    fn meets_in_element(&self, other: &Self) -> bool {
        !(self.is_proven && other.is_proven) || self.overlaps(other)
    }

    /// Returns whether the byte ranges may overlap, relative to the same origin.
    fn overlaps(&self, other: &Self) -> bool {
        let end = |access: &Self| {
            access.size.map_or(i64::MAX, |size| access.offset.1.saturating_add_unsigned(size))
        };
        self.offset.0 < end(other) && other.offset.0 < end(self)
    }
}

/// Returns whether two names may refer to the same map.
fn may_be_one(one: MapName, other: MapName) -> bool {
    match (one, other) {
        (MapName::Map(one), MapName::Map(other)) => one == other,
        // An inner map may be one of the object's own maps.
        _ => true,
    }
}

impl fmt::Display for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context => formatter.write_str("context"),
            Self::Packet => formatter.write_str("packet"),
            Self::Metadata => formatter.write_str("metadata"),
            Self::Stack { calls_up: Some(0) } => formatter.write_str("stack"),
            Self::Stack { calls_up: Some(calls) } => write!(formatter, "stack, {calls} calls up"),
            Self::Stack { calls_up: None } => formatter.write_str("stack of some function"),
            Self::MapValue(map) => write!(formatter, "value of {map}"),
            Self::Record(map) => write!(formatter, "record of {map}"),
            Self::Key(map) => write!(formatter, "key of {map}"),
            Self::Unknown(unknown) => write!(formatter, "not known ({unknown})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(space: Space, offset: (i64, i64), size: u64, is_proven: bool) -> Access {
        let (register, kind) = (Some(1), AccessKind::Write);
        Access { slot: 0, register, kind, space, offset, size: Some(size), is_proven }
    }

    #[test]
    fn what_is_apart_cannot_touch() {
        let packet = |offset, size| access(Space::Packet, offset, size, true);
        assert!(!packet((0, 0), 6).may_touch(&packet((6, 6), 6)));
        assert!(packet((0, 0), 7).may_touch(&packet((6, 6), 6)));
        assert!(packet((0, 0), 2).may_touch(&packet((0, 60), 1)));
        assert!(!packet((14, 74), 2).may_touch(&packet((0, 12), 2)));
        let endless = Access { size: None, ..packet((3, 3), 0) };
        assert!(endless.may_touch(&packet((100, 100), 1)));
        assert!(!endless.may_touch(&packet((0, 0), 3)));
    }

    #[test]
    fn spaces_are_apart_unless_an_address_may_lead_across() {
        let (map, inside) = (MapName::Map(1), MapName::Inside(2));
        let value = |map, proven| access(Space::MapValue(map), (0, 0), 4, proven);
        let stack = |calls_up| access(Space::Stack { calls_up }, (-8, -8), 8, true);
        assert!(!value(map, false).may_touch(&stack(Some(0))));
        assert!(!value(map, true).may_touch(&value(MapName::Map(2), true)));
        assert!(value(map, true).may_touch(&value(inside, true)));
        let behind = Access { offset: (4, 4), ..value(map, true) };
        assert!(!value(map, true).may_touch(&behind));
        assert!(value(map, false).may_touch(&behind), "it may be in the next element");
        assert!(!stack(Some(0)).may_touch(&stack(Some(1))));
        assert!(stack(Some(0)).may_touch(&stack(None)));
        let read = Access { kind: AccessKind::Read, ..value(map, true) };
        assert!(read.conflicts(&value(map, true)) && !read.conflicts(&read));
    }
}
