// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic and comparisons of two numbers that are known before the program runs.

use super::arithmetic::Word;
use super::step::with_operations;
use crate::instruction::{Arithmetic, Condition, Width};

macro_rules! define_functions {
    (arithmetic: $(($operation:ident, $function:ident, $r64:ident, $c64:ident, $r32:ident,
        $c32:ident))*
     jumps: $(($condition:ident, $test:ident, $jr64:ident, $jc64:ident, $jr32:ident,
        $jc32:ident))*) => {
        fn apply<W: Word>(operation: Arithmetic, left: W, right: W) -> u64 {
            match operation {
                $(Arithmetic::$operation => left.$function(right),)*
            }
            .register()
        }

        fn test<W: Word>(condition: Condition, left: W, right: W) -> bool {
            match condition {
                $(Condition::$condition => left.$test(right),)*
            }
        }
    };
}
with_operations!(define_functions,);

/// Computes an operation on two registers.
pub fn compute(operation: Arithmetic, width: Width, left: u64, right: u64) -> u64 {
    match width {
        Width::Bits32 => apply(operation, left as u32, right as u32),
        Width::Bits64 => apply(operation, left, right),
    }
}

/// Returns whether a comparison of two registers holds.
pub fn holds(condition: Condition, width: Width, left: u64, right: u64) -> bool {
    match width {
        Width::Bits32 => test(condition, left as u32, right as u32),
        Width::Bits64 => test(condition, left, right),
    }
}
