// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of the language. Standard integers and bit-precise ones (`uint13`) follow different
//! conversion rules (see [`conversions`]); records and arrays are laid out as in C (see
//! [`layout`]).

pub mod conversions;
pub mod layout;

use freeport_ir::{SIGNAL_BITS, SIGNAL_PARAM_BIT, SIGNAL_WORDS, Type as IrType, flit};
use std::fmt;
use std::sync::Arc;

/// Maximum width of an integer.
pub const MAX_INTEGER_BITS: u32 = 4096;

/// Bytes of header that an element can read of a packet, unless the port specifies otherwise.
pub const WINDOW_BYTES: u32 = 64;

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// No value.
    Void,
    /// A boolean: one bit; a byte in memory.
    Bool,
    /// An integer.
    Int(IntType),
    /// A struct or a union.
    Record(Arc<Record>),
    /// An array of that many elements of a type.
    Array(Arc<Type>, u64),
    /// A pointer, which the compiler resolves to a place.
    Pointer(Arc<Type>),
    /// A packet, with that many bytes of header window. The window belongs to ports: as values, all
    /// packets have the same type.
    Packet(u32),
}

/// An integer type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IntType {
    /// Width of its values.
    pub width: u32,
    /// Whether it is signed.
    pub is_signed: bool,
    /// Whether it is one of C's standard types rather than a bit-precise one.
    pub is_standard: bool,
}

/// `int`
pub const INT: IntType = IntType { width: 32, is_signed: true, is_standard: true };
/// `uint`
pub const UINT: IntType = IntType { width: 32, is_signed: false, is_standard: true };
/// `long`
pub const LONG: IntType = IntType { width: 64, is_signed: true, is_standard: true };
/// `ulong`
pub const ULONG: IntType = IntType { width: 64, is_signed: false, is_standard: true };

/// A struct or union with its layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// Name; empty if it has none.
    pub name: String,
    /// Whether its members overlap.
    pub is_union: bool,
    /// Its members, in order.
    pub fields: Vec<Field>,
    /// Size in bytes, a multiple of its alignment.
    pub size_bytes: u64,
    /// Alignment in bytes.
    pub align_bytes: u64,
}

/// A member of a record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Field {
    /// Name; `None` for an anonymous record, whose members count as the outer record's.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// Its lowest bit in the record.
    pub bit: u64,
    /// Width, if it is a bit field.
    pub bit_field: Option<u32>,
}

impl IntType {
    /// Returns `uintN` or `intN`; 8, 16, 32 and 64 bits are the standard types.
    pub fn of_width(width: u32, is_signed: bool) -> Self {
        Self { width, is_signed, is_standard: matches!(width, 8 | 16 | 32 | 64) }
    }
}

impl Type {
    /// Returns `uintN`.
    pub fn uint(width: u32) -> Self {
        Type::Int(IntType::of_width(width, false))
    }

    /// Names of built-in types, as spelled in the source.
    pub const NAMES: [&str; 15] = [
        "void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "flit",
        "packet", "ClSignal", "size_t", "unsigned",
    ];

    /// Returns the type with a name of its own, other than a record.
    pub fn named(name: &str) -> Option<Self> {
        let standard = |width, is_signed| Type::Int(IntType::of_width(width, is_signed));
        Some(match name {
            "void" => Type::Void,
            "bool" | "_Bool" => Type::Bool,
            "char" | "uchar" => standard(8, false),
            "short" => standard(16, true),
            "ushort" => standard(16, false),
            "int" | "signed" => standard(32, true),
            "uint" | "unsigned" => standard(32, false),
            "long" | "ptrdiff_t" | "intptr_t" => standard(64, true),
            "ulong" | "size_t" | "uintptr_t" => standard(64, false),
            _ => {
                let (digits, is_signed) = match name.strip_prefix("uint") {
                    Some(digits) => (digits, false),
                    None => (name.strip_prefix("int")?, true),
                };
                let plain = digits.strip_suffix("_t");
                let width: u32 = plain.unwrap_or(digits).parse().ok()?;
                let is_plain_number = !digits.starts_with(['0', '+']);
                let exists = match plain {
                    Some(_) => matches!(width, 8 | 16 | 32 | 64),
                    None => (1..=MAX_INTEGER_BITS).contains(&width),
                };
                return (is_plain_number && exists).then(|| standard(width, is_signed));
            }
        })
    }

    /// Returns the integer type that a value of this type is computed with, if it is a number.
    pub fn as_integer(&self) -> Option<IntType> {
        match self {
            Type::Int(int) => Some(*int),
            Type::Bool => Some(IntType { width: 1, is_signed: false, is_standard: true }),
            _ => None,
        }
    }

    /// Returns whether it is a number.
    pub fn is_integer(&self) -> bool {
        matches!(self, Type::Int(_) | Type::Bool)
    }

    /// Returns the width of a value: of an integer, or of the memory of a record or array.
    pub fn value_bits(&self) -> u64 {
        match self {
            Type::Void | Type::Pointer(_) | Type::Packet(_) => 0,
            Type::Bool => 1,
            Type::Int(int) => u64::from(int.width),
            Type::Record(_) | Type::Array(..) => layout::size_bytes(self) * 8,
        }
    }

