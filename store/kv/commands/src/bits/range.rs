// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counting and finding bits in a range: BITCOUNT, BITPOS.
//!
//! As in Redis 7.2, arguments are checked before the key is looked for. Redis 7.0 replied to wrong
//! arguments with 0 or -1 if there was no such key.

use freeport_kv_types::bits::{self, Bounds, Unit};

use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

/// `BITCOUNT key [start end [BYTE | BIT]]`.
pub fn bitcount(call: &mut Call<'_>) -> Result<(), Error> {
    let bounds = match call.arguments[2..] {
        [] => None,
        [start, end, ref unit @ ..] => {
            let (start, end) = (integer(start)?, integer(end)?);
            Some(Bounds { start, end, unit: read_unit(unit)? })
        }
        _ => return Err(Error::SYNTAX),
    };
    let bytes = call.database.string(call.arguments[1])?.unwrap_or_default();
    let count = match bounds {
        None => bits::count(bytes),
        Some(bounds) => bits::count_range(bytes, bounds),
    };
    call.reply.integer(count as i64);
    Ok(())
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`.
pub fn bitpos(call: &mut Call<'_>) -> Result<(), Error> {
    const NOT_A_BIT: Error = Error::fixed("ERR The bit argument must be 1 or 0.");
    let bit = match integer(call.arguments[2])? {
        0 => false,
        1 => true,
        _ => return Err(NOT_A_BIT),
    };
    let (start, end, unit) = match call.arguments[3..] {
        [] => (0, None, Unit::Byte),
        [start] => (integer(start)?, None, Unit::Byte),
        [start, end, ref unit @ ..] => {
            let start = integer(start)?;
            // The unit is looked at before the end is.
            let unit = read_unit(unit)?;
            (start, Some(integer(end)?), unit)
        }
    };
    let position = match call.database.string(call.arguments[1])? {
        Some(bytes) => bits::position(bytes, bit, start, end, unit),
        // A key that does not exist has zeros without end.
        None => (!bit).then_some(0),
    };
    call.reply.integer(position.map_or(-1, |position| position as i64));
    Ok(())
}

fn read_unit(words: &[&[u8]]) -> Result<Unit, Error> {
    match words {
        [] => Ok(Unit::Byte),
        [word] if is(word, "BYTE") => Ok(Unit::Byte),
        [word] if is(word, "BIT") => Ok(Unit::Bit),
        _ => Err(Error::SYNTAX),
    }
}
