// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dominators: node `a` dominates node `b` if every path from the entry to `b` passes `a`.
//!
//! The algorithm is that of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"
//! (2001): each node's immediate dominator is the closest common ancestor of its predecessors in
//! the tree found so far, iterated in reverse post-order until nothing changes.

use super::{ControlFlow, predecessors, reverse_post_order};

/// The dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct Dominators {
    order: Vec<usize>,
    /// Position in `order`; none for an unreachable node.
    position: Vec<Option<usize>>,
    /// By position in `order`: the position of the immediate dominator, its own for the entry.
    parent: Vec<usize>,
    /// By position: the times at which a walk of the tree enters and leaves the node.
    span: Vec<(usize, usize)>,
}

impl Dominators {
    /// Computes the dominator tree of `graph`.
    pub fn of(graph: &impl ControlFlow) -> Self {
        let order = reverse_post_order(graph);
        let mut position = vec![None; graph.node_count()];
        for (at, node) in order.iter().enumerate() {
            position[*node] = Some(at);
        }
        let parent = find_parents(graph, &order, &position);
        let span = number_tree(&parent);
        Self { order, position, parent, span }
    }

    /// Returns the reachable nodes in reverse post-order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the position of `node` in [`order`](Self::order); `None` if it is unreachable.
    pub fn position(&self, node: usize) -> Option<usize> {
        self.position[node]
    }

    /// Returns whether control can reach `node`.
    pub fn is_reachable(&self, node: usize) -> bool {
        self.position[node].is_some()
    }

    /// Returns the closest other node that dominates `node`; `None` for the entry and unreachable
    /// nodes.
    pub fn immediate(&self, node: usize) -> Option<usize> {
        let at = self.position[node]?;
        (at > 0).then(|| self.order[self.parent[at]])
    }

    /// Returns whether every path from the entry to `node` passes `above`. A node dominates itself.
    /// An unreachable node is dominated by every node, and dominates no reachable one.
    pub fn dominates(&self, above: usize, node: usize) -> bool {
        match (self.position[above], self.position[node]) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(above), Some(node)) => {
                let (outer, inner) = (self.span[above], self.span[node]);
                outer.0 <= inner.0 && inner.1 <= outer.1
            }
        }
    }
}

fn find_parents(
    graph: &impl ControlFlow,
    order: &[usize],
    position: &[Option<usize>],
) -> Vec<usize> {
    let predecessors = predecessors(graph);
    let mut parent: Vec<Option<usize>> = vec![None; order.len()];
    parent[0] = Some(0);
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for (at, node) in order.iter().enumerate().skip(1) {
            let known = predecessors[*node].iter().filter_map(|from| position[*from]);
            let known = known.filter(|from| parent[*from].is_some());
            let found = known.reduce(|left, right| meet(&parent, left, right));
            if parent[at] != found {
                parent[at] = found;
                has_changed = true;
            }
        }
    }
    parent.into_iter().map(|at| at.expect("a reachable node has a reachable parent")).collect()
}

/// Returns the closest common ancestor of two positions, by climbing from the higher one.
fn meet(parent: &[Option<usize>], mut left: usize, mut right: usize) -> usize {
    let up = |at: usize| parent[at].expect("only nodes with a parent are compared");
    while left != right {
        if left > right {
            left = up(left);
        } else {
            right = up(right);
        }
    }
    left
}

fn number_tree(parent: &[usize]) -> Vec<(usize, usize)> {
    let mut children = vec![vec![]; parent.len()];
    for (at, above) in parent.iter().enumerate().skip(1) {
        children[*above].push(at);
    }
    let mut span = vec![(0, 0); parent.len()];
    let mut clock = 0;
    let mut path = vec![0];
    let mut next_child = vec![0; parent.len()];
    while let Some(&at) = path.last() {
        if let Some(child) = children[at].get(next_child[at]) {
            next_child[at] += 1;
            clock += 1;
            span[*child].0 = clock;
            path.push(*child);
        } else {
            span[at].1 = clock;
            path.pop();
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Edges, random_graph};
    use super::*;

    /// Applies the definition: `node` is unreachable without `above`.
    fn dominates_by_definition(graph: &Edges, above: usize, node: usize) -> bool {
        if above == node || above == graph.entry() {
            return true;
        }
        let mut is_seen = vec![false; graph.node_count()];
        let mut left = vec![graph.entry()];
        while let Some(at) = left.pop() {
            if at != above && !std::mem::replace(&mut is_seen[at], true) {
                left.extend(graph.successors(at));
            }
        }
        !is_seen[node]
    }

    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        for seed in 0..500 {
            let graph = random_graph(&mut fastrand::Rng::with_seed(seed));
            let dominators = Dominators::of(&graph);
            for node in (0..graph.node_count()).filter(|node| dominators.is_reachable(*node)) {
                for above in 0..graph.node_count() {
                    let want = dominates_by_definition(&graph, above, node);
                    let want = want && dominators.is_reachable(above);
                    assert_eq!(
                        dominators.dominates(above, node),
                        want,
                        "seed {seed}: {above} over {node} in {:?}",
                        graph.0
                    );
                }
                let strict = (0..graph.node_count()).filter(|above| {
                    *above != node
                        && dominators.is_reachable(*above)
                        && dominators.dominates(*above, node)
                });
                let closest = strict.max_by_key(|above| {
                    (0..graph.node_count())
                        .filter(|higher| dominators.is_reachable(*higher))
                        .filter(|higher| dominators.dominates(*higher, *above))
                        .count()
                });
                assert_eq!(dominators.immediate(node), closest, "seed {seed}");
            }
        }
    }
}
