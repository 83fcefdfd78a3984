// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots of keys, and keys of slots.

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::integer;
use freeport_kv_protocol::slots::{SLOTS, slot_of};

use super::super::{Context, Flow};

pub(super) fn slot(context: &mut Context<'_>) -> Result<Flow, Error> {
    let slot = slot_of(context.arguments[2]);
    context.reply().integer(slot.into());
    Ok(Flow::Continue)
}

pub(super) fn count(context: &mut Context<'_>) -> Result<Flow, Error> {
    let number = integer(context.arguments[2])?;
    let slot = number_of_slot(number).ok_or(Error::fixed("ERR Invalid slot"))?;
    let mut count = 0;
    visit(context, slot, |_| {
        count += 1;
        true
    });
    context.reply().integer(count);
    Ok(Flow::Continue)
}

pub(super) fn list(context: &mut Context<'_>) -> Result<Flow, Error> {
    const INVALID: Error = Error::fixed("ERR Invalid slot or number of keys");
    let (number, most) = (integer(context.arguments[2])?, integer(context.arguments[3])?);
    let slot = number_of_slot(number).ok_or(INVALID)?;
    let most = usize::try_from(most).map_err(|_| INVALID)?;
    let mut keys: Vec<Vec<u8>> = vec![];
    visit(context, slot, |key| {
        keys.extend((keys.len() < most).then(|| key.to_vec()));
        keys.len() < most
    });
    let mut reply = context.reply();
    reply.array(keys.len());
    keys.iter().for_each(|key| reply.bulk(key));
    Ok(Flow::Continue)
}

fn number_of_slot(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|slot| *slot < SLOTS)
}

/// Calls a function with the keys of a slot, all of whose shards are here, while it wants more.
fn visit(context: &Context<'_>, slot: u16, mut visit: impl FnMut(&[u8]) -> bool) {
    let now_ms = context.core.now_ms;
    for keyspace in context.core.store.shards().filter_map(|shard| shard.database(0)) {
        let (mut cursor, mut wants_more) = (0, true);
        while wants_more {
            cursor = keyspace.scan(cursor, now_ms, |key, _| {
                if slot_of(key) == slot {
                    wants_more &= visit(key);
                }
            });
            if cursor == 0 {
                break;
            }
        }
    }
}
