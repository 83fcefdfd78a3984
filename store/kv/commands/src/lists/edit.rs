// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements inside of a list are replaced, inserted and removed.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::list::End;
use freeport_kv_types::{List, indexes};

use crate::arguments::{integer, is, signed_count};
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `LSET key index element`
pub fn lset(call: &mut Call<'_>) -> Result<(), Error> {
    const OUT_OF_RANGE: Error = Error::fixed("ERR index out of range");

    let (key, value) = (call.arguments[1], call.arguments[3]);
    call.database.read::<List>(key)?.ok_or(Error::NO_SUCH_KEY)?;
    let index = integer(call.arguments[2])?;
    let is_set =
        call.database.change::<List, _>(key, |list, limits| list.set(limits, index, value))?;
    if !is_set {
        return Err(OUT_OF_RANGE);
    }
    call.database.changed(key, Class::List, "lset");
    call.reply.raw(shared::OK);
    Ok(())
}

/// `LINSERT key BEFORE | AFTER pivot element`
pub fn linsert(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, side) = (call.arguments[1], call.arguments[2]);
    let (pivot, value) = (call.arguments[3], call.arguments[4]);
    let side = match side {
        _ if is(side, "before") => End::Front,
        _ if is(side, "after") => End::Back,
        _ => return Err(Error::SYNTAX),
    };
    if call.database.read::<List>(key)?.is_none() {
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    let len = call.database.change::<List, _>(key, |list, limits| {
        list.insert(limits, side, pivot, value).then(|| list.len())
    })?;
    match len {
        Some(len) => {
            call.database.changed(key, Class::List, "linsert");
            call.reply.integer(len as i64);
        }
        None => call.reply.raw(shared::MINUS_ONE),
    }
    Ok(())
}

/// `LREM key count element`
pub fn lrem(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, value) = (call.arguments[1], call.arguments[3]);
    let count = signed_count(call.arguments[2])?;
    let removed =
        call.database.shrink::<List, _>(key, |list, limits| list.remove(limits, count, value))?;
    if removed > 0 {
        call.database.changed_or_removed(key, Class::List, "lrem");
    }
    call.reply.integer(removed as i64);
    Ok(())
}

/// `LTRIM key start stop`
///
/// A list of which all is kept has its event too, as in Redis.
pub fn ltrim(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    let (start, stop) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    let is_there = call.database.shrink::<List, _>(key, |list, limits| {
        let len = list.len();
        list.trim(limits, indexes::range(len, start, stop));
        len > 0
    })?;
    if is_there {
        call.database.changed_or_removed(key, Class::List, "ltrim");
    }
    call.reply.raw(shared::OK);
    Ok(())
}
