// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fast way: nothing watches changes, so a batch passes the stages of the engine, and what is
//! counted is counted once.

use std::ops::ControlFlow;
use std::sync::Arc;

use freeport_kv_engine::Keys;
use freeport_kv_functions::Registry;
use freeport_kv_keyspace::{BatchOptions, Entry, Execute};
use freeport_kv_protocol::batch::{Opcode, Operation, Operations};

use super::conditions::{Batch, Conditions, Outcome, Replies};
use super::effect::Effect;
use super::operation::{call, perform};
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
        operations: batch.operations,
        payload: batch.payload,
        first: batch.range.start,
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
        self.operations.key(self.payload, self.range.start + number)
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
struct Executor<'a, 'r> {
    operations: &'a Operations,
    payload: &'a [u8],
    /// Number of the first operation of the batch.
    first: usize,
    registry: &'a Registry,
    replies: &'a mut Replies<'r>,
    touches: bool,
    stops_when_full: bool,
    counts: Counts,
}

impl Execute for Executor<'_, '_> {
    #[inline(always)]
    fn execute(&mut self, number: usize, entry: &mut Entry<'_, '_, '_>) -> ControlFlow<()> {
        let Self { operations, payload, first, registry, replies, stops_when_full, counts, .. } =
            self;
        let number = *first + number;
        let (opcode, no_return) = operations.kind(number);
        let effect = match opcode {
            // Their values are empty, and need not be looked for.
            Opcode::Get | Opcode::Delete => {
                let operation = Operation { opcode, no_return, ..Operation::get(entry.key()) };
                perform(&operation, entry, registry, replies, *stops_when_full)
            }
            Opcode::Put => {
                let operation = operations.get(payload, number);
                perform(&operation, entry, registry, replies, *stops_when_full)
            }
            _ => entry
                .aside(|entry| call(&operations.get(payload, number), entry, registry, replies)),
        };
        match effect {
            Effect::None => {}
            Effect::Hit => counts.hits += 1,
            Effect::Miss => counts.misses += 1,
            Effect::Put | Effect::Deleted | Effect::Updated | Effect::VectorUpdated => {
                counts.changes += 1;
            }
            Effect::Failed => {
                // A value that a get cannot return was found.
                counts.hits += u64::from(opcode == Opcode::Get);
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
