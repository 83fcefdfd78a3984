// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The dense form of a program that the interpreter runs: one step of 16 bytes for each
//! instruction, with a separate code for each variant, and jump targets as indices in the list.
//!
//! Arithmetic and jumps have four variants each: both widths, with a register or a constant as the
//! second operand. [`with_operations`] holds them as one table, which generates the codes, the
//! functions that find them, and the interpreter's arms.

use crate::instruction::{Arithmetic, Condition};

/// An instruction, ready to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub code: Code,
    /// Register that is written, or the first operand; below 16, like all registers here.
    pub destination: u8,
    /// Register of the second operand.
    pub source: u8,
    /// Offset of a memory access, or the target step of a jump.
    pub offset: i32,
    /// Constant, or the callee of a call.
    pub constant: u64,
}

impl Step {
    /// Creates a step without operands.
    pub fn plain(code: Code) -> Self {
        Self { code, destination: 0, source: 0, offset: 0, constant: 0 }
    }
}

/// Calls a macro with the table of operations that have four variants.
macro_rules! with_operations {
    ($call:ident, $($arguments:tt)*) => {
        $call! { $($arguments)*
            arithmetic:
                (Add, add, Add64Register, Add64Constant, Add32Register, Add32Constant)
                (Subtract, subtract, Subtract64Register, Subtract64Constant,
                    Subtract32Register, Subtract32Constant)
                (Multiply, multiply, Multiply64Register, Multiply64Constant,
                    Multiply32Register, Multiply32Constant)
                (Divide, divide, Divide64Register, Divide64Constant,
                    Divide32Register, Divide32Constant)
                (SignedDivide, signed_divide, SignedDivide64Register, SignedDivide64Constant,
                    SignedDivide32Register, SignedDivide32Constant)
                (Modulo, modulo, Modulo64Register, Modulo64Constant,
                    Modulo32Register, Modulo32Constant)
                (SignedModulo, signed_modulo, SignedModulo64Register, SignedModulo64Constant,
                    SignedModulo32Register, SignedModulo32Constant)
                (Or, or, Or64Register, Or64Constant, Or32Register, Or32Constant)
                (And, and, And64Register, And64Constant, And32Register, And32Constant)
                (Xor, xor, Xor64Register, Xor64Constant, Xor32Register, Xor32Constant)
                (ShiftLeft, shift_left, ShiftLeft64Register, ShiftLeft64Constant,
                    ShiftLeft32Register, ShiftLeft32Constant)
                (ShiftRight, shift_right, ShiftRight64Register, ShiftRight64Constant,
                    ShiftRight32Register, ShiftRight32Constant)
                (SignedShiftRight, signed_shift_right, SignedShiftRight64Register,
                    SignedShiftRight64Constant, SignedShiftRight32Register,
                    SignedShiftRight32Constant)
                (Move, second, Move64Register, Move64Constant, Move32Register, Move32Constant)
            jumps:
                (Equal, is_equal, Equal64Register, Equal64Constant,
                    Equal32Register, Equal32Constant)
                (NotEqual, is_not_equal, NotEqual64Register, NotEqual64Constant,
                    NotEqual32Register, NotEqual32Constant)
                (Greater, is_greater, Greater64Register, Greater64Constant,
                    Greater32Register, Greater32Constant)
                (GreaterOrEqual, is_greater_or_equal, GreaterOrEqual64Register,
                    GreaterOrEqual64Constant, GreaterOrEqual32Register, GreaterOrEqual32Constant)
                (Less, is_less, Less64Register, Less64Constant, Less32Register, Less32Constant)
                (LessOrEqual, is_less_or_equal, LessOrEqual64Register, LessOrEqual64Constant,
                    LessOrEqual32Register, LessOrEqual32Constant)
                (Set, has_common_bits, Set64Register, Set64Constant, Set32Register, Set32Constant)
                (SignedGreater, is_signed_greater, SignedGreater64Register,
                    SignedGreater64Constant, SignedGreater32Register, SignedGreater32Constant)
                (SignedGreaterOrEqual, is_signed_greater_or_equal, SignedGreaterOrEqual64Register,
                    SignedGreaterOrEqual64Constant, SignedGreaterOrEqual32Register,
                    SignedGreaterOrEqual32Constant)
                (SignedLess, is_signed_less, SignedLess64Register, SignedLess64Constant,
                    SignedLess32Register, SignedLess32Constant)
                (SignedLessOrEqual, is_signed_less_or_equal, SignedLessOrEqual64Register,
                    SignedLessOrEqual64Constant, SignedLessOrEqual32Register,
                    SignedLessOrEqual32Constant)
        }
    };
}
pub(crate) use with_operations;

macro_rules! define_codes {
    (arithmetic: $(($operation:ident, $function:ident, $r64:ident, $c64:ident, $r32:ident,
        $c32:ident))*
     jumps: $(($condition:ident, $test:ident, $jr64:ident, $jc64:ident, $jr32:ident,
        $jc32:ident))*) => {
        /// Code of a step.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(crate) enum Code {
            $($r64, $c64, $r32, $c32,)*
            $($jr64, $jc64, $jr32, $jc32,)*
            Negate64,
            Negate32,
            SignExtend8To64,
            SignExtend16To64,
            SignExtend32To64,
            SignExtend8To32,
            SignExtend16To32,
            Swap16,
            Swap32,
            Swap64,
            Truncate16,
            Truncate32,
            Constant,
            Load8,
            Load16,
            Load32,
            Load64,
            LoadSigned8,
            LoadSigned16,
            LoadSigned32,
            Store8,
            Store16,
            Store32,
            Store64,
            StoreConstant8,
            StoreConstant16,
            StoreConstant32,
            StoreConstant64,
            Atomic32,
            Atomic64,
            Nothing,
            Goto,
            CallHelper,
            CallFunction,
            Exit,
            /// The step after the last instruction.
            End,
        }

        impl Code {
            /// Returns the code of an arithmetic operation.
            pub fn of_arithmetic(operation: Arithmetic, is_wide: bool, is_register: bool) -> Self {
                let forms = match operation {
                    $(Arithmetic::$operation => {
                        [Self::$c32, Self::$r32, Self::$c64, Self::$r64]
                    })*
                };
                forms[usize::from(is_wide) * 2 + usize::from(is_register)]
            }

            /// Returns the code of a conditional jump.
            pub fn of_jump(condition: Condition, is_wide: bool, is_register: bool) -> Self {
                let forms = match condition {
                    $(Condition::$condition => {
                        [Self::$jc32, Self::$jr32, Self::$jc64, Self::$jr64]
                    })*
                };
                forms[usize::from(is_wide) * 2 + usize::from(is_register)]
            }
        }
    };
}
with_operations!(define_codes,);
