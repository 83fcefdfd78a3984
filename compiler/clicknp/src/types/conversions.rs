// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of operations: C23's integer promotions and usual arithmetic conversions (6.3.1.1 and
//! 6.3.1.8), with `int` of 32 bits and `long` of 64.

use super::{INT, IntType, LONG, UINT, ULONG};
use num_bigint::BigUint;

/// Returns the promoted type of an operand: `int` for narrower standard types. Bit-precise types
/// are unchanged; a bit field of a standard type is promoted by its own width, as in GCC and clang.
pub fn promoted(ty: IntType, bit_field: Option<u32>) -> IntType {
    let fits = match (ty.is_standard, bit_field) {
        (false, _) => return ty,
        (true, Some(width)) => width < INT.width || width == INT.width && ty.is_signed,
        (true, None) => ty.width < INT.width,
    };
    match bit_field {
        _ if fits => INT,
        Some(width) if width == INT.width => UINT,
        _ => ty,
    }
}

/// Returns the common type of two operands, after promotion of each.
pub fn usual(left: IntType, right: IntType) -> IntType {
    let rank = |ty: IntType| (ty.width, ty.is_standard);
    if left.is_signed == right.is_signed {
        return if rank(left) >= rank(right) { left } else { right };
    }
    let (signed, unsigned) = if left.is_signed { (left, right) } else { (right, left) };
    if rank(unsigned) >= rank(signed) {
        unsigned
    } else if signed.width > unsigned.width {
        signed
    } else {
        IntType { is_signed: false, ..signed }
    }
}

/// Returns the type of a literal: the first of `int`, `uint`, `long` and `ulong` that holds it,
/// except those excluded by its suffix or (for decimal) the lack of one; beyond 64 bits, `uintN` of
/// its size.
pub fn of_literal(value: &BigUint, suffix: &str, is_decimal: bool) -> IntType {
    let has_u = suffix.contains('u');
    let candidates = [INT, UINT, LONG, ULONG];
    let fits = |ty: &&IntType| {
        let allowed = ty.is_signed && !has_u || !ty.is_signed && (has_u || !is_decimal);
        let is_long_enough = !suffix.contains('l') || ty.width == LONG.width;
        let bits = u64::from(ty.width) - u64::from(ty.is_signed);
        allowed && is_long_enough && value.bits() <= bits
    };
    match candidates.iter().find(fits) {
        Some(ty) => *ty,
        None if value.bits() <= u64::from(ULONG.width) => ULONG,
        None => IntType::of_width(value.bits() as u32, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(name: &str) -> IntType {
        super::super::Type::named(name).and_then(|ty| ty.as_integer()).expect("an integer")
    }

    #[test]
    fn operations_have_the_types_of_c23() {
        let cases = [
            ("uchar", "ushort", "int"),
            ("bool", "bool", "int"),
            ("int", "uint", "uint"),
            ("long", "uint", "long"),
            ("ulong", "long", "ulong"),
            ("uint13", "int", "int"),
            ("uint13", "uchar", "int"),
            ("uint40", "int", "uint40"),
            ("int40", "uint", "int40"),
            ("int31", "uint", "uint"),
            ("uint13", "int13", "uint13"),
            ("uint13", "int14", "int14"),
            ("int13", "uint13", "uint13"),
            ("uint63", "long", "long"),
            ("uint65", "ulong", "uint65"),
        ];
        for (left, right, want) in cases {
            let (a, b) = (promoted(ty(left), None), promoted(ty(right), None));
            assert_eq!(usual(a, b).to_string(), want, "{left} and {right}");
            assert_eq!(usual(b, a).to_string(), want, "{right} and {left}");
        }
        assert_eq!(promoted(ty("uint"), Some(5)), INT);
        assert_eq!(promoted(ty("ulong"), Some(31)), INT);
        assert_eq!(promoted(ty("ulong"), Some(33)), ULONG);
        assert_eq!(promoted(ty("uint"), Some(32)), UINT);
    }

    #[test]
    fn literals_take_the_first_type_that_fits() {
        let of = |value: u128, suffix: &str, is_decimal| {
            of_literal(&BigUint::from(value), suffix, is_decimal).to_string()
        };
        assert_eq!(of(2_147_483_647, "", true), "int");
        assert_eq!(of(2_147_483_648, "", true), "long");
        assert_eq!(of(2_147_483_648, "", false), "uint");
        assert_eq!(of(1, "u", true), "uint");
        assert_eq!(of(1, "ul", true), "ulong");
        assert_eq!(of(1 << 63, "", true), "ulong");
        assert_eq!(of(1 << 64, "", false), "uint65");
    }
}
