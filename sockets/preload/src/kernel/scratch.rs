// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for copies, while they are made. It is mapped: what programs call may run on the stack of
//! a signal handler, or of a thread that has been given little more than the least.

use crate::kernel::raw;
use core::slice;

/// Bytes of it.
const BYTES: usize = 16 << 10;
/// Where there is no memory.
const FEW: usize = 256;

/// Memory for copies.
pub struct Scratch {
    mapped: Option<*mut u8>,
    few: [u8; FEW],
}

impl Scratch {
    /// As much as there is.
    pub fn new() -> Self {
        Self { mapped: raw::map(BYTES, false, None).ok(), few: [0; FEW] }
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        match self.mapped {
            // SAFETY: mapped for so many, and nobody else's.
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
