// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Natural loops and their nesting.
//!
//! An edge to a node that dominates its source closes a loop with that node as its header; the loop
//! consists of all nodes that reach the edge without passing the header. An edge that goes back in
//! reverse post-order to a node that does not dominate its source closes a cycle with two entries:
//! the graph is then irreducible, and that cycle is not in the list.

use super::{BitSet, ControlFlow, Dominators, predecessors};

/// A natural loop; loops with the same header are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The only entry.
    pub header: usize,
    /// Nodes of the loop and of the loops inside it, sorted.
    pub body: Vec<usize>,
    /// Nodes of the body with an edge to the header, sorted.
    pub latches: Vec<usize>,
    /// Enclosing loop, an index into [`Loops::loops`].
    pub parent: Option<usize>,
    /// Number of loops that contain it, including itself.
    pub depth: usize,
}

/// Loops of a graph.
#[derive(Clone, Debug)]
pub struct Loops {
    /// Loops; an outer loop precedes those inside it.
    pub loops: Vec<Loop>,
    /// Edges that close a cycle with two entries; none in a reducible graph.
    pub irreducible_edges: Vec<(usize, usize)>,
    innermost: Vec<Option<usize>>,
}

impl Loops {
    /// Finds the loops of `graph`, whose dominators are given.
    pub fn of(graph: &impl ControlFlow, dominators: &Dominators) -> Self {
        let predecessors = predecessors(graph);
        let mut found = Self {
            loops: vec![],
            irreducible_edges: vec![],
            innermost: vec![None; graph.node_count()],
        };
        for header in dominators.order() {
            let mut latches = found.latches_of(*header, &predecessors, dominators);
            latches.sort_unstable();
            latches.dedup();
            if !latches.is_empty() {
                found.add(*header, latches, &predecessors, dominators);
            }
        }
        found
    }

    /// Returns the innermost loop that contains `node`, an index into [`Loops::loops`].
    pub fn innermost(&self, node: usize) -> Option<usize> {
        self.innermost[node]
    }

    /// Returns the number of loops that contain `node`.
    pub fn depth(&self, node: usize) -> usize {
        self.innermost[node].map_or(0, |at| self.loops[at].depth)
    }

    /// Returns the edges that leave loop `at`, from a node of its body to one outside.
    pub fn exits(&self, graph: &impl ControlFlow, at: usize) -> Vec<(usize, usize)> {
        let body = &self.loops[at].body;
        let mut exits = vec![];
        for node in body {
            graph.for_each_successor(*node, &mut |next| {
                if body.binary_search(&next).is_err() {
                    exits.push((*node, next));
                }
            });
        }
        exits
    }

    /// Returns the nodes with an edge to `header` that it dominates; records the others as
    /// irreducible.
    fn latches_of(
        &mut self,
        header: usize,
        predecessors: &[Vec<usize>],
        dominators: &Dominators,
    ) -> Vec<usize> {
        let mut latches = vec![];
        for from in &predecessors[header] {
            let goes_back = dominators.position(*from) >= dominators.position(header);
            if !dominators.is_reachable(*from) || !goes_back {
                continue;
            }
            if dominators.dominates(header, *from) {
                latches.push(*from);
            } else {
                self.irreducible_edges.push((*from, header));
            }
        }
        latches
    }

    /// Adds a loop. Headers come in reverse post-order, so every enclosing loop is already known.
    fn add(
        &mut self,
        header: usize,
        latches: Vec<usize>,
        predecessors: &[Vec<usize>],
        dominators: &Dominators,
    ) {
        let mut body = vec![header];
        let mut is_inside = BitSet::new(predecessors.len());
        is_inside.insert(header);
        let mut left = latches.clone();
        while let Some(node) = left.pop() {
            if dominators.is_reachable(node) && is_inside.insert(node) {
                body.push(node);
                left.extend(&predecessors[node]);
            }
        }
        body.sort_unstable();
        let parent = self.innermost[header];
        let depth = parent.map_or(0, |at| self.loops[at].depth) + 1;
        for node in &body {
            self.innermost[*node] = Some(self.loops.len());
        }
        self.loops.push(Loop { header, body, latches, parent, depth });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Edges, random_graph};
    use super::*;

    fn loops_of(graph: &Edges) -> Loops {
        Loops::of(graph, &Dominators::of(graph))
    }

    #[test]
    fn nested_loops_know_each_other() {
        // 0 -> 1 { 2 { 3 } 4 } -> 5, with a `continue` from 2 to 1.
        let graph = Edges(vec![vec![1], vec![2, 5], vec![3, 4, 1], vec![2], vec![1], vec![]]);
        let found = loops_of(&graph);
        assert!(found.irreducible_edges.is_empty());
        let outer =
            Loop { header: 1, body: vec![1, 2, 3, 4], latches: vec![2, 4], parent: None, depth: 1 };
        let inner =
            Loop { header: 2, body: vec![2, 3], latches: vec![3], parent: Some(0), depth: 2 };
        assert_eq!(found.loops, [outer, inner]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|node| found.depth(node)), [0, 1, 2, 2, 1, 0]);
        assert_eq!(found.exits(&graph, 0), [(1, 5)]);
        assert_eq!(found.exits(&graph, 1), [(2, 4), (2, 1)]);
    }

    #[test]
    fn a_cycle_with_two_ways_in_is_irreducible() {
        let graph = Edges(vec![vec![1, 2], vec![2], vec![1]]);
        let found = loops_of(&graph);
        assert!(found.loops.is_empty());
        assert_eq!(found.irreducible_edges.len(), 1);
    }

    /// A graph is reducible exactly if no cycle is left without the edges to dominators.
    #[test]
    fn irreducibility_agrees_with_the_definition_on_random_graphs() {
        for seed in 0..500 {
            let graph = random_graph(&mut fastrand::Rng::with_seed(seed));
            let dominators = Dominators::of(&graph);
            let mut left: Vec<usize> = dominators.order().to_vec();
            loop {
                let before = left.len();
                let kept = left.clone();
                left.retain(|node| {
                    let mut next = graph.successors(*node).into_iter();
                    next.any(|next| kept.contains(&next) && !dominators.dominates(next, *node))
                });
                if left.len() == before {
                    break;
                }
            }
            let found = Loops::of(&graph, &dominators);
            assert_eq!(found.irreducible_edges.is_empty(), left.is_empty(), "seed {seed}");
        }
    }
}
