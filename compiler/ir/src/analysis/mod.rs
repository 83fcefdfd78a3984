// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses of control flow and data flow, generic over graphs.
//!
//! The nodes of a [`Function`] are its blocks; those of an eBPF program are its instructions. Both
//! provide the number of nodes and their successors ([`ControlFlow`]), and for liveness their uses
//! and definitions ([`DataFlow`]).

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

/// A graph of nodes numbered from 0, with an entry node.
pub trait ControlFlow {
    /// Returns the number of nodes.
    fn node_count(&self) -> usize;

    /// Returns the entry node.
    fn entry(&self) -> usize {
        0
    }

    /// Calls `visit` on every successor of `node`; one reached by two edges is visited twice.
    fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize));

    /// Returns the successors of `node`.
    fn successors(&self, node: usize) -> Vec<usize> {
        let mut found = vec![];
        self.for_each_successor(node, &mut |next| found.push(next));
        found
    }
}

/// The nodes are blocks; a suspension leads to the block where the next firing continues.
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

/// Returns the reachable nodes, each before its successors except along back edges.
pub fn reverse_post_order(graph: &impl ControlFlow) -> Vec<usize> {
    let mut order = vec![];
    let mut is_seen = vec![false; graph.node_count()];
    // A node with its unvisited successors: an explicit stack, because generated programs nest
    // deeply.
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

/// Returns the predecessors of every node; one with two edges to the node occurs twice.
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

    /// A graph given by its edges.
    pub(crate) struct Edges(pub(crate) Vec<Vec<usize>>);

    impl ControlFlow for Edges {
        fn node_count(&self) -> usize {
            self.0.len()
        }

        fn for_each_successor(&self, node: usize, visit: &mut dyn FnMut(usize)) {
            self.0[node].iter().for_each(|next| visit(*next));
        }
    }

    /// Creates a random graph in which each node has up to three successors.
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