    /// Returns the IR type of values of this type.
    pub fn ir(&self) -> IrType {
        match self {
            Type::Packet(_) => IrType::Packet,
            other => IrType::Bits(other.value_bits() as u32),
        }
    }

    /// Returns the element type of nested arrays, and the total number of elements.
    pub fn innermost(&self) -> (&Type, u64) {
        match self {
            Type::Array(item, count) => {
                let (inner, inner_count) = item.innermost();
                (inner, inner_count.saturating_mul(*count))
            }
            other => (other, 1),
        }
    }

    /// Returns the type of a flit's members, by name, with their positions in
    /// [`freeport_ir::flit`].
    pub fn flit() -> Self {
        let header = record("flit header", 64, flit_fields());
        let inner = record("flit words", 64, vec![field("fd", header, 0)]);
        let fields = [flit_fields(), vec![field("flit", inner, 0)]].concat();
        record("flit", 64, fields)
    }

    /// Returns `ClSignal`, as described at [`freeport_ir::SIGNAL_BITS`].
    pub fn signal() -> Self {
        let bytes = u64::from(SIGNAL_BITS / 8);
        let inner = record("signal", bytes, signal_fields());
        let fields = [signal_fields(), vec![field("Sig", inner, 0)]].concat();
        record("ClSignal", bytes, fields)
    }

    /// Returns whether it is [`Type::flit`].
    pub fn is_flit(&self) -> bool {
        matches!(self, Type::Record(record) if record.name == "flit")
    }
}

fn record(name: &str, size_bytes: u64, fields: Vec<Field>) -> Type {
    let name = name.to_string();
    Type::Record(Arc::new(Record { name, is_union: false, fields, size_bytes, align_bytes: 8 }))
}

fn field(name: &str, ty: Type, bit: u32) -> Field {
    Field { name: Some(name.to_string()), ty, bit: u64::from(bit), bit_field: None }
}

fn flit_fields() -> Vec<Field> {
    let bytes = |count| Type::Array(Arc::new(Type::uint(8)), count);
    vec![
        field("data", Type::uint(256), 0),
        field("fdata", bytes(flit::PAYLOAD_BYTES as u64), 0),
        field("sop", Type::Bool, flit::SOP_BIT),
        field("eop", Type::Bool, flit::EOP_BIT),
        field("pad", Type::uint(flit::PAD_BITS), flit::PAD_BIT),
        field("meta", Type::uint(flit::META_BITS), flit::META_BIT),
        field("x", bytes(u64::from(flit::META_BITS / 8)), flit::META_BIT),
    ]
}

fn signal_fields() -> Vec<Field> {
    let words = Type::Array(Arc::new(Type::Int(ULONG)), SIGNAL_WORDS as u64);
    vec![
        field("Cmd", Type::Int(UINT), 0),
        field("Element", Type::Int(UINT), 32),
        field("LParam", words, SIGNAL_PARAM_BIT),
    ]
}

/// Prints the type as spelled in a program.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Void => write!(f, "void"),
            Type::Bool => write!(f, "bool"),
            Type::Int(int) => write!(f, "{int}"),
            Type::Record(record) if record.name.is_empty() && record.is_union => {
                write!(f, "union")
            }
            Type::Record(record) if record.name.is_empty() => write!(f, "struct"),
            Type::Record(record) => write!(f, "{}", record.name),
            Type::Array(..) => {
                let mut item = self;
                let mut dimensions = String::new();
                while let Type::Array(inner, count) = item {
                    dimensions += &format!("[{count}]");
                    item = inner;
                }
                write!(f, "{item}{dimensions}")
            }
            Type::Pointer(target) => write!(f, "{target} *"),
            Type::Packet(WINDOW_BYTES) => write!(f, "packet"),
            Type::Packet(window) => write!(f, "packet<{window}>"),
        }
    }
}

impl fmt::Display for IntType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_signed { "" } else { "u" };
        match (self.is_standard, self.width) {
            (true, 8) if self.is_signed => write!(f, "int8"),
            (true, 8) => write!(f, "uchar"),
            (true, 16) => write!(f, "{sign}short"),
            (true, 32) => write!(f, "{sign}int"),
            (true, 64) => write!(f, "{sign}long"),
            (_, width) => write!(f, "{sign}int{width}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_types_and_types_their_names() {
        for name in ["bool", "uchar", "short", "uint", "long", "uint13", "int1024", "void"] {
            assert_eq!(Type::named(name).expect("a type").to_string(), name);
        }
        assert_eq!(Type::named("uint32_t"), Some(Type::Int(UINT)));
        assert_eq!(Type::named("int64"), Some(Type::Int(LONG)));
        for name in ["uint0", "uint4097", "int24_t", "uint08", "integer", "uintx", "intp"] {
            assert_eq!(Type::named(name), None, "{name}");
        }
    }

    #[test]
    fn flits_and_signals_have_the_size_of_their_items() {
        assert_eq!(Type::flit().value_bits(), u64::from(flit::FLIT_BITS));
        assert_eq!(Type::signal().value_bits(), u64::from(SIGNAL_BITS));
    }
}
