// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trip counts of loops, found by executing the condition: the parameters of the header that start
//! as constants and that every back edge sets by pure operations on themselves.

use crate::analysis::{Loop, definitions};
use crate::interp::eval_pure;
use crate::{Bits, BlockId, Function, Op, Target, Term, ValueId};
use std::collections::HashMap;

/// Maximum iterations that are tried.
const MAX_TRIPS: u64 = 4096;
/// Maximum depth of nested operations that are examined.
const MAX_DEPTH: u32 = 64;

/// Returns the maximum number of times control enters the loop from the header, if its condition
/// alone decides that; an exit from the body may end the loop earlier.
pub(super) fn of(function: &Function, found: &Loop) -> Option<u64> {
    let runner = Runner { definitions: definitions(function), function, found };
    let mut known = runner.first();
    for trips in 0..=MAX_TRIPS {
        if !runner.continues(&mut known)? {
            return Some(trips);
        }
        known = runner.next(&mut known);
    }
    None
}

type Known = HashMap<ValueId, Option<Bits>>;

struct Runner<'a> {
    function: &'a Function,
    found: &'a Loop,
    definitions: Vec<Option<&'a Op>>,
}

impl Runner<'_> {
    fn is_inside(&self, block: usize) -> bool {
        self.found.body.binary_search(&block).is_ok()
    }

    /// Returns the parameters of the header when the loop is entered.
    fn first(&self) -> Known {
        self.meet(&mut Known::new(), |from| !self.is_inside(from))
    }

    /// Returns the parameters of the header one iteration later.
    fn next(&self, known: &mut Known) -> Known {
        self.meet(known, |from| self.is_inside(from))
    }

    /// Returns the parameters that all edges from the given blocks agree on.
    fn meet(&self, known: &mut Known, is_from: impl Fn(usize) -> bool) -> Known {
        let header = BlockId::new(self.found.header);
        let mut edges: Vec<&Target> = vec![];
        for (node, block) in self.function.blocks.iter().enumerate() {
            if is_from(node) {
                edges.extend(block.term.targets().iter().filter(|target| target.block == header));
            }
        }
        let params = self.function.block(header).params.iter().enumerate();
        params
            .map(|(at, param)| {
                let mut values =
                    edges.iter().map(|edge| self.eval(edge.args[at], known, MAX_DEPTH));
                let first = values.next().flatten();
                let is_same = values.all(|value| value == first);
                (*param, first.filter(|_| is_same))
            })
            .collect()
    }

    /// Returns whether the header enters the loop.
    fn continues(&self, known: &mut Known) -> Option<bool> {
        let target = match &self.function.blocks[self.found.header].term {
            Term::Jump(target) => target,
            Term::Branch { cond, if_true, if_false } => {
                let is_false = self.eval(*cond, known, MAX_DEPTH)?.is_zero();
                if is_false { if_false } else { if_true }
            }
            Term::Switch { value, cases, default } => {
                let value = self.eval(*value, known, MAX_DEPTH)?;
                cases.iter().find(|(case, _)| *case == value).map_or(default, |(_, target)| target)
            }
            _ => return None,
        };
        Some(self.is_inside(target.block.index()))
    }

    fn eval(&self, value: ValueId, known: &mut Known, depth: u32) -> Option<Bits> {
        if let Some(found) = known.get(&value) {
            return found.clone();
        }
        let result = self.definitions[value.index()].filter(|op| op.is_pure() && depth > 0);
        let result = result.and_then(|op| {
            let mut operands: HashMap<ValueId, Bits> = HashMap::new();
            let mut is_known = true;
            op.for_each_operand(|operand| {
                match self.eval(operand, known, depth - 1).filter(|_| is_known) {
                    Some(bits) => {
                        operands.insert(operand, bits);
                    }
                    None => is_known = false,
                }
            });
            is_known.then(|| eval_pure(op, |operand| &operands[&operand])).flatten()
        });
        known.insert(value, result.clone());
        result
    }
}
