// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A buffer for copies. It is mapped, since a call may run on the stack of a signal handler, or of
//! a thread with a small stack.

use crate::kernel::raw;
use core::slice;

/// Size of the buffer in bytes.
const BYTES: usize = 16 << 10;
/// Size without memory.
const FEW: usize = 256;

/// A buffer for copies.
pub struct Scratch {
    mapped: Option<*mut u8>,
    few: [u8; FEW],
}

impl Scratch {
    /// A new buffer, of the smaller size if there is no memory.
    pub fn new() -> Self {
        Self { mapped: raw::map(BYTES, false, None).ok(), few: [0; FEW] }
    }

    /// All of the buffer.
    pub fn bytes(&mut self) -> &mut [u8] {
        match self.mapped {
            // SAFETY: mapped with that size, and used by nothing else.
            Some(mapped) => unsafe { slice::from_raw_parts_mut(mapped, BYTES) },
            None => &mut self.few,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(mapped) = self.mapped {
            raw::unmap(mapped, BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some_even_without_memory() {
        let mut scratch = Scratch::new();
        assert_eq!(scratch.bytes().len(), BYTES);
        scratch.bytes().fill(7);
        let mut without = Scratch { mapped: None, few: [0; FEW] };
        without.bytes().fill(7);
        assert_eq!(without.bytes(), [7; FEW]);
    }
}
