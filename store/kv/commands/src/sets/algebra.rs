// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intersections, unions and differences. The sets may lie in different shards, and are read where
//! they lie. A result that is stored replaces a value of any type.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::set::algebra::{difference, intersection, union};
use freeport_kv_types::{Entry, Limits, Set, SetRef};

use crate::arguments::{integer_in, is};
use crate::call::Call;
use crate::database::Database;
use crate::effects::Class;
use crate::entries::bulk;
use crate::error::Error;

/// `SINTER key [key ...]`
pub fn sinter(call: &mut Call<'_>) -> Result<(), Error> {
    let sets = views(&call.database, &call.arguments[1..])?;
    let mut common = vec![];
    intersection(&sets, 0, |member| common.push(member));
    call.reply.set(common.len());
    common.into_iter().for_each(|member| bulk(&mut call.reply, member));
    Ok(())
}

/// `SINTERSTORE destination key [key ...]`
pub fn sinterstore(call: &mut Call<'_>) -> Result<(), Error> {
    store(call, "sinterstore", |sets, limits| {
        let mut common = Set::default();
        intersection(sets, 0, |member: Entry<'_>| {
            common.add(limits, member);
        });
        common
    })
}

/// `SUNION key [key ...]`
pub fn sunion(call: &mut Call<'_>) -> Result<(), Error> {
    write(call, union)
}

/// `SUNIONSTORE destination key [key ...]`
pub fn sunionstore(call: &mut Call<'_>) -> Result<(), Error> {
    store(call, "sunionstore", union)
}

/// `SDIFF key [key ...]`
pub fn sdiff(call: &mut Call<'_>) -> Result<(), Error> {
    write(call, difference)
}

/// `SDIFFSTORE destination key [key ...]`
pub fn sdiffstore(call: &mut Call<'_>) -> Result<(), Error> {
    store(call, "sdiffstore", difference)
}

/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`
pub fn sintercard(call: &mut Call<'_>) -> Result<(), Error> {
    const NO_KEYS: Error = Error::fixed("ERR numkeys should be greater than 0");
    const NEGATIVE: Error = Error::fixed("ERR LIMIT can't be negative");

    let number = integer_in(call.arguments[1], 1..=i64::MAX, NO_KEYS)? as usize;
    let rest = &call.arguments[2..];
    if number > rest.len() {
        return Err(Error::TOO_MANY_KEYS);
    }
    let (keys, words) = rest.split_at(number);
    let mut limit = 0;
    for words in words.chunks(2) {
        match *words {
            [word, number] if is(word, "limit") => {
                limit = integer_in(number, 0..=i64::MAX, NEGATIVE)?
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    let sets = views(&call.database, keys)?;
    let mut common = 0;
    intersection(&sets, limit as usize, |_| common += 1);
    call.reply.integer(common);
    Ok(())
}

/// The sets of keys; one that does not exist is empty. All types are checked.
fn views<'a>(database: &'a Database<'_>, keys: &[&[u8]]) -> Result<Vec<SetRef<'a>>, Error> {
    let view =
        |key: &&[u8]| Ok(database.read::<Set>(key)?.unwrap_or_else(|| SetRef::from_packed(&[])));
    keys.iter().map(view).collect()
}

/// Replies with the set that `combine` makes of those of all keys.
fn write(
    call: &mut Call<'_>,
    combine: impl FnOnce(&[SetRef<'_>], &Limits) -> Set,
) -> Result<(), Error> {
    let keys = &call.arguments[1..];
    let result = combine(&views(&call.database, keys)?, call.database.limits(keys[0]));
    call.reply.set(result.view().len());
    result.view().iter().for_each(|member| bulk(&mut call.reply, member));
    Ok(())
}

/// Stores the set that `combine` makes of those of all keys but the first, and replies with its
/// size.
fn store(
    call: &mut Call<'_>,
    event: &'static str,
    combine: impl FnOnce(&[SetRef<'_>], &Limits) -> Set,
) -> Result<(), Error> {
    let (target, keys) = (call.arguments[1], &call.arguments[2..]);
    let result = combine(&views(&call.database, keys)?, call.database.limits(target));
    let size = result.view().len();
    if size == 0 {
        call.database.delete(target);
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    call.database.store(target, result)?;
    call.database.changed(target, Class::Set, event);
    call.reply.integer(size as i64);
    Ok(())
}
