// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Terminators: how a block ends, and where control continues.

use crate::{Bits, BlockId, ValueId};

/// A block and the values for its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Destination block.
    pub block: BlockId,
    /// Arguments, one for each parameter of the block.
    pub args: Vec<ValueId>,
}

/// Why a firing trapped. Its effects so far remain; it ends as if its mask were "all".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum TrapCode {
    /// A loop reached its bound with its condition still true.
    LoopBound,
    /// The watchdog of the back end expired.
    Watchdog,
    /// A trap of the program.
    User(u32),
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    /// Continues in another block.
    Jump(Target),
    /// Continues in one of two blocks.
    Branch {
        /// Condition; 1 bit.
        cond: ValueId,
        /// Target for 1.
        if_true: Target,
        /// Target for 0.
        if_false: Target,
    },
    /// Continues at the matching case.
    Switch {
        /// Compared with each case; all have the same width.
        value: ValueId,
        /// Distinct constants.
        cases: Vec<(Bits, Target)>,
        /// Target if no case matches.
        default: Target,
    },
    /// Ends a firing. The mask (numbered as in `ReadyMask`) selects the ports that the next firing
    /// waits for; all if absent.
    Done {
        /// One bit for each input of the element.
        mask: Option<ValueId>,
    },
    /// Ends a firing as `Done` does; the next one continues at `resume`, with all values and
    /// firing-lifetime objects preserved.
    Suspend {
        /// Mask, as in `Done`.
        mask: Option<ValueId>,
        /// Where the next firing continues.
        resume: Target,
    },
    /// Ends a function that is not a handler.
    Return {
        /// Result, if the function has one.
        value: Option<ValueId>,
    },
    /// Ends the firing early.
    Trap(TrapCode),
}

impl Term {
    /// Returns the possible next blocks, with their arguments (for `Suspend`, the resume target).
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Term::Jump(target) | Term::Suspend { resume: target, .. } => vec![target],
            Term::Branch { if_true, if_false, .. } => vec![if_true, if_false],
            Term::Switch { cases, default, .. } => {
                cases.iter().map(|(_, target)| target).chain([default]).collect()
            }
            Term::Done { .. } | Term::Return { .. } | Term::Trap(_) => vec![],
        }
    }

    /// Returns the possible next blocks and arguments, mutably.
    pub fn targets_mut(&mut self) -> Vec<&mut Target> {
        match self {
            Term::Jump(target) | Term::Suspend { resume: target, .. } => vec![target],
            Term::Branch { if_true, if_false, .. } => vec![if_true, if_false],
            Term::Switch { cases, default, .. } => {
                cases.iter_mut().map(|(_, target)| target).chain([default]).collect()
            }
            Term::Done { .. } | Term::Return { .. } | Term::Trap(_) => vec![],
        }
    }

    /// Calls `visit` on every operand, block arguments included.
    pub fn for_each_operand(&self, mut visit: impl FnMut(ValueId)) {
        self.clone().map_operands(|value| {
            visit(value);
            value
        });
    }

    /// Replaces every operand, block arguments included, by the result of `map`.
    pub fn map_operands(&mut self, mut map: impl FnMut(ValueId) -> ValueId) {
        match self {
            Term::Branch { cond: value, .. } | Term::Switch { value, .. } => *value = map(*value),
            Term::Done { mask: value }
            | Term::Suspend { mask: value, .. }
            | Term::Return { value } => *value = value.map(&mut map),
            Term::Jump(_) | Term::Trap(_) => {}
        }
        for target in self.targets_mut() {
            target.args.iter_mut().for_each(|value| *value = map(*value));
        }
    }
}
