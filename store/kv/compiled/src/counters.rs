// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops that count up to a limit: `for (i = start; i < limit; i += step)`, where the limit has a
//! known maximum and the counter cannot wrap.

use freeport_ir::analysis::{Loop, Loops, definitions, upper_bound};
use freeport_ir::{BinaryOp, BlockId, CompareOp, Function, Op, Term, Type, ValueId};

/// Maximum width of a counter in bits.
const WIDEST: u32 = 64;

/// The counters of all loops of a function.
pub(crate) struct Counters {
    /// By number of the loop: a counter for each condition that has the form.
    by_loop: Vec<Vec<Counter>>,
}

/// A counter that was proven not to wrap.
///
/// Why the proof holds: while the condition does, the counter is at most `highest - 1`. So after a
/// step it is at most `highest - 1 + step`, which its type holds. So it grows by `step` in each
/// round, from 0 or more, until it is `highest` or more.
struct Counter {
    /// Parameter of the header that holds it.
    param: ValueId,
    /// The condition implies that the counter is less.
    highest: u128,
    step: u128,
}

impl Counters {
    /// Finds the counters of loops that have the form and cannot wrap.
    pub fn of(function: &Function, loops: &Loops) -> Self {
        let definitions = definitions(function);
        let mut by_loop: Vec<Vec<Counter>> = vec![];
        // Outer loops come first, and their counters bound those inside.
        for found in &loops.loops {
            let proof =
                Proof { function, loops, found, definitions: &definitions, outer: &by_loop };
            let conditions = conditions(function, found).into_iter();
            let counters = conditions.filter_map(|cond| proof.counter(cond)).collect();
            by_loop.push(counters);
        }
        Self { by_loop }
    }

    /// Returns the maximum number of times that loop number `at` is entered from its header, if a
    /// counter bounds it.
    pub fn rounds(&self, at: usize) -> Option<u64> {
        let rounds = |counter: &Counter| u64::try_from(counter.highest.div_ceil(counter.step)).ok();
        self.by_loop[at].iter().filter_map(rounds).min()
    }
}

/// Returns the conditions that must all hold for a loop to be entered from its header.
pub(crate) fn conditions(function: &Function, found: &Loop) -> Vec<ValueId> {
    let Term::Branch { cond, .. } = function.blocks[found.header].term else { return vec![] };
    let definitions = definitions(function);
    let (mut found, mut next) = (vec![], vec![cond]);
    while let Some(value) = next.pop() {
        match definitions[value.index()] {
            Some(Op::Binary(BinaryOp::And, left, right))
                if function.type_of(value) == Type::Bits(1) =>
            {
                next.extend([*left, *right]);
            }
            _ => found.push(value),
        }
    }
    found
}

/// Returns the largest number of a width of at most 64 bits.
fn largest(width: u32, is_signed: bool) -> u128 {
    (1 << (width - u32::from(is_signed))) - 1
}

struct Proof<'a> {
    function: &'a Function,
    loops: &'a Loops,
    found: &'a Loop,
    definitions: &'a [Option<&'a Op>],
    /// Counters of loops before this one, by their number.
    outer: &'a [Vec<Counter>],
}

