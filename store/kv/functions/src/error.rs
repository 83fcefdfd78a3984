// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons why a request or a registration is refused.

use crate::element::Element;
use crate::operands::Operands;
use crate::registry::Kind;
use crate::user::User;
use std::error;
use std::fmt;

/// A request that cannot be carried out. The value is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No type of elements has this name or code.
    UnknownElement,
    /// No function has this id.
    UnknownFunction {
        /// Id of the request.
        id: u8,
    },
    /// The function is of another kind.
    WrongKind {
        /// Id of the request.
        id: u8,
        /// Name of the function with this id.
        name: String,
        /// Kind of the function.
        kind: Kind,
        /// Kind of the request.
        wanted: Kind,
    },
    /// A user function is not registered for this type of elements.
    UnsupportedElement {
        /// Name of the function.
        name: String,
        /// Element of the request.
        element: Element,
    },
    /// The value is no array of elements.
    ValueLength {
        /// Length of the value in bytes.
        length: usize,
        /// Element of the request.
        element: Element,
    },
    /// The value is no single element.
    NotScalar {
        /// Length of the value in bytes.
        length: usize,
        /// Element of the request.
        element: Element,
    },
    /// The operand has the wrong length.
    OperandLength {
        /// Name of the function.
        name: String,
        /// Names of the parts of one operand, with commas between them.
        parts: String,
        /// Length in bytes that fits the value, the element and the function.
        expected: usize,
        /// Length in bytes of the request.
        length: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownElement => {
                out.write_str("no such element; one of")?;
                Element::ALL.iter().try_for_each(|element| write!(out, " {element}"))
            }
            Self::UnknownFunction { id } => write!(out, "no function has id {id}"),
            Self::WrongKind { id, name, kind, wanted } => {
                write!(out, "function {id} is the {kind} `{name}`, not of kind {wanted}")
            }
            Self::UnsupportedElement { name, element } => {
                write!(out, "function `{name}` is not registered for {element}")
            }
            Self::ValueLength { length, element } => {
                let width = element.width();
                write!(out, "the value has {length} bytes, not a multiple of {width} ({element})")
            }
            Self::NotScalar { length, element } => {
                let width = element.width();
                write!(out, "the value has {length} bytes, not {width} (one {element})")
            }
            Self::OperandLength { name, parts, expected, length } => {
                write!(out, "the operand of `{name}` ")?;
                if !parts.is_empty() {
                    write!(out, "({parts}) ")?;
                }
                write!(out, "has {length} bytes; {expected} are needed")
            }
        }
    }
}

impl error::Error for Error {}

/// Checks the length in bytes of the operand of function `name`, which consists of `parts`.
pub(crate) fn check_operand(
    name: &str,
    parts: Operands<'_>,
    expected: usize,
    operand: &[u8],
) -> Result<(), Error> {
    if operand.len() == expected {
        return Ok(());
    }
    let (name, parts, length) = (name.into(), parts.to_string(), operand.len());
    Err(Error::OperandLength { name, parts, expected, length })
}

/// Names that are allowed.
const LETTERS: &str = "use 1 to 64 letters from a to z, digits and _, with a letter first";

/// A user function that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedFunction {
    /// Ids below [`Registry::FIRST_USER_ID`](crate::Registry::FIRST_USER_ID) are built in, or
    /// reserved for that.
    ReservedId {
        /// Refused id.
        id: u8,
    },
    /// Another function has this id.
    DuplicateId {
        /// Refused id.
        id: u8,
        /// Name of the function with this id.
        name: String,
    },
    /// Another function of the same kind has this name.
    DuplicateName {
        /// Refused name.
        name: String,
        /// Id of the function with this name.
        id: u8,
    },
    /// A name has 1 to 64 letters from `a` to `z`, digits and `_`, and begins with a letter.
    Name {
        /// Refused name.
        name: String,
    },
    /// The function is for no type of elements.
    NoElement {
        /// Name of the function.
        name: String,
    },
    /// An update or a filter has at most [`User::MAX_OPERANDS`] operands, a reduction has one.
    OperandCount {
        /// Name of the function.
        name: String,
        /// Kind of the function.
        kind: Kind,
        /// Number of its operands.
        count: usize,
    },
    /// The name of an operand has the letters of the name of a function, and occurs once.
    OperandName {
        /// Name of the function.
        name: String,
        /// Refused name of the operand.
        operand: String,
    },
}

impl fmt::Display for RefusedFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedId { id } => {
                write!(out, "id {id} is reserved; user functions have ids from 128 to 255")
            }
            Self::DuplicateId { id, name } => {
                write!(out, "id {id} belongs to `{name}`; choose another id")
            }
            Self::DuplicateName { name, id } => {
                write!(out, "`{name}` is the name of function {id}; choose another name")
            }
            Self::Name { name } => write!(out, "`{}` is no name; {LETTERS}", name.escape_debug()),
            Self::NoElement { name } => {
                write!(out, "`{name}` is for no element; name at least one type")
            }
            Self::OperandCount { name, kind, count } => {
                write!(out, "`{name}` has {count} operands; functions of kind {kind} have ")?;
                match kind {
                    Kind::Reduce => out.write_str("1, sigma"),
                    Kind::Update | Kind::Filter => write!(out, "0 to {}", User::MAX_OPERANDS),
                }
            }
            Self::OperandName { name, operand } => {
                let operand = operand.escape_debug();
                write!(
                    out,
                    "`{operand}` is no name of an operand of `{name}`, or is there twice; "
                )?;
                out.write_str(LETTERS)
            }
        }
    }
}

impl error::Error for RefusedFunction {}
