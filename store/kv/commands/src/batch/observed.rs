// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way on which each operation is executed like the command that it stands for, because
//! somebody watches changes.

use std::sync::Arc;

use freeport_kv_protocol::batch::{Opcode, Operation};

use super::conditions::{Batch, Conditions, Outcome, Replies};
use super::effect::Effect;
use super::has_key;
use super::operation::perform;
use super::target::Named;
use crate::database::Database;
use crate::effects::{Class, Effects};
use crate::store::Store;

/// Operations whose keys are fetched together.
const TOGETHER: usize = 16;

/// Executes a batch, one operation after the other.
pub(super) fn execute(
    (store, effects): (&mut Store, &mut Effects),
    conditions: &Conditions,
    batch: &Batch<'_>,
    replies: &mut Replies<'_>,
) -> Outcome {
    let registry = Arc::clone(store.functions());
    let touches = conditions.touches && store.tracks_uses();
    let mut outcome = Outcome::default();
    for operation in batch.iter() {
        if outcome.executed.is_multiple_of(TOGETHER) {
            prefetch(store, conditions.database, batch, outcome.executed);
        }
        let (number, now_ms) = (conditions.database, conditions.now_ms);
        let mut database = Database::new(store, effects, number, now_ms);
        let counts = operation.opcode == Opcode::Get;
        let mut target = Named { database: &mut database, key: operation.key, counts };
        let stops_when_full = conditions.stops_when_full;
        let effect = perform(&operation, &mut target, &registry, replies, stops_when_full);
        if let Effect::Updated | Effect::VectorUpdated = effect
            && let Ok(function) = registry.update(operation.function)
        {
            database.log_update(&function, operation.key);
        }
        follow(&operation, effect, &mut database);
        if effect == Effect::Full {
            return outcome;
        }
        if touches && has_key(operation.opcode) {
            store.touch((number, operation.key), now_ms);
        }
        outcome.failed += usize::from(effect == Effect::Failed);
        outcome.executed += 1;
    }
    outcome
}

/// Fetches the memory of the keys of the next operations.
fn prefetch(store: &Store, database: u16, batch: &Batch<'_>, executed: usize) {
    for operation in batch.iter().skip(executed).take(TOGETHER) {
        if has_key(operation.opcode)
            && let Some(keyspace) = store.shard(store.shard_of(operation.key)).database(database)
        {
            keyspace.engine().prefetch(operation.key);
        }
    }
}

/// Does what follows from an operation for others.
fn follow(operation: &Operation<'_>, effect: Effect, database: &mut Database<'_>) {
    let key = operation.key;
    match effect {
        Effect::Put => database.changed(key, Class::String, "set"),
        Effect::Deleted => database.changed(key, Class::Generic, "del"),
        Effect::Updated => database.changed(key, Class::String, "kv.update"),
        Effect::VectorUpdated => database.changed(key, Class::String, "kv.updatev"),
        Effect::Failed | Effect::Full => database.effects.made.clear(),
        Effect::None | Effect::Hit | Effect::Miss => {}
    }
    database.effects.tell_all_made();
    follow_lookups(operation, database);
}

/// As after a command: lookups of a get are counted, a value that was not seen because its time
/// had passed is removed, and a miss is an event.
fn follow_lookups(operation: &Operation<'_>, database: &mut Database<'_>) {
    let (hits, misses) = (database.lookups.hits.get(), database.lookups.misses.get());
    if operation.opcode == Opcode::Get {
        database.effects.hits += u64::from(hits);
        database.effects.misses += u64::from(misses);
        if misses > 0 {
            let number = database.number();
            database.effects.note(Class::Miss, "keymiss", number, operation.key);
        }
    }
    if database.lookups.has_hidden.get() {
        database.expire_key(operation.key);
    }
}
