// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of a node whose lease may have run out do not leave it: another node may be the primary
//! already. Without a cluster, every function here is one comparison.
//!
//! - While the node has no lease, commands on keys are refused, and output from before waits.
//!   Clients whose commands wait for other routes are refused too: another node may serve them.
//! - When the lease is there again and nobody has replaced the node, the output leaves.
//! - If the node was replaced, connections with output are closed: their clients cannot know which
//!   of their last commands still hold, and ask the new primary.

use super::{Core, Worker};
use crate::cluster::Fence;
use crate::connection::Connection;

/// A worker's view on the fence.
#[derive(Debug, Default)]
pub struct Fencing {
    /// How often the node had been replaced when the turn began.
    replaced: u64,
    /// Connections whose output waits.
    held: Vec<u64>,
}

/// The fate of a connection's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It may leave, as far as the lease decides it.
    Open,
    /// It waits.
    Waits,
    /// It may never leave.
    Never,
}

impl Core {
    /// Decides if output may leave now.
    #[inline]
    pub(super) fn pass_fence(&mut self, id: u64, connection: &mut Connection) -> Passage {
        match &self.shared.cluster {
            Some(cluster) => {
                let passage = self.fencing.pass(&cluster.fence, connection);
                if passage == Passage::Waits && !connection.holding.is_fenced {
                    connection.holding.is_fenced = true;
                    self.fencing.held.push(id);
                }
                passage
            }
            None => Passage::Open,
        }
    }

    /// Replies to datagrams may leave. They are dropped otherwise, as the network may drop them.
    pub(super) fn datagrams_pass_fence(&self) -> bool {
        self.shared.cluster.as_ref().is_none_or(|cluster| {
            cluster.fence.is_valid() && cluster.fence.replaced() == self.fencing.replaced
        })
    }
}

impl Fencing {
    fn pass(&self, fence: &Fence, connection: &Connection) -> Passage {
        // The number is read after the lease: a new lease comes with the number that belongs to it.
        let is_valid = fence.is_valid();
        if !connection.has_guarded() {
            Passage::Open
        } else if fence.replaced() != self.replaced {
            Passage::Never
        } else if is_valid {
            Passage::Open
        } else {
            Passage::Waits
        }
    }
}

impl Worker {
    /// A turn begins: follows the lease.
    #[inline]
    pub(super) fn look_at_fence(&mut self) {
        let Some(cluster) = &self.core.shared.cluster else { return };
        let is_fenced = !cluster.fence.is_valid();
        let replaced = cluster.fence.replaced();
        if replaced != self.core.fencing.replaced {
            self.core.fencing.replaced = replaced;
            self.close_all_with_output();
        }
        let had_lease = !std::mem::replace(&mut self.core.is_fenced, is_fenced);
        if is_fenced && had_lease {
            let connections = self.core.network.connections.values_mut();
            connections.for_each(|connection| connection.guard_output());
            self.resume_stopped();
        }
        if !is_fenced && !self.core.fencing.held.is_empty() {
            for client in std::mem::take(&mut self.core.fencing.held) {
                self.send_held(client, |holding| holding.is_fenced = false);
            }
        }
    }

    fn close_all_with_output(&mut self) {
        let connections = self.core.network.connections.iter();
        let has_output = connections.filter(|(_, connection)| connection.backlog_bytes() > 0);
        let clients: Vec<u64> = has_output.map(|(client, _)| *client).collect();
        clients.into_iter().for_each(|client| self.disconnect(client));
        self.core.drop_datagrams();
    }
}
