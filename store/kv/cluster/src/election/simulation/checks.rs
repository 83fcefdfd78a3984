// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Things that may never happen.

use std::collections::HashSet;
use std::time::Duration;

use super::node::Node;

/// The knowledge of a shard's clients.
#[derive(Debug, Default)]
pub struct Clients {
    /// Acknowledged writes that may not be lost, with the number of replicas that had them.
    promised: Vec<(u64, usize)>,
    /// The latest term that has answered.
    answered: u64,
    /// Number of acknowledged writes.
    pub acknowledged: u64,
}

impl Clients {
    /// A number of nodes has failed at once: writes that fewer replicas had may be lost.
    pub fn failed(&mut self, nodes: usize) {
        self.promised.retain(|(_, replicas)| *replicas >= nodes);
    }

    /// A primary acknowledges a write. If its commands have stopped, the next primary has this
    /// write, and may have answered before.
    ///
    /// # Errors
    /// A later one has done so before.
    pub fn acknowledge(
        &mut self,
        (term, has_stopped): (u64, bool),
        write: u64,
        replicas: usize,
    ) -> Result<(), String> {
        if term < self.answered && !has_stopped {
            let later = self.answered;
            return Err(format!("term {term} acknowledges a write after term {later}"));
        }
        self.answered = term.max(self.answered);
        self.acknowledged += 1;
        self.promised.push((write, replicas));
        Ok(())
    }

    /// A node is the primary.
    ///
    /// # Errors
    /// It lacks a write that was promised.
    pub fn check_log(&self, node: &Node) -> Result<(), String> {
        let writes: HashSet<u64> = node.log.writes.iter().copied().collect();
        match self.promised.iter().find(|(write, _)| !writes.contains(write)) {
            Some((write, replicas)) => Err(format!(
                "the primary {} lacks write {write}, which {replicas} replicas had",
                node.id
            )),
            None => Ok(()),
        }
    }
}

/// At most one node of a shard may answer.
///
/// # Errors
/// There are two.
pub fn check_primaries(nodes: &[Node], shard: usize, now: Duration) -> Result<(), String> {
    let serving = nodes.iter().filter(|node| node.shard == shard && node.serves(now).is_some());
    let serving = serving.filter(|node| node.process.as_ref().is_some_and(|it| !it.has_stopped));
    let serving: Vec<_> = serving.map(|node| (node.id, node.serves(now))).collect();
    match serving.len() {
        0 | 1 => Ok(()),
        _ => Err(format!("there are two primaries at {now:?}: {serving:?}")),
    }
}
