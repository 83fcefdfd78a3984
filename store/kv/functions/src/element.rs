// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of elements: their codes, names and widths.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// Type of the elements of a value. Elements are little-endian in memory, without alignment.
///
/// The discriminant is the code of the type in protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Element {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Unsigned, 16 bits.
    U16 = 1,
    /// Unsigned, 32 bits.
    U32 = 2,
    /// Unsigned, 64 bits.
    U64 = 3,
    /// Signed, two's complement, 8 bits.
    I8 = 4,
    /// Signed, two's complement, 16 bits.
    I16 = 5,
    /// Signed, two's complement, 32 bits.
    I32 = 6,
    /// Signed, two's complement, 64 bits.
    I64 = 7,
    /// IEEE 754 binary32.
    F32 = 8,
    /// IEEE 754 binary64.
    F64 = 9,
}

impl Element {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
    ];

    /// Returns the type with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Code in protocols.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Name in commands: `u8`, `i64`, `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Size of an element in bytes: 1, 2, 4 or 8.
    pub fn width(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The type of 64 bits and the same kind, into which reductions accumulate: `u64`, `i64` or
    /// `f64`.
    pub fn widest(self) -> Self {
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Self::U64,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Self::I64,
            Self::F32 | Self::F64 => Self::F64,
        }
    }

    /// Returns the number of elements in a value of `length` bytes.
    ///
    /// # Errors
    /// [`Error::ValueLength`] if the last element would be incomplete.
    pub fn count(self, length: usize) -> Result<usize, Error> {
        if length.is_multiple_of(self.width()) {
            Ok(length / self.width())
        } else {
            Err(Error::ValueLength { length, element: self })
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Element {
    type Err = Error;

    /// Parses a name, in lower or upper case.
    fn from_str(name: &str) -> Result<Self, Error> {
        let is_named = |element: &Self| element.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_named).ok_or(Error::UnknownElement)
    }
}

/// Evaluates an expression in which `$number` is the Rust type of an element.
macro_rules! for_element {
    ($element:expr, $number:ident => $body:expr) => {
        match $element {
            $crate::Element::U8 => for_element!(@ u8, $number, $body),
            $crate::Element::U16 => for_element!(@ u16, $number, $body),
            $crate::Element::U32 => for_element!(@ u32, $number, $body),
            $crate::Element::U64 => for_element!(@ u64, $number, $body),
            $crate::Element::I8 => for_element!(@ i8, $number, $body),
            $crate::Element::I16 => for_element!(@ i16, $number, $body),
            $crate::Element::I32 => for_element!(@ i32, $number, $body),
            $crate::Element::I64 => for_element!(@ i64, $number, $body),
            $crate::Element::F32 => for_element!(@ f32, $number, $body),
            $crate::Element::F64 => for_element!(@ f64, $number, $body),
        }
    };
    (@ $type:ty, $number:ident, $body:expr) => {{
        type $number = $type;
        $body
    }};
}
pub(crate) use for_element;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_and_widths_agree() {
        for (code, element) in Element::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(element.code()), code);
            assert_eq!(Element::from_code(element.code()), Some(element));
            assert_eq!(element.name().parse(), Ok(element));
            assert_eq!(element.name().to_uppercase().parse(), Ok(element));
            assert_eq!(element.name()[1..], (8 * element.width()).to_string());
            assert_eq!(element.widest().name()[..1], element.name()[..1]);
            assert_eq!(element.widest().width(), 8);
            for_element!(element, T => {
                assert_eq!(size_of::<T>(), element.width());
                assert_eq!(std::any::type_name::<T>(), element.name());
            });
        }
        assert_eq!(Element::from_code(10), None);
        assert_eq!("u128".parse::<Element>(), Err(Error::UnknownElement));
    }

    #[test]
    fn an_incomplete_element_is_refused() {
        assert_eq!(Element::I32.count(12), Ok(3));
        assert_eq!(Element::F64.count(0), Ok(0));
        let error = Element::U64.count(12).unwrap_err();
        assert_eq!(error.to_string(), "the value has 12 bytes, not a multiple of 8 (u64)");
    }
}
