// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changing a part of a string: APPEND, SETRANGE.

use freeport_kv_keyspace::Expiry;
use freeport_kv_types::text::{self, TextError};

use crate::arguments::integer;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `APPEND key value`.
pub fn append(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, suffix) = (call.arguments[1], call.arguments[2]);
    let old = call.database.string(key)?;
    let (is_new, start) = (old.is_none(), old.map_or(0, <[u8]>::len));
    let length =
        text::check_size(call.database.limits(key), start, suffix.len()).map_err(Error::of)?;
    if is_new {
        call.database.set_string(key, suffix, Expiry::Never)?;
    } else {
        call.database.edit_string(key, length, |bytes| bytes[start..].copy_from_slice(suffix))?;
    }
    call.database.changed(key, Class::String, "append");
    call.reply.integer(length as i64);
    Ok(())
}

/// `SETRANGE key offset value`.
pub fn setrange(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, value) = (call.arguments[1], call.arguments[3]);
    let offset = usize::try_from(integer(call.arguments[2])?)
        .map_err(|_| Error::of(TextError::OffsetOutOfRange))?;
    let length = call.database.string(key)?.map_or(0, <[u8]>::len);
    if value.is_empty() {
        call.reply.integer(length as i64);
        return Ok(());
    }
    let end =
        text::check_size(call.database.limits(key), offset, value.len()).map_err(Error::of)?;
    call.database.edit_string(key, end, |bytes| bytes[offset..end].copy_from_slice(value))?;
    call.database.changed(key, Class::String, "setrange");
    call.reply.integer(length.max(end) as i64);
    Ok(())
}
