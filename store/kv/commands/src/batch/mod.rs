// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution of the batched protocol (`docs/protocols/kv-batch.md`) on the keys that clients of
//! Redis see: get is `GET`, put is `SET`, delete is `DEL`, and the others are the `KV.*` commands
//! with operands in binary.
//!
//! There are two ways with one meaning, which is written once, in `operation`. While nothing
//! watches changes, a batch passes the stages of the engine, and a plain string costs little more
//! than there. Otherwise each operation is executed like the command that it stands for: it fails
//! transactions, wakes clients that wait, and is an event.

mod conditions;
mod effect;
mod functions;
mod observed;
mod operation;
mod plain;
mod target;
mod words;

use freeport_kv_protocol::batch::Opcode;

use crate::effects::Effects;
use crate::shard::Shard;
use crate::store::Store;
pub use conditions::{Batch, Conditions, Outcome, Replies};
pub use words::with_words;

/// Executes the operations of a batch in their order, and writes a reply for each. All their keys
/// are in one shard, which is here.
///
/// A server that keeps a log ([`Effects::records`]) executes each operation in a batch of its own,
/// so that it can record it: by [`Effects::logged`] or [`with_words`], if [`Effects::changes`] has
/// grown.
///
/// # Panics
/// There is no such database, or the shard is elsewhere.
pub fn execute(
    (store, effects): (&mut Store, &mut Effects),
    conditions: &Conditions,
    batch: &Batch<'_>,
    replies: &mut Replies<'_>,
) -> Outcome {
    let first_key = batch.iter().find(|it| has_key(it.opcode)).map(|it| it.key);
    let shard = first_key.map(|key| store.shard_of(key));
    match shard {
        Some(shard) if !is_observed(store.shard(shard), effects) => {
            plain::execute((store, shard, effects), conditions, batch, replies)
        }
        _ => observed::execute((store, effects), conditions, batch, replies),
    }
}

/// The operation has the key of a value; that of hello is a user.
fn has_key(opcode: Opcode) -> bool {
    opcode.has_key() && opcode != Opcode::Hello
}

/// Somebody has to be notified of every change, so batches are executed one operation at a time.
fn is_observed(shard: &Shard, effects: &Effects) -> bool {
    effects.records || effects.listened != 0 || shard.is_followed() || effects.broadcasts()
}
