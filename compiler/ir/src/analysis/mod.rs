// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses of control flow and data flow, written once for everything that has a graph.
//!
//! The nodes of a [`Function`] are its blocks; those of an eBPF program are its instructions. Both
//! only have to say how many nodes there are and where each one leads ([`ControlFlow`]), and for
//! liveness what each one uses and defines ([`DataFlow`]).

mod address_slice;
mod dominators;
mod joins;
mod liveness;
mod loops;
mod range;
mod slicer;
mod watchdog;

pub use address_slice::{Access, AddressSlice, LargeMemory, Place, Round, address_slices};
pub use dominators::Dominators;
pub use joins::{ShallowJoin, shallow_joins};
pub use liveness::{BitSet, DataFlow, Liveness};
pub use loops::{Loop, Loops};
pub use range::{definitions, is_in_range, upper_bound};
pub use watchdog::{TURN_LIMIT, mark_watched_loops, watched_loops};

use crate::Function;

/// A graph of nodes numbered from 0, one of which is where control begins.
pub trait ControlFlow {
    /// How many nodes there are.
    fn node_count(&self) -> usize;

    /// Where control begins.
    fn entry(&self) -> usize {
        0
    }

    /// Calls `visit` on every node that may follow `node`; one that follows in two ways comes
    /// twice.
    fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize));

    /// The nodes that may follow `node`.
    fn successors(&self, node: usize) -> Vec<usize> {
        let mut found = vec![];
        self.for_each_successor(node, &mut |next| found.push(next));
        found
    }
}

/// Blocks; a suspension leads to the block where the next firing goes on.
impl ControlFlow for Function {
    fn node_count(&self) -> usize {
        self.blocks.len()
    }

    fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
        for target in self.blocks[node].term.targets() {
            visit(target.block.index());
        }
    }
}

/// The nodes that can be reached, each one before its successors except along edges that go back.
pub fn reverse_post_order(graph: &impl ControlFlow) -> Vec<usize> {
    let mut order = vec![];
    let mut is_seen = vec![false; graph.node_count()];
    // A node with the successors that are left to visit: an explicit stack, because generated
    // programs are deep.
    let mut path = vec![(graph.entry(), graph.successors(graph.entry()))];
    is_seen[graph.entry()] = true;
    while let Some((node, left)) = path.last_mut() {
        match left.pop() {
            Some(next) if is_seen[next] => {}
            Some(next) => {
                is_seen[next] = true;
                path.push((next, graph.successors(next)));
            }
            None => {
                order.push(*node);
                path.pop();
            }
        }
    }
    order.reverse();
    order
}

/// For every node, the nodes that lead to it; one that does so in two ways comes twice.
pub fn predecessors(graph: &impl ControlFlow) -> Vec<Vec<usize>> {
    let mut found = vec![vec![]; graph.node_count()];
    for node in 0..graph.node_count() {
        graph.for_each_successor(node, &mut |next| found[next].push(node));
    }
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A graph by its edges.
    pub(crate) struct Edges(pub(crate) Vec<Vec<usize>>);

    impl ControlFlow for Edges {
        fn node_count(&self) -> usize {
            self.0.len()
        }

        fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
            self.0[node].iter().for_each(|next| visit(*next));
        }
    }

    /// A random graph in which each node has up to three successors.
    pub(crate) fn random_graph(random: &mut fastrand::Rng) -> Edges {
        let count = random.usize(1..12);
        let edges = (0..count).map(|_| {
            let width = random.usize(0..=3);
            (0..width).map(|_| random.usize(0..count)).collect()
        });
        Edges(edges.collect())
    }

    #[test]
    fn a_deep_chain_does_not_overflow_the_stack() {
        let count = 1_000_000;
        let chain = (0..count).map(|at| if at + 1 < count { vec![at + 1] } else { vec![] });
        let graph = Edges(chain.collect());
        assert!(reverse_post_order(&graph).into_iter().eq(0..count));
    }

    #[test]
    fn an_acyclic_graph_comes_in_topological_order() {
        let graph = Edges(vec![vec![2, 1], vec![3], vec![1, 3], vec![], vec![3]]);
        let order = reverse_post_order(&graph);
        assert_eq!(order, [0, 2, 1, 3], "node 4 is not reachable");
        assert_eq!(predecessors(&graph)[3], [1, 2, 4]);
    }
}
