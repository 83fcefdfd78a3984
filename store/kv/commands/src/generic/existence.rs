// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DEL, UNLINK, EXISTS, TOUCH, TYPE.

use crate::call::Call;
use crate::error::Error;

/// DEL and UNLINK: the memory of a removed value returns at once for both.
pub(super) fn del(call: &mut Call<'_>) -> Result<(), Error> {
    let mut removed = 0;
    for key in &call.arguments[1..] {
        removed += i64::from(call.database.delete(key));
    }
    call.reply.integer(removed);
    Ok(())
}

/// EXISTS and TOUCH, which counts as a use of the keys besides.
pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Error> {
    let found = call.arguments[1..].iter().filter(|key| call.database.contains(key)).count();
    call.reply.integer(found as i64);
    Ok(())
}

pub(super) fn kind(call: &mut Call<'_>) -> Result<(), Error> {
    let kind = call.database.kind(call.arguments[1]);
    call.reply.status(kind.map_or("none", |kind| kind.name()));
    Ok(())
}
