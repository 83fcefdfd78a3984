// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers at which arithmetic is prone to errors.

/// Both ends of every width, and some numbers between.
pub const CORNERS: [u64; 22] = [
    0,
    1,
    2,
    7,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Returns a signed number of `bits` bits, in a type where nothing overflows.
pub fn signed(value: u64, bits: u32) -> i128 {
    let low = unsigned(value, bits);
    if low >> (bits - 1) & 1 == 1 { low - (1 << bits) } else { low }
}

/// As `signed`, unsigned.
pub fn unsigned(value: u64, bits: u32) -> i128 {
    i128::from(value) & ((1 << bits) - 1)
}

/// Returns the low `bits` bits of a result, as a register holds them.
pub fn low(result: i128, bits: u32) -> u64 {
    (result & ((1 << bits) - 1)) as u64
}
