// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `DEBUG RELOAD` and `DEBUG LOADAOF`: all values are written and read again, where they lie. A
//! server with a log reads the log for `LOADAOF`.

use freeport_kv_protocol::resp::reply::shared;

use crate::arguments::is;
use crate::call::Call;
use crate::error::Error;

/// `DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE]`. Nothing is removed, so the options make no
/// difference; but without `MERGE` Redis fails for keys that `NOFLUSH` leaves in place.
pub(super) fn reload(call: &mut Call<'_>, options: &[&[u8]]) -> Result<(), Error> {
    const UNKNOWN: Error =
        Error::fixed("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    const NOT_LOADED: Error =
        Error::fixed("ERR Error trying to load the RDB dump, check server logs.");
    let is_known = |word: &[u8]| is(word, "MERGE") || is(word, "NOFLUSH") || is(word, "NOSAVE");
    if !options.iter().all(|word| is_known(word)) {
        return Err(UNKNOWN);
    }
    let has = |name| options.iter().any(|word| is(word, name));
    if has("NOFLUSH") && !has("MERGE") {
        return Err(NOT_LOADED);
    }
    reload_all(call)
}

/// All databases of all shards.
pub(super) fn reload_all(call: &mut Call<'_>) -> Result<(), Error> {
    let now_ms = call.now_ms();
    for shard in call.database.store.shards_mut() {
        for number in 0..shard.options().databases {
            if let Some(keyspace) = shard.database_mut(number) {
                keyspace.reload(now_ms).map_err(Error::of)?;
            }
        }
    }
    call.reply.raw(shared::OK);
    Ok(())
}
