// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fast way: nothing watches changes, so a batch passes the stages of the engine, and what is
//! counted is counted once.

use std::ops::ControlFlow;
use std::sync::Arc;

use freeport_kv_engine::Keys;
use freeport_kv_functions::Registry;
use freeport_kv_keyspace::{BatchOptions, Entry, Execute};
use freeport_kv_protocol::batch::Opcode;

use super::conditions::{Batch, Conditions, Outcome, Replies};
use super::effect::Effect;
use super::operation::perform;
use crate::effects::Effects;
use crate::store::Store;

/// Executes a batch on a shard.
pub(super) fn execute(
    (store, shard, effects): (&mut Store, usize, &mut Effects),
    conditions: &Conditions,
    batch: &Batch<'_>,
    replies: &mut Replies<'_>,
) -> Outcome {
    let registry = Arc::clone(store.functions());
    let mut executor = Executor {
        batch,
        registry: &registry,
        replies,
        touches: conditions.touches && store.tracks_uses(),
        stops_when_full: conditions.stops_when_full,
        counts: Counts::default(),
    };
    let options = BatchOptions {
        now_ms: conditions.now_ms,
        // While writes are paused, nothing changes.
        removes_expired: conditions.now_ms >= effects.paused_until_ms,
    };
    let keyspace = store.shard_mut(shard).database_or_new(conditions.database);
    let done = keyspace.run_each(batch, options, &mut executor);
    let counts = executor.counts;
    effects.hits += counts.hits;
    effects.misses += counts.misses;
    effects.changes += counts.changes;
    effects.expired += done.expired;
    Outcome { executed: done.executed - usize::from(counts.is_full), failed: counts.failed }
}

impl Keys for Batch<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.range.len()
    }

    #[inline(always)]
    fn key(&self, number: usize) -> &[u8] {
        self.operations.get(self.payload, self.range.start + number).key
    }
}

/// What the operations of a batch have done.
#[derive(Clone, Copy, Default)]
struct Counts {
    hits: u64,
    misses: u64,
    changes: u64,
    failed: usize,
    is_full: bool,
}

/// The operations of a batch, for the stages of the engine.
struct Executor<'a, 'r, 'b> {
    batch: &'a Batch<'b>,
    registry: &'a Registry,
    replies: &'a mut Replies<'r>,
    touches: bool,
    stops_when_full: bool,
    counts: Counts,
}

impl Execute for Executor<'_, '_, '_> {
    #[inline(always)]
    fn execute(&mut self, number: usize, entry: &mut Entry<'_, '_, '_>) -> ControlFlow<()> {
        let Batch { operations, payload, range } = self.batch;
        let operation = operations.get(payload, range.start + number);
        let Self { registry, replies, stops_when_full, counts, .. } = self;
        match perform(&operation, entry, registry, replies, *stops_when_full) {
            Effect::None => {}
            Effect::Hit => counts.hits += 1,
            Effect::Miss => counts.misses += 1,
            Effect::Put | Effect::Deleted | Effect::Updated | Effect::VectorUpdated => {
                counts.changes += 1;
            }
            Effect::Failed => {
                // A value that a get cannot return was found.
                counts.hits += u64::from(operation.opcode == Opcode::Get);
                counts.failed += 1;
            }
            Effect::Full => {
                counts.is_full = true;
                return ControlFlow::Break(());
            }
        }
        if self.touches {
            entry.touch(|| fastrand::u32(..));
        }
        ControlFlow::Continue(())
    }
}
