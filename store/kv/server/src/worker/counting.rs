// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker's part of a [`Census`].

use super::Worker;
use crate::census::Census;

impl Worker {
    /// State that this worker holds now.
    pub(super) fn census(&self) -> Census {
        let mut census = Census {
            connections: self.core.network.connections.len(),
            loans: self.lending.waiting(),
            ..Census::default()
        };
        for client in
            self.core.network.connections.values().filter_map(|connection| connection.client())
        {
            census.blocked += usize::from(client.blocked.is_some());
            census.suspended += usize::from(client.is_suspended);
        }
        if self.core.store.has(self.core.number) {
            let shard = self.core.store.shard(self.core.number);
            census.shards = 1;
            census.awaited_keys = shard.awaited_keys();
            census.watched_keys = shard.watched_keys();
        }
        census
    }
}
