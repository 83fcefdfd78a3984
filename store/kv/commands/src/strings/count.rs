// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters: INCR and its kin.

use freeport_kv_keyspace::Expiry;
use freeport_kv_types::Extended;
use freeport_kv_types::number::Digits;
use freeport_kv_types::text::{self, TextError};

use crate::arguments::integer;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `INCR key`.
pub fn incr(call: &mut Call<'_>) -> Result<(), Error> {
    count(call, |old| text::increment(old, 1))
}

/// `DECR key`.
pub fn decr(call: &mut Call<'_>) -> Result<(), Error> {
    count(call, |old| text::increment(old, -1))
}

/// `INCRBY key increment`.
pub fn incrby(call: &mut Call<'_>) -> Result<(), Error> {
    let increment = integer(call.arguments[2])?;
    count(call, |old| text::increment(old, increment))
}

/// `DECRBY key decrement`.
pub fn decrby(call: &mut Call<'_>) -> Result<(), Error> {
    let decrement = integer(call.arguments[2])?;
    if decrement == i64::MIN {
        return Err(Error::of(TextError::DecrementOverflow));
    }
    count(call, |old| text::decrement(old, decrement))
}

/// Replaces a counter and replies with the new one.
#[inline]
fn count(
    call: &mut Call<'_>,
    change: impl FnOnce(Option<&[u8]>) -> Result<i64, TextError>,
) -> Result<(), Error> {
    let key = call.arguments[1];
    let new = change(call.database.string(key)?).map_err(Error::of)?;
    call.database.set_string(key, Digits::new(new).as_bytes(), Expiry::Keep)?;
    call.database.changed(key, Class::String, "incrby");
    call.reply.integer(new);
    Ok(())
}

/// `INCRBYFLOAT key increment`.
pub fn incrbyfloat(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    let old = call.database.string(key)?;
    let increment = Extended::parse(call.arguments[2]).ok_or(Error::NOT_A_FLOAT)?;
    let new = text::increment_float(old, increment).map_err(Error::of)?;
    call.database.set_string(key, new.as_bytes(), Expiry::Keep)?;
    call.database.changed(key, Class::String, "incrbyfloat");
    call.reply.bulk(new.as_bytes());
    Ok(())
}
