// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields and values are read.

use freeport_kv_types::hash::HashRef;
use freeport_kv_types::{Entry, Hash};

use crate::call::Call;
use crate::entries::{bulk, bulk_or_null};
use crate::error::Error;

/// `HGET key field`
pub fn hget(call: &mut Call<'_>) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    let value = hash.and_then(|hash| hash.get(call.arguments[2]));
    bulk_or_null(&mut call.reply, value);
    Ok(())
}

/// `HMGET key field [field ...]`
pub fn hmget(call: &mut Call<'_>) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    let fields = &call.arguments[2..];
    call.reply.array(fields.len());
    for field in fields {
        bulk_or_null(&mut call.reply, hash.and_then(|hash| hash.get(field)));
    }
    Ok(())
}

/// `HLEN key`
pub fn hlen(call: &mut Call<'_>) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    call.reply.integer(hash.map_or(0, HashRef::len) as i64);
    Ok(())
}

/// `HEXISTS key field`
pub fn hexists(call: &mut Call<'_>) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    let is_there = hash.is_some_and(|hash| hash.contains(call.arguments[2]));
    call.reply.integer(i64::from(is_there));
    Ok(())
}

/// `HSTRLEN key field`
pub fn hstrlen(call: &mut Call<'_>) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    let value = hash.and_then(|hash| hash.get(call.arguments[2]));
    call.reply.integer(value.map_or(0, Entry::len) as i64);
    Ok(())
}

/// `HGETALL key`
pub fn hgetall(call: &mut Call<'_>) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    call.reply.map(hash.map_or(0, HashRef::len));
    for entry in hash.into_iter().flat_map(HashRef::iter).flatten() {
        bulk(&mut call.reply, entry);
    }
    Ok(())
}

/// `HKEYS key`
pub fn hkeys(call: &mut Call<'_>) -> Result<(), Error> {
    column(call, 0)
}

/// `HVALS key`
pub fn hvals(call: &mut Call<'_>) -> Result<(), Error> {
    column(call, 1)
}

/// Replies with the fields, or with the values.
fn column(call: &mut Call<'_>, part: usize) -> Result<(), Error> {
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    call.reply.array(hash.map_or(0, HashRef::len));
    for element in hash.into_iter().flat_map(HashRef::iter) {
        bulk(&mut call.reply, element[part]);
    }
    Ok(())
}
