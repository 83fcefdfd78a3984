// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers that operations read and write, including calls, as bit masks.

use crate::machine::REGISTERS;
use crate::operation::{Argument, Operation};
use freeport_ebpf::helper_functions::signature;

/// A set of registers, as a bit mask.
pub(super) type Registers = u16;

/// Registers 1 to 5.
const ARGUMENTS: Registers = 0b11_1110;
/// Registers whose contents are undefined after a call of a function.
pub(super) const LOST: Registers = ARGUMENTS | 0b1111_0000 << 8;

/// Returns the registers that an operation reads.
pub(super) fn read(operation: &Operation) -> Registers {
    let named = operation.read().fold(0, |set, register| set | 1 << register);
    named
        | match operation {
            Operation::Call { helper, arguments } => {
                let taken = signature(*helper).map_or(5, |it| it.arguments.len());
                let given = arguments.iter().zip(1..).take(taken);
                let held = given.filter(|(argument, _)| **argument == Argument::Register);
                held.fold(0, |set, (_, register)| set | 1 << register)
            }
            Operation::CallFunction(_) => ARGUMENTS,
            _ => 0,
        }
}

/// Returns the registers that an operation writes or leaves undefined.
pub(super) fn written(operation: &Operation) -> Registers {
    let named = operation.written().map_or(0, |register| 1 << register);
    named | if calls_functions(operation) { LOST } else { 0 }
}

/// Returns whether functions of the program may run before the next row.
pub(super) fn calls_functions(operation: &Operation) -> bool {
    match operation {
        Operation::Call { helper, .. } => signature(*helper).is_none_or(|it| it.calls_function()),
        Operation::CallFunction(_) => true,
        _ => false,
    }
}

/// Returns the registers of a set as text.
pub(super) fn names(set: Registers) -> String {
    let names = (0..REGISTERS).filter(|register| set & 1 << register != 0);
    names.map(|register| format!("r{register}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_read_as_many_arguments_as_the_helper_takes() {
        assert_eq!(read(&Operation::call(1)), 0b110, "map lookup");
        assert_eq!(read(&Operation::call(5)), 0, "time");
        assert_eq!(written(&Operation::call(1)), 1);
        assert_eq!(written(&Operation::call(181)), 1 | LOST, "loop");
        assert_eq!(names(LOST), "r1, r2, r3, r4, r5, r12, r13, r14, r15");
    }
}
