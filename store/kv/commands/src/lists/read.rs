// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements are read and searched.

use std::num::NonZeroI64;

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::list::{ListRef, Search};
use freeport_kv_types::{List, indexes};

use crate::arguments::{integer, integer_in, is, signed_count};
use crate::call::Call;
use crate::entries::{bulk, bulk_or_null};
use crate::error::Error;

/// `LLEN key`
pub fn llen(call: &mut Call<'_>) -> Result<(), Error> {
    let list = call.database.read::<List>(call.arguments[1])?;
    call.reply.integer(list.map_or(0, ListRef::len) as i64);
    Ok(())
}

/// `LRANGE key start stop`
pub fn lrange(call: &mut Call<'_>) -> Result<(), Error> {
    let (start, stop) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    let Some(list) = call.database.read::<List>(call.arguments[1])? else {
        call.reply.raw(shared::EMPTY_ARRAY);
        return Ok(());
    };
    let elements = list.range(indexes::range(list.len(), start, stop));
    call.reply.array(elements.len());
    elements.for_each(|element| bulk(&mut call.reply, element));
    Ok(())
}

/// `LINDEX key index`
///
/// The index is read only if there is such a key, as Redis does.
pub fn lindex(call: &mut Call<'_>) -> Result<(), Error> {
    let element = match call.database.read::<List>(call.arguments[1])? {
        Some(list) => list.get(integer(call.arguments[2])?),
        None => None,
    };
    bulk_or_null(&mut call.reply, element);
    Ok(())
}

/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`
pub fn lpos(call: &mut Call<'_>) -> Result<(), Error> {
    let (search, has_count) = parse_search(&call.arguments[3..])?;
    let mut found = vec![];
    if let Some(list) = call.database.read::<List>(call.arguments[1])? {
        list.positions(call.arguments[2], search, |index| found.push(index as i64));
    }
    match found.first() {
        _ if has_count => {
            call.reply.array(found.len());
            found.into_iter().for_each(|index| call.reply.integer(index));
        }
        Some(index) => call.reply.integer(*index),
        None => call.reply.null(),
    }
    Ok(())
}

/// The search that the words describe, and whether there is a `COUNT` among them.
fn parse_search(words: &[&[u8]]) -> Result<(Search, bool), Error> {
    const NO_RANK: Error = Error::fixed(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
         or use negative to start from the end of the list",
    );
    const NO_COUNT: Error = Error::fixed("ERR COUNT can't be negative");
    const NO_LENGTH: Error = Error::fixed("ERR MAXLEN can't be negative");
    /// 0 means all.
    const fn bounded(number: i64) -> Option<usize> {
        if number == 0 { None } else { Some(number as usize) }
    }

    const FIRST: NonZeroI64 = NonZeroI64::new(1).expect("1 is not 0");

    let mut search = Search { rank: FIRST, count: Some(1), max_compared: None };
    let mut has_count = false;
    for words in words.chunks(2) {
        match *words {
            [word, rank] if is(word, "rank") => {
                // Redis 7.0 also takes the least integer, and then counts nothing.
                search.rank = NonZeroI64::new(signed_count(rank)?).ok_or(NO_RANK)?;
            }
            [word, count] if is(word, "count") => {
                search.count = bounded(integer_in(count, 0..=i64::MAX, NO_COUNT)?);
                has_count = true;
            }
            [word, length] if is(word, "maxlen") => {
                search.max_compared = bounded(integer_in(length, 0..=i64::MAX, NO_LENGTH)?);
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    Ok((search, has_count))
}
