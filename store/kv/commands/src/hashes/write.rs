// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields are set and removed.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::Hash;

use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `HSET key field value [field value ...]`
pub fn hset(call: &mut Call<'_>) -> Result<(), Error> {
    let new = set(call, "hset")?;
    call.reply.integer(new as i64);
    Ok(())
}

/// `HMSET key field value [field value ...]`
pub fn hmset(call: &mut Call<'_>) -> Result<(), Error> {
    set(call, "hmset")?;
    call.reply.raw(shared::OK);
    Ok(())
}

/// Sets fields for a command of this name; returns how many are new.
fn set(call: &mut Call<'_>, name: &str) -> Result<usize, Error> {
    let (key, pairs) = (call.arguments[1], &call.arguments[2..]);
    if !pairs.len().is_multiple_of(2) {
        return Err(Error::arity(name));
    }
    let new = call.database.change::<Hash, _>(key, |hash, limits| {
        pairs.chunks_exact(2).filter(|pair| hash.set(limits, pair[0], pair[1])).count()
    })?;
    call.database.changed(key, Class::Hash, "hset");
    Ok(new)
}

/// `HSETNX key field value`
pub fn hsetnx(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, field, value) = (call.arguments[1], call.arguments[2], call.arguments[3]);
    let is_new = call
        .database
        .change::<Hash, _>(key, |hash, limits| hash.set_absent(limits, field, value))?;
    if is_new {
        call.database.changed(key, Class::Hash, "hset");
    }
    call.reply.integer(i64::from(is_new));
    Ok(())
}

/// `HDEL key field [field ...]`
pub fn hdel(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, fields) = (call.arguments[1], &call.arguments[2..]);
    let removed = call.database.shrink::<Hash, _>(key, |hash, _| {
        fields.iter().filter(|field| hash.remove(field)).count()
    })?;
    if removed > 0 {
        call.database.changed_or_removed(key, Class::Hash, "hdel");
    }
    call.reply.integer(removed as i64);
    Ok(())
}
