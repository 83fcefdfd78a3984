// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each variant of arithmetic on all pairs of corner values, against 128-bit integers that never
//! wrap; then the examples of RFC 9669.

use super::words::{CORNERS, low, signed, unsigned};
use crate::program;
use crate::program::{constant, copy, exit, slot, value};

/// Result of an operation on two numbers of this many bits.
type Oracle = fn(u64, u64, u32) -> i128;

/// Name, opcode without class and source, offset, and oracle.
const OPERATIONS: [(&str, u8, i16, Oracle); 14] = [
    ("add", 0x00, 0, |a, b, n| unsigned(a, n) + unsigned(b, n)),
    ("sub", 0x10, 0, |a, b, n| unsigned(a, n) - unsigned(b, n)),
    ("mul", 0x20, 0, |a, b, n| signed(a, n) * signed(b, n)),
    ("div", 0x30, 0, |a, b, n| match unsigned(b, n) {
        0 => 0,
        b => unsigned(a, n) / b,
    }),
    ("sdiv", 0x30, 1, |a, b, n| match signed(b, n) {
        0 => 0,
        b => signed(a, n) / b,
    }),
    ("or", 0x40, 0, |a, b, n| unsigned(a, n) + unsigned(b, n) - unsigned(a & b, n)),
    ("and", 0x50, 0, |a, b, n| (unsigned(a, n) + unsigned(b, n) - unsigned(a ^ b, n)) / 2),
    ("lsh", 0x60, 0, |a, b, n| unsigned(a, n) * (1 << (b % u64::from(n)))),
    ("rsh", 0x70, 0, |a, b, n| unsigned(a, n) / (1 << (b % u64::from(n)))),
    ("mod", 0x90, 0, |a, b, n| match unsigned(b, n) {
        0 => unsigned(a, n),
        b => unsigned(a, n) - unsigned(a, n) / b * b,
    }),
    ("smod", 0x90, 1, |a, b, n| match signed(b, n) {
        0 => signed(a, n),
        b => signed(a, n) - signed(a, n) / b * b,
    }),
    ("xor", 0xa0, 0, |a, b, n| unsigned(a, n) + unsigned(b, n) - 2 * unsigned(a & b, n)),
    ("mov", 0xb0, 0, |_, b, n| unsigned(b, n)),
    ("arsh", 0xc0, 0, |a, b, n| signed(a, n).div_euclid(1 << (b % u64::from(n)))),
];

#[test]
fn every_operation_agrees_with_wide_integers() {
    for (name, opcode, offset, oracle) in OPERATIONS {
        for (class, bits) in [(0x07, 64), (0x04, 32)] {
            for (a, b) in CORNERS.iter().flat_map(|&a| CORNERS.map(|b| (a, b))) {
                let with_register = program![
                    constant(3, a),
                    constant(4, b),
                    slot(opcode | class | 0x08, (3, 4), offset, 0),
                    copy(0, 3),
                    exit(),
                ];
                let expected = low(oracle(a, b, bits), bits);
                assert_eq!(value(with_register), expected, "{name}{bits} {a:#x}, {b:#x}");
                let with_constant = program![
                    constant(3, a),
                    slot(opcode | class, (3, 0), offset, b as i32),
                    copy(0, 3),
                    exit(),
                ];
                // A constant has 32 bits and is sign-extended.
                let b = signed(b, 32) as u64;
                let expected = low(oracle(a, b, bits), bits);
                assert_eq!(value(with_constant), expected, "{name}{bits} {a:#x}, {b:#x} constant");
            }
        }
    }
}

#[test]
fn negation_sign_extension_and_byte_order_agree_with_arithmetic_on_digits() {
    for a in CORNERS {
        let of = |instruction| value(program![constant(0, a), constant(3, a), instruction, exit()]);
        assert_eq!(of(slot(0x87, (0, 0), 0, 0)), low(-i128::from(a), 64), "neg64 {a:#x}");
        assert_eq!(of(slot(0x84, (0, 0), 0, 0)), low(-i128::from(a), 32), "neg32 {a:#x}");
        for bits in [8, 16, 32] {
            let wide = of(slot(0xbf, (0, 3), bits, 0));
            assert_eq!(wide, low(signed(a, bits as u32), 64), "movsx{bits} {a:#x}");
        }
        for bits in [8, 16] {
            let half = of(slot(0xbc, (0, 3), bits, 0));
            assert_eq!(half, low(signed(a, bits as u32), 32), "movsx{bits} to 32 {a:#x}");
        }
        for bits in [16, 32, 64] {
            let digits = format!("{:0width$x}", unsigned(a, bits), width = bits as usize / 4);
            let pairs: Vec<&str> =
                (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]).collect();
            let backwards: String = pairs.into_iter().rev().collect();
            let swapped = u64::from_str_radix(&backwards, 16).expect("digits");
            let width = bits as i32;
            assert_eq!(of(slot(0xdc, (0, 0), 0, width)), swapped, "be{bits} {a:#x}");
            assert_eq!(of(slot(0xd7, (0, 0), 0, width)), swapped, "bswap{bits} {a:#x}");
            assert_eq!(of(slot(0xd4, (0, 0), 0, width)), low(a.into(), bits), "le{bits} {a:#x}");
        }
    }
}

/// Section 4.1: its rules and examples.
#[test]
fn what_the_standard_says_of_arithmetic_holds() {
    let of = |a: u64, b: u64, opcode, offset| {
        value(program![constant(0, a), constant(1, b), slot(opcode, (0, 1), offset, 0), exit()])
    };
    assert_eq!(of(7, 0, 0x3f, 0), 0, "division by zero gives zero");
    assert_eq!(of(7, 0, 0x3f, 1), 0, "signed division by zero as well");
    assert_eq!(of(7, 0, 0x9f, 0), 7, "modulo zero leaves the dividend");
    assert_eq!(of(0xffff_ffff_0000_0007, 0, 0x9c, 0), 7, "and zeroes the upper half in 32 bits");
    assert_eq!(of(-13_i64 as u64, 3, 0x9f, 1), -1_i64 as u64, "-13 % 3 == -1: truncated");
    let lowest = i64::MIN as u64;
    assert_eq!(of(lowest, u64::MAX, 0x3f, 1), lowest, "LLONG_MIN / -1");
    assert_eq!(of(lowest, u64::MAX, 0x9f, 1), 0, "LLONG_MIN % -1");
    assert_eq!(of(0x8000_0000, 0xffff_ffff, 0x3c, 1), 0x8000_0000, "INT_MIN / -1");
    assert_eq!(of(1, 64 + 3, 0x6f, 0), 8, "shifts are masked with 0x3f");
    assert_eq!(of(1, 32 + 3, 0x6c, 0), 8, "and with 0x1f in 32 bits");
    assert_eq!(of(u64::MAX, 1, 0x0c, 0), 0, "the upper half of a 32-bit sum is zero");
    let constant_is_extended = program![constant(0, 0), slot(0x07, (0, 0), 0, -1), exit()];
    assert_eq!(value(constant_is_extended), u64::MAX);
    let swapped = |opcode, bits| {
        value(program![constant(0, 0x0102_0304_0506_0708), slot(opcode, (0, 0), 0, bits), exit()])
    };
    assert_eq!(swapped(0xd7, 16), 0x0807, "bswap16 zeroes what is above");
    assert_eq!(swapped(0xdc, 32), 0x0807_0605, "be32");
    assert_eq!(swapped(0xdc, 64), 0x0807_0605_0403_0201, "be64");
    assert_eq!(swapped(0xd4, 32), 0x0506_0708, "le32");
}