impl Proof<'_> {
    /// Returns the counter of the loop, of which `cond` is a condition.
    fn counter(&self, cond: ValueId) -> Option<Counter> {
        if !self.enters_if_true() {
            return None;
        }
        let (is_signed, is_inclusive, left, right) = match self.definitions[cond.index()]? {
            Op::Compare(CompareOp::ULt, left, right) => (false, false, *left, *right),
            Op::Compare(CompareOp::ULe, left, right) => (false, true, *left, *right),
            Op::Compare(CompareOp::SLt, left, right) => (true, false, *left, *right),
            Op::Compare(CompareOp::SLe, left, right) => (true, true, *left, *right),
            _ => return None,
        };
        let width = self.function.width_of(left);
        if width > WIDEST {
            return None;
        }
        let (param, reach) = self.compared(left, largest(width, is_signed))?;
        // The limit as an unsigned number, which is its signed value if it is small enough.
        let limit = self.most(right);
        if limit > largest(width, is_signed) {
            return None;
        }
        let highest = limit + u128::from(is_inclusive);
        let step = self.step(param)?;
        let last = (highest + step).checked_sub(1)?;
        let is_in_reach = last <= reach && self.starts(param)?.all(|start| start <= reach);
        is_in_reach.then_some(Counter { param, highest, step })
    }

    fn is_inside(&self, block: BlockId) -> bool {
        self.found.body.binary_search(&block.index()).is_ok()
    }

    fn enters_if_true(&self) -> bool {
        match &self.function.blocks[self.found.header].term {
            Term::Branch { if_true, if_false, .. } => {
                self.is_inside(if_true.block) && !self.is_inside(if_false.block)
            }
            _ => false,
        }
    }

    /// Returns the maximum of a value of at most 64 bits at the header of this loop.
    fn most(&self, value: ValueId) -> u128 {
        let known = u128::from(upper_bound(self.function, self.definitions, value));
        let param = match self.definitions[value.index()] {
            Some(Op::ZeroExtend(of, _)) => *of,
            _ => value,
        };
        let is_around = |outer: &Loop| outer.body.binary_search(&self.found.header).is_ok();
        let around = self.loops.loops.iter().zip(self.outer);
        let around = around.filter(|(outer, _)| is_around(outer));
        let counters = around.flat_map(|(_, counters)| counters);
        // Inside a loop, its counter is below its limit.
        let counters = counters.filter(|counter| counter.param == param);
        counters.map(|counter| counter.highest.saturating_sub(1)).fold(known, u128::min)
    }

    /// Returns the parameter of the header that `value` is, perhaps extended, and the largest
    /// number up to which both are the same number in a comparison, at most `largest_compared`.
    fn compared(&self, value: ValueId, largest_compared: u128) -> Option<(ValueId, u128)> {
        let own = |value| largest(self.function.width_of(value), false);
        let (param, reach) = match self.definitions[value.index()] {
            Some(Op::ZeroExtend(of, _)) => (*of, own(*of)),
            Some(Op::SignExtend(of, _)) => (*of, own(*of) >> 1),
            _ => (value, largest_compared),
        };
        self.position(param)?;
        Some((param, reach.min(largest_compared)))
    }

    fn position(&self, param: ValueId) -> Option<usize> {
        self.function.blocks[self.found.header].params.iter().position(|one| *one == param)
    }

    /// Returns by how much every round advances the counter, which is the same in each.
    fn step(&self, param: ValueId) -> Option<u128> {
        let mut steps = self.arguments(param, true)?.map(|next| self.added(next, param));
        let first = steps.next()??;
        steps.all(|step| step == Some(first)).then_some(u128::from(first)).filter(|it| *it > 0)
    }

    /// Returns what is added to the counter, without bits that are cut off.
    fn added(&self, next: ValueId, param: ValueId) -> Option<u64> {
        let sum = match self.definitions[next.index()]? {
            Op::Truncate(of, _) => *of,
            _ => next,
        };
        let Op::Binary(BinaryOp::Add, left, right) = self.definitions[sum.index()]? else {
            return None;
        };
        let is_counter = |value: ValueId| match self.definitions[value.index()] {
            _ if value == param => true,
            Some(Op::ZeroExtend(of, _) | Op::SignExtend(of, _)) => *of == param,
            _ => false,
        };
        let constant = |value: ValueId| match self.definitions[value.index()]? {
            Op::Const(bits) => bits.checked_u64(),
            _ => None,
        };
        match (is_counter(*left), is_counter(*right)) {
            (true, _) => constant(*right),
            (_, true) => constant(*left),
            _ => None,
        }
    }

    /// Returns the largest values with which the counter may start.
    fn starts(&self, param: ValueId) -> Option<impl Iterator<Item = u128>> {
        Some(self.arguments(param, false)?.map(|start| self.most(start)))
    }

    /// Returns the values that edges to the header give a parameter, from inside or outside.
    fn arguments(
        &self,
        param: ValueId,
        from_inside: bool,
    ) -> Option<impl Iterator<Item = ValueId>> {
        let (header, at) = (BlockId::new(self.found.header), self.position(param)?);
        let blocks = self.function.blocks.iter().enumerate();
        let sources =
            blocks.filter(move |(node, _)| self.is_inside(BlockId::new(*node)) == from_inside);
        let targets = sources.flat_map(|(_, block)| block.term.targets());
        Some(targets.filter(move |target| target.block == header).map(move |it| it.args[at]))
    }
}
