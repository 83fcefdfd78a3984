// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements are moved from an end of a list to an end of another one, or of the same.

use freeport_kv_keyspace::Kind;
use freeport_kv_types::list::End;
use freeport_kv_types::{Entry, List};

use super::{end, pop_event, push_event};
use crate::arguments::deadline_ms;
use crate::call::Call;
use crate::database::Database;
use crate::effects::{Block, Class};
use crate::error::Error;

/// `LMOVE source destination LEFT | RIGHT LEFT | RIGHT`
pub fn lmove(call: &mut Call<'_>) -> Result<(), Error> {
    let ends = (end(call.arguments[3])?, end(call.arguments[4])?);
    reply_or_null(call, ends)
}

/// `RPOPLPUSH source destination`
pub fn rpoplpush(call: &mut Call<'_>) -> Result<(), Error> {
    reply_or_null(call, (End::Back, End::Front))
}

/// `BLMOVE source destination LEFT | RIGHT LEFT | RIGHT timeout`
pub fn blmove(call: &mut Call<'_>) -> Result<(), Error> {
    let ends = (end(call.arguments[3])?, end(call.arguments[4])?);
    reply_or_wait(call, ends, 5)
}

/// `BRPOPLPUSH source destination timeout`
pub fn brpoplpush(call: &mut Call<'_>) -> Result<(), Error> {
    reply_or_wait(call, (End::Back, End::Front), 3)
}

fn reply_or_null(call: &mut Call<'_>, ends: (End, End)) -> Result<(), Error> {
    match transfer(&mut call.database, call.arguments[1], call.arguments[2], ends)? {
        Some(value) => call.reply.bulk(&value),
        None => call.reply.null(),
    }
    Ok(())
}

/// As [`reply_or_null`], or waits for the source until the timeout at position `timeout`.
fn reply_or_wait(call: &mut Call<'_>, ends: (End, End), timeout: usize) -> Result<(), Error> {
    let deadline_ms = deadline_ms(call.arguments[timeout], call.now_ms())?;
    match transfer(&mut call.database, call.arguments[1], call.arguments[2], ends)? {
        Some(value) => call.reply.bulk(&value),
        // Redis has the null of arrays after a timeout, but not here.
        None if !call.session.may_block => call.reply.null(),
        None => call.block(Block {
            keys: vec![1],
            kind: Kind::List,
            wakes_on_removal: false,
            deadline_ms,
            is_null_string: false,
            arguments: None,
        }),
    }
    Ok(())
}

/// Moves an element, and returns it; none if there is no source. The element comes to the target
/// first, so that it is in no place lost if memory ends.
fn transfer(
    database: &mut Database<'_>,
    source: &[u8],
    target: &[u8],
    (from, to): (End, End),
) -> Result<Option<Vec<u8>>, Error> {
    let list = database.read::<List>(source)?;
    let Some(value) = list.and_then(|list| list.end(from)).map(Entry::to_vec) else {
        return Ok(None);
    };
    if source == target {
        database.change::<List, _>(source, |list, limits| {
            list.pop(limits, from);
            list.push(limits, to, &value);
        })?;
    } else {
        database.change::<List, _>(target, |list, limits| list.push(limits, to, &value))?;
        let removed = database.shrink::<List, _>(source, |list, limits| list.pop(limits, from));
        if let Err(error) = removed {
            database.shrink::<List, _>(target, |list, limits| list.pop(limits, to))?;
            return Err(error);
        }
    }
    database.changed(target, Class::List, push_event(to));
    database.changed_or_removed(source, Class::List, pop_event(from));
    Ok(Some(value))
}
