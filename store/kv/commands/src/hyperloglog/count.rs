// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PFADD, PFCOUNT, PFMERGE.

use freeport_kv_keyspace::Expiry;
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::hyperloglog;

use crate::call::Call;
use crate::database::Database;
use crate::effects::Class;
use crate::error::Error;

/// `PFADD key [element ...]`.
pub fn pfadd(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, elements) = (call.arguments[1], &call.arguments[2..]);
    let old = call.database.string(key)?;
    let is_dense = match old {
        Some(old) => hyperloglog::is_dense(old).map_err(Error::of)?,
        None => false,
    };
    let is_changed = match is_dense {
        true => add_dense(call, key, elements)?,
        false => add_sparse(call, key, elements)?,
    };
    if is_changed {
        call.database.changed(key, Class::String, "pfadd");
    }
    call.reply.integer(is_changed.into());
    Ok(())
}

/// Adds elements to a string where it lies.
fn add_dense(call: &mut Call<'_>, key: &[u8], elements: &[&[u8]]) -> Result<bool, Error> {
    let add = |bytes: &mut [u8]| {
        let mut is_changed = false;
        for element in elements {
            is_changed |= hyperloglog::add_dense(bytes, element)?;
        }
        Ok(is_changed)
    };
    let added: Result<bool, hyperloglog::InvalidString> = call.database.edit_string(key, 0, add)?;
    added.map_err(Error::of)
}

/// Adds elements to a string that does not exist, or has runs of registers and is therefore short.
fn add_sparse(call: &mut Call<'_>, key: &[u8], elements: &[&[u8]]) -> Result<bool, Error> {
    let old = call.database.string(key)?;
    let mut is_changed = old.is_none();
    let mut bytes = old.map_or_else(hyperloglog::new, <[u8]>::to_vec);
    let limits = call.database.limits(key);
    for element in elements {
        is_changed |= hyperloglog::add(limits, &mut bytes, element).map_err(Error::of)?;
    }
    if is_changed {
        hyperloglog::mark_outdated(&mut bytes).map_err(Error::of)?;
        call.database.set_string(key, &bytes, Expiry::Keep)?;
    }
    Ok(is_changed)
}

/// `PFCOUNT key [key ...]`. The count of one key is stored in its string, unless writes are paused
/// or refused. That has no event.
pub fn pfcount(call: &mut Call<'_>) -> Result<(), Error> {
    let count = match call.arguments[1..] {
        [key] => count_one(call, key)?,
        ref keys => {
            let strings = strings_of(&call.database, keys)?;
            hyperloglog::count_union(&strings).map_err(Error::of)?
        }
    };
    call.reply.integer(count as i64);
    Ok(())
}

fn count_one(call: &mut Call<'_>, key: &[u8]) -> Result<u64, Error> {
    let Some(bytes) = call.database.string(key)? else { return Ok(0) };
    let count = hyperloglog::count(bytes).map_err(Error::of)?;
    let may_store = call.now_ms() >= call.database.effects.paused_until_ms;
    if may_store && hyperloglog::stored_count(bytes).is_none() {
        call.database
            .edit_string(key, 0, |bytes| hyperloglog::store_count(bytes, count))?
            .map_err(Error::of)?;
        call.database.touch_watchers(key);
    }
    Ok(count)
}

/// `PFMERGE target [key ...]`.
pub fn pfmerge(call: &mut Call<'_>) -> Result<(), Error> {
    let target = call.arguments[1];
    let strings = strings_of(&call.database, &call.arguments[1..])?;
    let mut bytes = call.database.string(target)?.map_or_else(hyperloglog::new, <[u8]>::to_vec);
    hyperloglog::merge(call.database.limits(target), &mut bytes, &strings).map_err(Error::of)?;
    call.database.set_string(target, &bytes, Expiry::Keep)?;
    call.database.changed(target, Class::String, "pfadd");
    call.reply.raw(shared::OK);
    Ok(())
}

/// The strings of the keys that exist, each of them a HyperLogLog.
///
/// # Errors
/// That of the first key that has another value. The registers of a string are looked at before
/// the next key is.
fn strings_of<'a>(database: &'a Database<'_>, keys: &[&[u8]]) -> Result<Vec<&'a [u8]>, Error> {
    let mut strings = Vec::with_capacity(keys.len());
    for key in keys {
        let string = match database.string(key) {
            Ok(None) => continue,
            Ok(Some(bytes)) => hyperloglog::is_dense(bytes).map(|_| bytes).map_err(Error::of),
            Err(error) => Err(error),
        };
        match string {
            Ok(bytes) => strings.push(bytes),
            Err(error) => {
                hyperloglog::count_union(&strings).map_err(Error::of)?;
                return Err(error);
            }
        }
    }
    Ok(strings)
}
