// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dense registers: six bits each, the lowest bit of the first register in the lowest bit of the
//! first byte.

use super::{REGISTERS, Registers};

const BITS: usize = 6;
const MASK: u16 = (1 << BITS) - 1;

/// Bytes of all registers.
pub(super) const BYTES: usize = REGISTERS * BITS / 8;

/// Raises a register to `value`. Returns whether it was less.
pub(super) fn raise(body: &mut [u8], index: usize, value: u8) -> bool {
    let (at, shift) = (index * BITS / 8, index * BITS % 8);
    // The last register ends with the last byte.
    let next = body.get(at + 1).copied().unwrap_or(0);
    let pair = u16::from_le_bytes([body[at], next]);
    if pair >> shift & MASK >= u16::from(value) {
        return false;
    }
    let pair = pair & !(MASK << shift) | u16::from(value) << shift;
    let [low, high] = pair.to_le_bytes();
    body[at] = low;
    if let Some(next) = body.get_mut(at + 1) {
        *next = high;
    }
    true
}

/// Raises each register to that in `body`, if it is less.
pub(super) fn merge_into(registers: &mut Registers, body: &[u8]) {
    // Four registers are three bytes.
    let (groups, _) = body.as_chunks::<3>();
    for (four, &[a, b, c]) in registers.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
        let group = u32::from_le_bytes([a, b, c, 0]);
        for (at, register) in four.iter_mut().enumerate() {
            *register = (*register).max((group >> (BITS * at)) as u8 & MASK as u8);
        }
    }
}
