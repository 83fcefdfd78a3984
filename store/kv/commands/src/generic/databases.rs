// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.

use freeport_kv_protocol::resp::reply::shared;

use crate::arguments::{integer, is};
use crate::call::Call;
use crate::database::Database;
use crate::error::Error;

const NO_SUCH_DATABASE: Error = Error::fixed("ERR DB index is out of range");

/// The number of a database, as COPY and MOVE are given it.
///
/// # Errors
/// It is no number, or that of no database.
pub(super) fn number_of_database(argument: &[u8], database: &Database<'_>) -> Result<u16, Error> {
    let number = integer(argument)?;
    if i32::try_from(number).is_err() {
        return Err(Error::fixed(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    existing(number, database)
}

fn existing(number: i64, database: &Database<'_>) -> Result<u16, Error> {
    let number = u16::try_from(number).map_err(|_| NO_SUCH_DATABASE)?;
    database.has_database(number).then_some(number).ok_or(NO_SUCH_DATABASE)
}

pub(super) fn size(call: &mut Call<'_>) -> Result<(), Error> {
    let number = call.database.number();
    let databases = call.database.store.shards().filter_map(|shard| shard.database(number));
    let keys: usize = databases.map(|database| database.len()).sum();
    call.reply.integer(keys as i64);
    Ok(())
}

/// FLUSHDB [ASYNC|SYNC]. Memory returns at once either way.
pub(super) fn flush_one(call: &mut Call<'_>) -> Result<(), Error> {
    check_flush(call.arguments)?;
    let number = call.database.number();
    call.database.flush(number..number + 1);
    call.reply.raw(shared::OK);
    Ok(())
}

/// FLUSHALL [ASYNC|SYNC].
pub(super) fn flush_all(call: &mut Call<'_>) -> Result<(), Error> {
    check_flush(call.arguments)?;
    call.database.flush(0..u16::MAX);
    call.reply.raw(shared::OK);
    Ok(())
}

fn check_flush(arguments: &[&[u8]]) -> Result<(), Error> {
    match arguments {
        [_] => Ok(()),
        [_, word] if is(word, "SYNC") || is(word, "ASYNC") => Ok(()),
        _ => Err(Error::SYNTAX),
    }
}

pub(super) fn swap(call: &mut Call<'_>) -> Result<(), Error> {
    let number = |at: usize, error: Error| match integer(call.arguments[at]) {
        Ok(number) if i32::try_from(number).is_ok() => Ok(number),
        _ => Err(error),
    };
    let one = number(1, Error::fixed("ERR invalid first DB index"))?;
    let other = number(2, Error::fixed("ERR invalid second DB index"))?;
    let one = existing(one, &call.database)?;
    let other = existing(other, &call.database)?;
    call.database.swap(one, other);
    call.reply.raw(shared::OK);
    Ok(())
}
