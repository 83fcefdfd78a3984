// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading one string: GET and its kin, STRLEN, GETRANGE.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::text;

use super::options::{Lifetime, Options};
use crate::arguments::integer;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `GET key`.
pub fn get(call: &mut Call<'_>) -> Result<(), Error> {
    reply_with(call, call.arguments[1]).map(drop)
}

/// Replies with a string, or null. Returns whether there is one.
///
/// # Errors
/// The value has another type.
#[inline]
pub fn reply_with(call: &mut Call<'_>, key: &[u8]) -> Result<bool, Error> {
    let value = call.database.string(key)?;
    match value {
        Some(value) => call.reply.bulk(value),
        None => call.reply.null(),
    }
    Ok(value.is_some())
}

/// `GETDEL key`.
pub fn getdel(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    if reply_with(call, key)? {
        call.database.delete(key);
    }
    Ok(())
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]`.
pub fn getex(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    let options = Options::of_getex(&call.arguments[2..])?;
    if !reply_with(call, key)? {
        return Ok(());
    }
    let now_ms = call.now_ms();
    match options.lifetime {
        Lifetime::Unsaid | Lifetime::Keep => {}
        Lifetime::Persist => {
            if call.database.expires_ms(key).flatten().is_some() {
                call.database.set_expiry(key, None)?;
                call.database.changed(key, Class::Generic, "persist");
            }
        }
        Lifetime::Given(unit, argument) => {
            let expires_ms = unit.expires_ms(argument, now_ms, "getex")?;
            if expires_ms <= now_ms {
                call.database.delete(key);
            } else {
                call.database.set_expiry(key, Some(expires_ms))?;
                call.database.changed(key, Class::Generic, "expire");
            }
        }
    }
    Ok(())
}

/// `STRLEN key`.
pub fn strlen(call: &mut Call<'_>) -> Result<(), Error> {
    let length = call.database.string(call.arguments[1])?.map_or(0, <[u8]>::len);
    call.reply.integer(length as i64);
    Ok(())
}

/// `GETRANGE key start end`, or `SUBSTR`.
pub fn getrange(call: &mut Call<'_>) -> Result<(), Error> {
    let (start, end) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    match call.database.string(call.arguments[1])? {
        Some(value) => call.reply.bulk(text::range(value, start, end)),
        None => call.reply.raw(shared::EMPTY_STRING),
    }
    Ok(())
}
