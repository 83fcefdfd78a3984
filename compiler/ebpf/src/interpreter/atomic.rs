// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations (RFC 9669, section 5.3). Programs run one at a time here, so each is a load
//! and a store.

use super::arithmetic::Word;
use super::step::Step;
use crate::instruction::AtomicOperation;
use crate::run::{REGISTERS, Reason, Run};

/// Atomic operations in the order of their numbers.
const OPERATIONS: [AtomicOperation; 6] = [
    AtomicOperation::Add,
    AtomicOperation::Or,
    AtomicOperation::And,
    AtomicOperation::Xor,
    AtomicOperation::Exchange,
    AtomicOperation::CompareExchange,
];

/// Encodes an atomic operation as the constant of a step.
pub(crate) fn atomic_constant(operation: AtomicOperation, is_fetching: bool) -> u64 {
    (operation as u64) << 1 | u64::from(is_fetching)
}

/// Decodes the result of [`atomic_constant`].
fn operation_of(constant: u64) -> (AtomicOperation, bool) {
    let operation = OPERATIONS[(constant >> 1) as usize % OPERATIONS.len()];
    (operation, constant & 1 == 1)
}

/// Returns the new contents of memory; compare-and-exchange compares with `expected`.
#[inline]
pub(crate) fn changed<W: Word>(operation: AtomicOperation, old: W, operand: W, expected: W) -> W {
    match operation {
        AtomicOperation::Add => old.add(operand),
        AtomicOperation::Or => old.or(operand),
        AtomicOperation::And => old.and(operand),
        AtomicOperation::Xor => old.xor(operand),
        AtomicOperation::Exchange => operand,
        AtomicOperation::CompareExchange if old == expected => operand,
        AtomicOperation::CompareExchange => old,
    }
}

impl Run<'_> {
    /// Executes the atomic operation of `step` on a word of `SIZE` bytes.
    pub(crate) fn atomic<W: Word, const SIZE: usize>(&mut self, step: &Step) -> Result<(), Reason> {
        let address = self.registers[usize::from(step.destination) % REGISTERS]
            .wrapping_add_signed(step.offset.into());
        let operand = W::of(self.registers[usize::from(step.source) % REGISTERS]);
        let old = W::of(self.load_plain::<SIZE>(address)?);
        let (operation, is_fetching) = operation_of(step.constant);
        let new = changed(operation, old, operand, W::of(self.registers[0]));
        self.store::<SIZE>(address, new.register())?;
        let fetched = match operation {
            AtomicOperation::CompareExchange => 0,
            _ if is_fetching => usize::from(step.source) % REGISTERS,
            _ => return Ok(()),
        };
        self.registers[fetched] = old.register();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_says_which_operation() {
        for operation in OPERATIONS {
            for is_fetching in [false, true] {
                let constant = atomic_constant(operation, is_fetching);
                assert_eq!(operation_of(constant), (operation, is_fetching));
            }
        }
    }
}
