// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C types for values of each width, and conversions between values and the integers used for
//! arithmetic.
//!
//! A value is stored in the smallest unsigned type that holds it, and its unused high bits are
//! always 0. Arithmetic uses a type of 32, 64 or 128 bits, or a `_BitInt` of whole 64-bit words;
//! the result is truncated to the width when it becomes a value again.

use freeport_ir::{Bits, Item, Type};

/// Maximum width of a value that is an integer in C; wider ones are structures of bytes.
pub(super) const WIDEST_INTEGER: u32 = 128;

/// Returns whether a value of that width is a structure of bytes.
pub(super) fn is_wide(width: u32) -> bool {
    width > WIDEST_INTEGER
}

/// Returns the number of bytes that hold a value.
pub(super) fn bytes_of(width: u32) -> u32 {
    width.div_ceil(8)
}

/// Returns the type in which a value is stored.
pub(super) fn storage(width: u32) -> String {
    match width {
        0..=8 => "uint8_t".to_owned(),
        9..=16 => "uint16_t".to_owned(),
        17..=32 => "uint32_t".to_owned(),
        33..=64 => "uint64_t".to_owned(),
        65..=128 => "uint128".to_owned(),
        _ => format!("struct wide_{width}"),
    }
}

/// Returns the type in which a value of type `ty` is stored; `None` if it needs no memory, like a
/// table handle.
pub(super) fn storage_of(ty: Type) -> Option<String> {
    match ty {
        Type::Bits(width) => Some(storage(width)),
        Type::Ref(_) => Some("struct reference".to_owned()),
        Type::Packet => Some("struct packet *".to_owned()),
        Type::Handle(_) => None,
    }
}

/// Returns the statement that copies a value of type `ty` from the C lvalue `from` to `to`.
pub(super) fn assign_of(to: &str, from: &str, ty: Type) -> String {
    match ty {
        Type::Bits(width) => assign(to, from, width),
        _ => format!("{to} = {from};"),
    }
}

/// Returns zero of type `ty`; for a reference, null.
pub(super) fn zero_of(ty: Type) -> String {
    match ty {
        Type::Bits(width) => zero(width),
        _ => "{0}".to_owned(),
    }
}

/// Returns the type in which an item waits, or passes from firing to firing.
pub(super) fn item_storage(item: Item) -> String {
    match item {
        Item::Packet { .. } => "struct packet".to_owned(),
        Item::Flit => storage(freeport_ir::flit::FLIT_BITS),
        Item::Bits(width) => storage(width),
    }
}

/// Returns the width of the type used for arithmetic on values of that width.
pub(super) fn computed_bits(width: u32) -> u32 {
    match width {
        0..=32 => 32,
        33..=64 => 64,
        _ => width.next_multiple_of(64),
    }
}

/// Returns the unsigned type used for arithmetic.
pub(super) fn unsigned(width: u32) -> String {
    match computed_bits(width) {
        32 => "uint32_t".to_owned(),
        64 => "uint64_t".to_owned(),
        128 => "uint128".to_owned(),
        bits => format!("unsigned _BitInt({bits})"),
    }
}

/// Returns the signed type of the same size.
pub(super) fn signed(width: u32) -> String {
    match computed_bits(width) {
        32 => "int32_t".to_owned(),
        64 => "int64_t".to_owned(),
        128 => "int128".to_owned(),
        bits => format!("_BitInt({bits})"),
    }
}

/// Returns the value `name` as an unsigned integer.
pub(super) fn integer(name: &str, width: u32) -> String {
    match is_wide(width) {
        true => format!("integer_{width}({name})"),
        false => format!("({})({name})", unsigned(width)),
    }
}

/// Returns the value `name` as a signed integer.
pub(super) fn signed_integer(name: &str, width: u32) -> String {
    let shift = computed_bits(width) - width;
    let integer = integer(name, width);
    let signed = signed(width);
    match shift {
        0 => format!("(({signed})({integer}))"),
        _ => format!("(({signed})(({integer}) << {shift}) >> {shift})"),
    }
}

/// Returns a value of that width from an integer expression, truncated to the width.
pub(super) fn value(expression: &str, width: u32) -> String {
    if is_wide(width) {
        return format!("wide_{width}({expression})");
    }
    let storage = storage(width);
    match width {
        8 | 16 | 32 | 64 | 128 => format!("({storage})({expression})"),
        _ => format!("({storage})(({expression}) & {})", ones(width, width)),
    }
}

/// Returns an integer of `count` ones, in the arithmetic type of `width`.
pub(super) fn ones(count: u32, width: u32) -> String {
    let computed = computed_bits(width);
    match computed {
        32 => format!("{:#x}u", u32::MAX >> (32 - count)),
        64 => format!("UINT64_C({:#x})", u64::MAX >> (64 - count)),
        _ => format!("(~({})0 >> {})", unsigned(width), computed - count),
    }
}

/// Returns the definition of a wide type.
pub(super) fn define(width: u32) -> String {
    let (bytes, rounded) = (bytes_of(width), width.next_multiple_of(64));
    let ty = storage(width);
    let mut text = format!("WIDE({width}, {bytes}, {rounded})\n");
    text += &format!("INLINE void assign_{width}({ty} *to, const {ty} *from) {{\n");
    for word in 0..bytes / 8 {
        text += &format!("    copy_word(to->b + {0}, from->b + {0});\n", word * 8);
    }
    for byte in bytes / 8 * 8..bytes {
        text += &format!("    to->b[{byte}] = from->b[{byte}];\n");
    }
    text + "}\n"
}

/// Returns the statement that copies the C lvalue `from` to `to`.
pub(super) fn assign(to: &str, from: &str, width: u32) -> String {
    match is_wide(width) {
        true => format!("assign_{width}(&{to}, &{from});"),
        false => format!("{to} = {from};"),
    }
}

/// Returns a constant.
pub(super) fn literal(bits: &Bits) -> String {
    let width = bits.width();
    if is_wide(width) {
        let mut bytes = bits.to_le_bytes();
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1));
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        return format!("(struct wide_{width}){{{{{}}}}}", bytes.join(", "));
    }
    format!("({})({})", storage(width), integer_literal(bits))
}

/// Returns a constant of at most 128 bits, as an integer.
pub(super) fn integer_literal(bits: &Bits) -> String {
    match bits.limbs() {
        [low] if *low <= u64::from(u32::MAX) => format!("{low:#x}u"),
        [low] => format!("UINT64_C({low:#x})"),
        [low, high, ..] => format!("(uint128)UINT64_C({high:#x}) << 64 | UINT64_C({low:#x})"),
        [] => "0u".to_owned(),
    }
}

/// Returns zero of that width.
pub(super) fn zero(width: u32) -> String {
    literal(&Bits::zero(width))
}

/// Returns the value `name` as a 64-bit position, saturated.
pub(super) fn saturated(name: &str, width: u32) -> String {
    if width <= 64 {
        return format!("(uint64_t)({name})");
    }
    let integer = integer(name, width);
    format!("(({integer}) >> 64 ? ~UINT64_C(0) : (uint64_t)({integer}))")
}
