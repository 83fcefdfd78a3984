// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers in fields.

use freeport_kv_types::{Extended, Hash};

use crate::arguments::integer;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `HINCRBY key field increment`
pub fn hincrby(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, field) = (call.arguments[1], call.arguments[2]);
    let increment = integer(call.arguments[3])?;
    let sum = call
        .database
        .change::<Hash, _>(key, |hash, limits| hash.increment(limits, field, increment))?
        .map_err(Error::of)?;
    call.database.changed(key, Class::Hash, "hincrby");
    call.reply.integer(sum);
    Ok(())
}

/// `HINCRBYFLOAT key field increment`
pub fn hincrbyfloat(call: &mut Call<'_>) -> Result<(), Error> {
    const INFINITE: Error = Error::fixed("ERR value is NaN or Infinity");
    let (key, field) = (call.arguments[1], call.arguments[2]);
    let increment = Extended::parse(call.arguments[3]).ok_or(Error::NOT_A_FLOAT)?;
    if increment.is_infinite() {
        return Err(INFINITE);
    }
    let sum = call
        .database
        .change::<Hash, _>(key, |hash, limits| hash.increment_float(limits, field, increment))?
        .map_err(Error::of)?;
    call.database.changed(key, Class::Hash, "hincrbyfloat");
    call.reply.bulk(sum.as_bytes());
    Ok(())
}
