// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments, results and side effects of helpers, as an analysis needs them.

/// An argument of a helper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A number.
    Number,
    /// The context.
    Context,
    /// A map.
    Map,
    /// Memory with a key of the map.
    Key,
    /// Memory with a value of the map.
    Value,
    /// Memory that receives a value of the map, or contains one to be tested.
    Room,
    /// Memory that is read; the next argument is its length.
    Read,
    /// Memory that is written; the next argument is its length.
    Write,
    /// Memory that is read and written; the next argument is its length.
    Change,
    /// Length in bytes of the preceding memory argument.
    Size,
    /// Memory of four bytes that is read and written.
    Word,
    /// Memory of eight bytes that is written.
    Long,
    /// A zero-terminated string.
    Text,
    /// A number to be printed, or a string.
    Printed,
    /// A function of the program.
    Function,
    /// Any value that is passed to that function.
    Passed,
    /// A reserved ring-buffer record.
    Record,
    /// A lock in a value of a map.
    Lock,
}

/// Result of a helper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// A number.
    Number,
    /// The address of a value of the map, or a map of a map of maps; 0 if there is none.
    Value,
    /// The address of a record in a ring buffer, whose length is the second argument; 0 if there is
    /// no room.
    Record,
}

/// Side effect of a helper beyond its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Reads the packet.
    ReadsPacket,
    /// Writes bytes of the packet.
    WritesPacket,
    /// Moves an end of the packet, which invalidates addresses in it.
    MovesPacket,
    /// Changes the contents of the map.
    ChangesMap,
    /// Reads memory at addresses in the arguments of a format.
    ReadsTexts,
    /// Calls the given function repeatedly.
    Repeats,
    /// Calls the given function repeatedly, with a key and a value of the map.
    RepeatsForElements,
}

/// Signature of a helper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Name of the helper.
    pub name: &'static str,
    /// Arguments in registers from 1 on.
    pub arguments: &'static [Argument],
    /// Result in register 0.
    pub gives: Gives,
    /// Side effect.
    pub effect: Option<Effect>,
}

impl Signature {
    /// Returns whether it calls a function of the program.
    pub fn calls_function(&self) -> bool {
        matches!(self.effect, Some(Effect::Repeats | Effect::RepeatsForElements))
    }
}
