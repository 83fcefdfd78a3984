// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Terminators: how a block ends, and where control goes from there.

use crate::{Bits, BlockId, ValueId};

/// A block and the values for its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Where to.
    pub block: BlockId,
    /// One value for each of its parameters.
    pub args: Vec<ValueId>,
}

/// Why a firing was given up. What it did until then stays; it ends as if its mask were "all".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum TrapCode {
    /// A loop reached its bound with its condition still true.
    LoopBound,
    /// The watchdog of the back end.
    Watchdog,
    /// The program's own.
    User(u32),
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    /// Goes on in another block.
    Jump(Target),
    /// Goes on in one of two.
    Branch {
        /// 1 bit.
        cond: ValueId,
        /// For 1.
        if_true: Target,
        /// For 0.
        if_false: Target,
    },
    /// Goes on by the value.
    Switch {
        /// Compared with each case; all have its width.
        value: ValueId,
        /// Distinct constants.
        cases: Vec<(Bits, Target)>,
        /// Where none fits.
        default: Target,
    },
    /// Ends a firing. The mask (as `ReadyMask` numbers ports) says which ports the next one waits
    /// for; all where absent.
    Done {
        /// As many bits as the element has inputs.
        mask: Option<ValueId>,
    },
    /// Ends a firing as `Done` does; the next one goes on at `resume`, with all values and
    /// firing-lifetime objects as they are.
    Suspend {
        /// As in `Done`.
        mask: Option<ValueId>,
        /// Where the next firing begins.
        resume: Target,
    },
    /// Ends a function that is not a handler.
    Return {
        /// The result, where the function has one.
        value: Option<ValueId>,
    },
    /// Ends the firing early.
    Trap(TrapCode),
}

impl Term {
    /// The blocks it may go to, with their arguments (for `Suspend`, the resume target).
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

    /// The same, to change them.
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

    /// Replaces every operand, block arguments included, by what `map` gives for it.
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
