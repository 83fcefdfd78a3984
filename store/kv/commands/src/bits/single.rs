// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One bit: SETBIT, GETBIT.

use freeport_kv_types::bits;
use freeport_kv_types::number::parse_integer;

use super::OFFSET_OUT_OF_RANGE;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `SETBIT key offset bit`. Nothing has changed if the bit is there and was the same.
pub fn setbit(call: &mut Call<'_>) -> Result<(), Error> {
    const NOT_A_BIT: Error = Error::fixed("ERR bit is not an integer or out of range");
    let key = call.arguments[1];
    let (offset, at) = offset(call)?;
    let bit = match call.arguments[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(NOT_A_BIT),
    };
    let length = call.database.string(key)?.map_or(0, <[u8]>::len);
    let old =
        call.database.edit_string(key, at + 1, |bytes| bits::set_within(bytes, offset, bit))?;
    if length <= at || old != bit {
        call.database.changed(key, Class::String, "setbit");
    }
    call.reply.integer(old.into());
    Ok(())
}

/// `GETBIT key offset`.
pub fn getbit(call: &mut Call<'_>) -> Result<(), Error> {
    let (offset, _) = offset(call)?;
    let bytes = call.database.string(call.arguments[1])?.unwrap_or_default();
    call.reply.integer(bits::get(bytes, offset).into());
    Ok(())
}

/// Reads an offset; the index of its byte too.
fn offset(call: &Call<'_>) -> Result<(u64, usize), Error> {
    let offset = parse_integer(call.arguments[2]).and_then(|offset| u64::try_from(offset).ok());
    let offset = offset.ok_or(OFFSET_OUT_OF_RANGE)?;
    let limits = call.database.limits(call.arguments[1]);
    let at = bits::check_offset(limits, offset).map_err(|_| OFFSET_OUT_OF_RANGE)?;
    Ok((offset, at))
}
