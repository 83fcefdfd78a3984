// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liveness: the values that a node may still need, by the usual backward data-flow analysis.
//!
//! A value is live into a node that uses it, or that does not define it while it is live out of
//! that node. It is live out of a node if it is live into any successor. Arguments for block
//! parameters are uses in the block that passes them, and the parameters are definitions in the
//! block that declares them.

use super::{ControlFlow, predecessors, reverse_post_order};
use crate::{BlockId, Function, ValueId};
use std::collections::BTreeSet;

/// Uses and definitions of the nodes of a graph; values are numbered from 0.
pub trait DataFlow: ControlFlow {
    /// Returns the number of values.
    fn value_count(&self) -> usize;

    /// Calls `visit` on every value that `node` uses before defining it.
    fn for_each_use(&self, node: usize, visit: &mut dyn FnMut(usize));

    /// Calls `visit` on every value that `node` defines.
    fn for_each_definition(&self, node: usize, visit: &mut dyn FnMut(usize));
}

impl DataFlow for Function {
    fn value_count(&self) -> usize {
        self.values.len()
    }

    fn for_each_use(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        let mut own = BitSet::new(self.values.len());
        self.for_each_definition(node, &mut |value| {
            own.insert(value);
        });
        let mut visit_others = |value: ValueId| {
            if !own.contains(value.index()) {
                visit(value.index());
            }
        };
        let block = &self.blocks[node];
        block.insts.iter().for_each(|inst| inst.op.for_each_operand(&mut visit_others));
        block.term.for_each_operand(&mut visit_others);
    }

    fn for_each_definition(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        let block = &self.blocks[node];
        let results = block.insts.iter().filter_map(|inst| inst.result);
        block.params.iter().copied().chain(results).for_each(|value| visit(value.index()));
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Creates an empty set of numbers below `count`.
    pub fn new(count: usize) -> Self {
        Self { words: vec![0; count.div_ceil(64)] }
    }

    /// Inserts `at`; returns whether it was absent.
    pub fn insert(&mut self, at: usize) -> bool {
        let is_new = !self.contains(at);
        self.words[at / 64] |= 1 << (at % 64);
        is_new
    }

    /// Removes `at`.
    pub fn remove(&mut self, at: usize) {
        self.words[at / 64] &= !(1 << (at % 64));
    }

    /// Returns whether `at` is in the set.
    pub fn contains(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Inserts all of `other`; returns whether any was absent. Both have the same range.
    pub fn union_with(&mut self, other: &BitSet) -> bool {
        let mut has_grown = false;
        for (to, from) in self.words.iter_mut().zip(&other.words) {
            has_grown |= from & !*to != 0;
            *to |= from;
        }
        has_grown
    }

    /// Returns the numbers in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.words.len() * 64).filter(|at| self.contains(*at))
    }
}

/// Values that are live at the start and the end of every node.
#[derive(Clone, Debug)]
pub struct Liveness {
    live_in: Vec<BitSet>,
    live_out: Vec<BitSet>,
}

impl Liveness {
    /// Computes the liveness of `graph`. Nothing is live in an unreachable node.
    pub fn of(graph: &impl DataFlow) -> Self {
        let empty = BitSet::new(graph.value_count());
        let mut live_in = vec![empty.clone(); graph.node_count()];
        let mut live_out = vec![empty; graph.node_count()];
        let order = reverse_post_order(graph);
        for node in &order {
            graph.for_each_use(*node, &mut |value| {
                live_in[*node].insert(value);
            });
        }
        let predecessors = predecessors(graph);
        let mut position = vec![None; graph.node_count()];
        for (at, node) in order.iter().enumerate() {
            position[*node] = Some(at);
        }
        // Nodes late in the order come first; a node is revisited when the set of a successor has
        // grown.
        let mut left: BTreeSet<usize> = (0..order.len()).collect();
        while let Some(at) = left.pop_last() {
            let node = order[at];
            graph.for_each_successor(node, &mut |next| {
                live_out[node].union_with(&live_in[next]);
            });
            let mut passed = live_out[node].clone();
            graph.for_each_definition(node, &mut |value| passed.remove(value));
            if live_in[node].union_with(&passed) {
                left.extend(predecessors[node].iter().filter_map(|before| position[*before]));
            }
        }
        Self { live_in, live_out }
    }

    /// Returns the values that are live at the start of `node`, before its parameters are set.
    pub fn live_in(&self, node: usize) -> &BitSet {
        &self.live_in[node]
    }

    /// Returns the values that are live at the end of `node`, after its terminator's arguments are
    /// used.
    pub fn live_out(&self, node: usize) -> &BitSet {
        &self.live_out[node]
    }

    /// Returns the values of a function that are live into `block`, without its parameters.
    pub fn values_into(&self, block: BlockId) -> Vec<ValueId> {
        self.live_in(block.index()).iter().map(ValueId::new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, Builder, CompareOp, Loc, Target, Term, Type};

    #[test]
    fn a_value_lives_around_the_loop_that_uses_it() {
        let mut builder = Builder::new(Function::new("sum", None, Loc::default()));
        let step = builder.add_param(Function::ENTRY, Type::Bits(8), None);
        let (header, body, after) = (builder.new_block(), builder.new_block(), builder.new_block());
        let sum = builder.add_param(header, Type::Bits(8), None);
        let start = builder.number(8, 0);
        builder.end(Term::Jump(Target { block: header, args: vec![start] }));
        builder.switch_to(header);
        let limit = builder.number(8, 100);
        let is_below = builder.compare(CompareOp::ULt, sum, limit);
        builder.branch(is_below, body, after);
        builder.switch_to(body);
        let next = builder.binary(BinaryOp::Add, sum, step);
        builder.end(Term::Jump(Target { block: header, args: vec![next] }));
        builder.switch_to(after);
        builder.end(Term::Return { value: Some(sum) });

        let liveness = Liveness::of(&builder.finish());
        assert_eq!(liveness.values_into(Function::ENTRY), []);
        assert_eq!(liveness.values_into(header), [step]);
        assert_eq!(liveness.values_into(body), [step, sum]);
        assert_eq!(liveness.values_into(after), [sum]);
        assert!(liveness.live_out(body.index()).contains(step.index()));
        assert!(!liveness.live_out(body.index()).contains(next.index()));
    }

    /// Nodes are instructions: one that reads and writes the same register uses it first.
    struct Registers;

    impl ControlFlow for Registers {
        fn node_count(&self) -> usize {
            3
        }

        fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
            if node < 2 {
                visit(node + 1);
            }
        }
    }

    impl DataFlow for Registers {
        fn value_count(&self) -> usize {
            2
        }

        fn for_each_use(&self, node: usize, visit: &mut dyn FnMut(usize)) {
            [vec![], vec![0], vec![1]][node].iter().for_each(|value| visit(*value));
        }

        fn for_each_definition(&self, node: usize, visit: &mut dyn FnMut(usize)) {
            [vec![1], vec![0], vec![]][node].iter().for_each(|value| visit(*value));
        }
    }

    #[test]
    fn registers_may_be_defined_more_than_once() {
        let liveness = Liveness::of(&Registers);
        assert!(liveness.live_in(1).contains(0) && liveness.live_in(0).contains(0));
        assert!(!liveness.live_out(1).contains(0));
        assert!(!liveness.live_in(0).contains(1), "it is defined before it is used");
        assert!(liveness.live_in(1).contains(1));
    }
}
