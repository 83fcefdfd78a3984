// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker's part in the removal of keys whose slots belong to other shards of a cluster. See
//! [`crate::moving::Purges`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use freeport_kv_commands::Error;

use super::{Core, Worker};
use crate::moving::{DATABASE, Order};
use crate::persistence::record::command_bytes;

/// Time of a turn for removals.
const TURN: Duration = Duration::from_micros(200);
/// Chains of keys that are searched between two looks at the clock.
const CHAINS: usize = 32;

/// Progress with the present order.
#[derive(Debug, Default)]
pub(super) struct Purging {
    order: Arc<Order>,
    cursor: u64,
    is_active: bool,
}

impl Worker {
    /// Removes some keys, if there is an order that is not carried out.
    #[inline]
    pub(super) fn purge_some(&mut self) {
        let Some(moving) = &self.core.shared.moving else { return };
        if moving.purges.number() != self.purging.order.number {
            let order = moving.purges.order();
            self.purging = Purging { order, cursor: 0, is_active: true };
        }
        if self.purging.is_active {
            // The order may be newer than this turn, and what the worker has to know older.
            self.core.follow();
            if self.can_purge() {
                self.purge_for_a_turn();
            }
        }
    }

    /// Keys are to be removed, and can be at present.
    pub(super) fn is_purging(&self) -> bool {
        self.purging.is_active && self.can_purge()
    }

    /// While the log refuses removals, as that of a replica does, another node becomes the primary,
    /// or another worker has the shard, the keys stay.
    fn can_purge(&self) -> bool {
        let refuses = self.core.hands_over() || self.core.refuses_changes();
        self.core.store.has(self.core.number) && !refuses
    }

    #[cold]
    fn purge_for_a_turn(&mut self) {
        let begun = Instant::now();
        let order = self.purging.order.clone();
        let mut keys = vec![];
        while self.purging.is_active && begun.elapsed() < TURN {
            let (shard, place) =
                (self.core.store.shard(self.core.number), (DATABASE, self.purging.cursor));
            let has = |slot| order.slots.has(slot);
            let next = match order.slots.is_empty() {
                true => 0,
                false => shard.keys_in_slots(place, CHAINS, has, |key| keys.push(key.to_vec())),
            };
            for key in keys.drain(..) {
                if self.core.admit_removal(&key).is_err() {
                    // The log has no room for now; the chains are searched again.
                    return self.core.flush_log();
                }
                let shard = self.core.store.shard_mut(self.core.number);
                shard.purge((DATABASE, &key), &mut self.core.effects);
            }
            self.purging.cursor = next;
            self.purging.is_active = next != 0;
        }
        // Nobody may see an order as finished before the log has its removals.
        self.core.flush_log();
        if self.core.effects.has_ready_keys {
            self.serve_waiters();
        }
        if !self.purging.is_active
            && let Some(moving) = &self.core.shared.moving
        {
            moving.purges.finish(self.core.number, order.number);
        }
    }
}

impl Core {
    /// Asks for room in the log for the removal of a key.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn admit_removal(&mut self, key: &[u8]) -> Result<(), Error> {
        let bytes = command_bytes(&[key]);
        self.log.as_mut().map_or(Ok(()), |log| log.admit_bytes(bytes))
    }
}
