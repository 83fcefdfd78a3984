// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several strings at once: MGET, MSET, MSETNX.

use freeport_kv_protocol::resp::reply::shared;

use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `MGET key [key ...]`. A value of another type is null.
pub fn mget(call: &mut Call<'_>) -> Result<(), Error> {
    let keys = &call.arguments[1..];
    call.reply.array(keys.len());
    for key in keys {
        match call.database.string(key) {
            Ok(Some(value)) => call.reply.bulk(value),
            Ok(None) | Err(_) => call.reply.null(),
        }
    }
    Ok(())
}

/// `MSET key value [key value ...]`. Stores all pairs or none.
pub fn mset(call: &mut Call<'_>) -> Result<(), Error> {
    let pairs = pairs(call, "mset")?;
    store_all(call, pairs)?;
    call.reply.raw(shared::OK);
    Ok(())
}

/// `MSETNX key value [key value ...]`. Stores all pairs or none.
pub fn msetnx(call: &mut Call<'_>) -> Result<(), Error> {
    let pairs = pairs(call, "msetnx")?;
    if pairs.iter().any(|[key, _]| call.database.contains(key)) {
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    store_all(call, pairs)?;
    call.reply.raw(shared::ONE);
    Ok(())
}

/// Stores all pairs, or none if memory ends.
fn store_all(call: &mut Call<'_>, pairs: &[[&[u8]; 2]]) -> Result<(), Error> {
    call.database.set_strings(pairs)?;
    for [key, _] in pairs {
        call.database.changed(key, Class::String, "set");
    }
    Ok(())
}

fn pairs<'a>(call: &Call<'a>, command: &str) -> Result<&'a [[&'a [u8]; 2]], Error> {
    match call.arguments[1..].as_chunks::<2>() {
        (pairs, []) => Ok(pairs),
        _ => Err(Error::arity(command)),
    }
}
