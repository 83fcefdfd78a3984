// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of a stream by their ids, and its counters.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::{Stream, StreamId};

use super::{ids, reply};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `XLEN key`
pub fn xlen(call: &mut Call<'_>) -> Result<(), Error> {
    let stream = call.database.read::<Stream>(call.arguments[1])?;
    reply::count(&mut call.reply, stream.map_or(0, |stream| stream.len()));
    Ok(())
}

/// `XRANGE key start end [COUNT count]`
pub fn xrange(call: &mut Call<'_>) -> Result<(), Error> {
    let (start, end) = (call.arguments[2], call.arguments[3]);
    range(call, (start, end), false)
}

/// `XREVRANGE key end start [COUNT count]`
pub fn xrevrange(call: &mut Call<'_>) -> Result<(), Error> {
    let (end, start) = (call.arguments[2], call.arguments[3]);
    range(call, (start, end), true)
}

fn range(
    call: &mut Call<'_>,
    (start, end): (&[u8], &[u8]),
    is_reversed: bool,
) -> Result<(), Error> {
    let (start, end) = (StreamId::parse_start(start)?, StreamId::parse_end(end)?);
    let mut count = usize::MAX;
    for option in call.arguments[4..].chunks(2) {
        match option {
            [name, number] if is(name, "count") => {
                count = usize::try_from(integer(number)?).unwrap_or(0);
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    let Some(stream) = call.database.read::<Stream>(call.arguments[1])? else {
        call.reply.raw(shared::EMPTY_ARRAY);
        return Ok(());
    };
    match (count, is_reversed) {
        (0, _) => call.reply.null_array(),
        (_, false) => reply::entries(&mut call.reply, stream.range(start, end).take(count)),
        (_, true) => reply::entries(&mut call.reply, stream.range_reversed(start, end).take(count)),
    }
    Ok(())
}

/// `XDEL key id ...`
pub fn xdel(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    if call.database.read::<Stream>(key)?.is_none() {
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    let ids = ids(&call.arguments[2..])?;
    let deleted = call.database.shrink(key, |stream: &mut Stream, _| stream.delete(&ids))?;
    if deleted > 0 {
        call.database.changed(key, Class::Stream, "xdel");
    }
    reply::count(&mut call.reply, deleted);
    Ok(())
}

/// `XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]`
pub fn xsetid(call: &mut Call<'_>) -> Result<(), Error> {
    const NEGATIVE: Error = Error::fixed("ERR entries_added must be positive");
    const BELOW_DELETED: Error = Error::fixed(
        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
    );

    let key = call.arguments[1];
    let last_id = StreamId::parse_strict(call.arguments[2], 0)?;
    let (mut added, mut max_deleted) = (None, None);
    for option in call.arguments[3..].chunks(2) {
        match option {
            [name, value] if is(name, "entriesadded") => {
                added = Some(u64::try_from(integer(value)?).map_err(|_| NEGATIVE)?);
            }
            [name, value] if is(name, "maxdeletedid") => {
                let id = StreamId::parse_strict(value, 0)?;
                if last_id < id {
                    return Err(BELOW_DELETED);
                }
                max_deleted = Some(id);
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    if call.database.read::<Stream>(key)?.is_none() {
        return Err(Error::NO_SUCH_KEY);
    }
    call.database
        .change(key, |stream: &mut Stream, _| stream.set_id(last_id, added, max_deleted))??;
    call.database.changed_unwatched(key, Some((Class::Stream, "xsetid")));
    call.reply.raw(shared::OK);
    Ok(())
}
