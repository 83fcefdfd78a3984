// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bpf_csum_diff`: difference of an Internet checksum for changed bytes (RFC 1071, RFC 1624).

use super::held::State;
use super::{Lifter, NotLiftable};
use crate::maps::ErrorNumber;
use freeport_ir::{BinaryOp, ValueId};

/// Maximum number of bytes that are summed.
const BYTES_MAX: u64 = 512;

impl Lifter<'_> {
    pub fn checksum_difference(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        let (Some(from), Some(to)) = (self.always(2), self.always(4)) else {
            return self.refuse("the number of bytes that it sums is not constant");
        };
        if from > BYTES_MAX || to > BYTES_MAX {
            return self.refuse(format!("it sums more than {BYTES_MAX} bytes"));
        }
        if from % 4 != 0 || to % 4 != 0 {
            return Ok(self.error(ErrorNumber::EINVAL));
        }
        let seed = self.number(state.get(5))?;
        let seed = self.low_half(seed);
        Ok(match (from, to) {
            (0, 0) => seed,
            (_, 0) => {
                let seed = self.complement(seed);
                let sum = self.sum(state, 1, from as u32, seed)?;
                let sum = self.complement(sum);
                self.folded(sum)
            }
            (0, _) => {
                let sum = self.sum(state, 3, to as u32, seed)?;
                self.folded(sum)
            }
            _ => {
                let zero = self.word(0);
                let comes = self.sum(state, 3, to as u32, seed)?;
                let goes = self.sum(state, 1, from as u32, zero)?;
                let goes = self.complement(goes);
                let sum = self.add(comes, goes);
                let sum = self.carried(sum);
                self.folded(sum)
            }
        })
    }

    /// Returns the sum of the 32-bit words at the address in `register`: 32 bits within 64.
    fn sum(
        &mut self,
        state: &State,
        register: u8,
        bytes: u32,
        seed: ValueId,
    ) -> Result<ValueId, NotLiftable> {
        let all = self.read(state.get(register), 0, bytes, register)?;
        let mut sum = seed;
        for word in 0..bytes / 4 {
            let word = self.builder.extract(all, word * 32, 32);
            let word = self.widen(word);
            sum = self.add(sum, word);
        }
        Ok(self.carried(sum))
    }

    /// Adds the upper half to the lower one, with the carry of that sum.
    fn carried(&mut self, sum: ValueId) -> ValueId {
        let once = self.halves(sum, 32);
        self.halves(once, 32)
    }

    /// Folds the sum to 16 bits.
    fn folded(&mut self, sum: ValueId) -> ValueId {
        let once = self.halves(sum, 16);
        let twice = self.halves(once, 16);
        let mask = self.word(0xffff);
        self.builder.binary(BinaryOp::And, twice, mask)
    }

    fn halves(&mut self, sum: ValueId, bits: u64) -> ValueId {
        let (mask, bits) = (self.word((1 << bits) - 1), self.word(bits));
        let low = self.builder.binary(BinaryOp::And, sum, mask);
        let high = self.builder.binary(BinaryOp::LShr, sum, bits);
        self.add(low, high)
    }

    /// Inverts the lower 32 bits.
    fn complement(&mut self, value: ValueId) -> ValueId {
        let ones = self.word(0xffff_ffff);
        self.builder.binary(BinaryOp::Xor, value, ones)
    }
}
