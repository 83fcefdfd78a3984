// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members are read.

use freeport_kv_types::{Set, SetRef};

use crate::call::Call;
use crate::entries::bulk;
use crate::error::Error;

/// `SCARD key`
pub fn scard(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<Set>(call.arguments[1])?;
    call.reply.integer(set.map_or(0, SetRef::len) as i64);
    Ok(())
}

/// `SISMEMBER key member`
pub fn sismember(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<Set>(call.arguments[1])?;
    let is_member = set.is_some_and(|set| set.contains(call.arguments[2]));
    call.reply.integer(i64::from(is_member));
    Ok(())
}

/// `SMISMEMBER key member [member ...]`
pub fn smismember(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<Set>(call.arguments[1])?;
    let members = &call.arguments[2..];
    call.reply.array(members.len());
    for member in members {
        call.reply.integer(i64::from(set.is_some_and(|set| set.contains(*member))));
    }
    Ok(())
}

/// `SMEMBERS key`
pub fn smembers(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<Set>(call.arguments[1])?;
    call.reply.set(set.map_or(0, SetRef::len));
    for member in set.into_iter().flat_map(SetRef::iter) {
        bulk(&mut call.reply, member);
    }
    Ok(())
}
