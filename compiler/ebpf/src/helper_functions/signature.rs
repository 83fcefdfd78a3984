// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What helpers take, give, and do besides: what an analysis needs to know of a call.

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
    /// Memory that gets a value of the map, or has one that is looked for.
    Room,
    /// Memory that is read, as long as the next argument says.
    Read,
    /// Memory that is written, as long as the next argument says.
    Write,
    /// Memory that is read and written, as long as the next argument says.
    Change,
    /// The length in bytes of the memory before it.
    Size,
    /// Four bytes that are read and written.
    Word,
    /// Eight bytes that are written.
    Long,
    /// A text that a zero ends.
    Text,
    /// A number to be printed, or a text.
    Printed,
    /// A function of the program.
    Function,
    /// Whatever that function is to get.
    Passed,
    /// A record that is reserved in a ring buffer.
    Record,
    /// A lock in a value of a map.
    Lock,
}

/// What a helper gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// A number.
    Number,
    /// The address of a value of the map, or of a map of maps the map; 0 if there is none.
    Value,
    /// The address of a record in a ring buffer, as long as the second argument says; 0 if there
    /// is no room.
    Record,
}

/// What a helper does besides with what is not among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It reads the packet.
    ReadsPacket,
    /// It writes bytes of the packet.
    WritesPacket,
    /// It moves an end of the packet, so that addresses in it mean nothing any more.
    MovesPacket,
    /// It changes what the map holds.
    ChangesMap,
    /// It reads wherever a text says that it should.
    ReadsTexts,
    /// It calls the function that it is given, over and over.
    Repeats,
    /// It calls the function that it is given with a key and a value of the map, over and over.
    RepeatsForElements,
}

/// A helper as its callers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Its name.
    pub name: &'static str,
    /// What is in the registers from 1 on.
    pub arguments: &'static [Argument],
    /// What is in register 0 afterwards.
    pub gives: Gives,
    /// What else it does.
    pub effect: Option<Effect>,
}

impl Signature {
    /// Whether it calls a function of the program.
    pub fn calls_function(&self) -> bool {
        matches!(self.effect, Some(Effect::Repeats | Effect::RepeatsForElements))
    }
}
