// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of the batched protocol, and their first byte.

/// Bits of the first byte that name the operation.
pub(super) const OPCODE: u8 = 0x0f;
/// No lengths are sent.
pub(super) const SAME_SIZE: u8 = 1 << 4;
/// The value is the last one in the packet.
pub(super) const SAME_VALUE: u8 = 1 << 5;
/// The reply has no value.
pub(super) const NO_RETURN: u8 = 1 << 6;
/// Lengths have four bytes.
pub(super) const WIDE: u8 = 1 << 7;

/// An operation's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Returns the value of a key.
    Get = 1,
    /// Sets the value of a key.
    Put = 2,
    /// Removes a key.
    Delete = 3,
    /// Updates a value of one element.
    Update = 4,
    /// Updates all elements of a value with the same operands.
    UpdateSame = 5,
    /// Updates each element of a value with its own operands.
    UpdateVector = 6,
    /// Folds all elements of a value.
    Reduce = 7,
    /// Returns those elements of a value that a function accepts.
    Filter = 8,
    /// Returns the list of functions.
    Functions = 13,
    /// Logs in: the first operation of a connection.
    Hello = 14,
}

impl Opcode {
    /// All operations, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Get,
        Self::Put,
        Self::Delete,
        Self::Update,
        Self::UpdateSame,
        Self::UpdateVector,
        Self::Reduce,
        Self::Filter,
        Self::Functions,
        Self::Hello,
    ];

    /// The operation has a key: all but [`Functions`](Self::Functions).
    #[inline]
    pub const fn has_key(self) -> bool {
        !matches!(self, Self::Functions)
    }

    /// The operation has a value, which may be empty.
    #[inline]
    pub const fn has_value(self) -> bool {
        !matches!(self, Self::Get | Self::Delete | Self::Functions)
    }

    /// The operation names a function and a type of elements.
    #[inline]
    pub const fn has_function(self) -> bool {
        use Opcode::{Filter, Reduce, Update, UpdateSame, UpdateVector};
        matches!(self, Update | UpdateSame | UpdateVector | Reduce | Filter)
    }

    /// The operation changes nothing, so that it may be executed again.
    #[inline]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Reduce | Self::Filter | Self::Functions)
    }
}

/// An operation. Fields that it does not have are 0 or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its code.
    pub opcode: Opcode,
    /// The reply has a status and no value.
    pub no_return: bool,
    /// Id of the function.
    pub function: u8,
    /// Code of the type of elements.
    pub element: u8,
    /// Key, or user of a hello.
    pub key: &'a [u8],
    /// Value, operands or sigma.
    pub value: &'a [u8],
}

impl<'a> Operation<'a> {
    /// Reads the value of a key.
    #[inline]
    pub const fn get(key: &'a [u8]) -> Self {
        Self { opcode: Opcode::Get, no_return: false, function: 0, element: 0, key, value: &[] }
    }

    /// Sets the value of a key.
    #[inline]
    pub const fn put(key: &'a [u8], value: &'a [u8]) -> Self {
        Self { opcode: Opcode::Put, value, ..Self::get(key) }
    }

    /// Removes a key.
    #[inline]
    pub const fn delete(key: &'a [u8]) -> Self {
        Self { opcode: Opcode::Delete, ..Self::get(key) }
    }

    /// An operation that calls a function on elements of a type; `value` has its operands.
    #[inline]
    pub const fn call(
        opcode: Opcode,
        key: &'a [u8],
        function: u8,
        element: u8,
        value: &'a [u8],
    ) -> Self {
        Self { opcode, function, element, value, ..Self::get(key) }
    }

    /// Asks for the list of functions.
    pub const fn functions() -> Self {
        Self { opcode: Opcode::Functions, ..Self::get(&[]) }
    }

    /// Logs in; see [`Hello`](super::Hello).
    pub const fn hello(user: &'a [u8], value: &'a [u8]) -> Self {
        Self { opcode: Opcode::Hello, value, ..Self::get(user) }
    }

    /// The same operation with a reply that has no value.
    #[inline]
    pub const fn without_return(self) -> Self {
        Self { no_return: true, ..self }
    }
}

/// The parts of an operation behind its first byte.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Code and flags are one of an operation.
    pub opcode: Option<Opcode>,
    pub lengths: Lengths,
    pub has_value: bool,
    pub has_function: bool,
    pub is_same_value: bool,
}

/// Lengths that an operation has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// None: they are those of the operations before.
    Same,
    /// That of the key, in one byte.
    Key,
    /// That of the key, in four bytes.
    WideKey,
    /// Those of key and value, in one byte and two.
    Both,
    /// Those of key and value, in four bytes each.
    WideBoth,
    /// None: the operation has neither key nor value.
    Nothing,
}

/// Shapes by first byte, so that the flags are tested once for all.
pub(super) static SHAPES: [Shape; 256] = {
    let mut shapes = [shape(0); 256];
    let mut byte = 0;
    while byte < 256 {
        shapes[byte] = shape(byte as u8);
        byte += 1;
    }
    shapes
};

const fn shape(byte: u8) -> Shape {
    let mut shape = Shape {
        opcode: None,
        lengths: Lengths::Nothing,
        has_value: false,
        has_function: false,
        is_same_value: byte & SAME_VALUE != 0,
    };
    let Some(opcode) = opcode(byte & OPCODE) else { return shape };
    let (is_same, is_wide) = (byte & SAME_SIZE != 0, byte & WIDE != 0);
    let is_valid = if opcode.has_key() {
        !(is_same && is_wide) && (opcode.has_value() || !shape.is_same_value)
    } else {
        byte & !OPCODE == 0
    };
    if is_valid {
        shape.opcode = Some(opcode);
    }
    shape.has_value = opcode.has_value();
    shape.has_function = opcode.has_function();
    let has_value_length = opcode.has_value() && !shape.is_same_value;
    shape.lengths = match (opcode.has_key(), is_same, has_value_length, is_wide) {
        (false, ..) => Lengths::Nothing,
        (_, true, ..) => Lengths::Same,
        (_, _, false, false) => Lengths::Key,
        (_, _, false, true) => Lengths::WideKey,
        (_, _, true, false) => Lengths::Both,
        (_, _, true, true) => Lengths::WideBoth,
    };
    shape
}

const fn opcode(code: u8) -> Option<Opcode> {
    let mut at = 0;
    while at < Opcode::ALL.len() {
        if Opcode::ALL[at] as u8 == code {
            return Some(Opcode::ALL[at]);
        }
        at += 1;
    }
    None
}
