// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Taking elements from either end, at once or when there are some.

use freeport_kv_keyspace::Kind;
use freeport_kv_protocol::resp::Version;
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::ZSet;

use crate::arguments::{count, deadline_ms, integer_in, is};
use crate::call::Call;
use crate::effects::{Block, Class};
use crate::entries::bulk;
use crate::error::Error;

const NO_KEYS: Error = Error::fixed("ERR numkeys should be greater than 0");
const NO_COUNT: Error = Error::fixed("ERR count should be greater than 0");

/// The end that elements are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lowest,
    Highest,
}

/// Shape of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Members and scores in turn.
    Flat,
    /// An array of a member and its score for each element.
    Nested,
    /// The key, and then one element in the same array.
    KeyFlat,
    /// The key, and an array as [`Shape::Nested`].
    KeyNested,
}

pub(super) fn zpopmin(call: &mut Call<'_>) -> Result<(), Error> {
    pop_of_one(call, End::Lowest)
}

pub(super) fn zpopmax(call: &mut Call<'_>) -> Result<(), Error> {
    pop_of_one(call, End::Highest)
}

pub(super) fn bzpopmin(call: &mut Call<'_>) -> Result<(), Error> {
    pop_or_wait(call, End::Lowest)
}

pub(super) fn bzpopmax(call: &mut Call<'_>) -> Result<(), Error> {
    pop_or_wait(call, End::Highest)
}

pub(super) fn zmpop(call: &mut Call<'_>) -> Result<(), Error> {
    let request = Request::parse(call.arguments, 1)?;
    let Some(at) = first_of(call, 2..2 + request.keys)? else {
        call.reply.null_array();
        return Ok(());
    };
    pop(call, at, request.end, request.count, Shape::KeyNested)
}

pub(super) fn bzmpop(call: &mut Call<'_>) -> Result<(), Error> {
    let request = Request::parse(call.arguments, 2)?;
    let deadline_ms = deadline_ms(call.arguments[1], call.now_ms())?;
    let keys = 3..3 + request.keys;
    match first_of(call, keys.clone())? {
        Some(at) => pop(call, at, request.end, request.count, Shape::KeyNested),
        None => {
            wait(call, keys.collect(), deadline_ms);
            Ok(())
        }
    }
}

/// `ZPOPMIN` and `ZPOPMAX`.
fn pop_of_one(call: &mut Call<'_>, end: End) -> Result<(), Error> {
    let (wanted, shape) = match call.arguments {
        [_, _] => (1, Shape::Flat),
        [_, _, wanted] => match call.reply.version() {
            Version::Two => (count(wanted)?, Shape::Flat),
            Version::Three => (count(wanted)?, Shape::Nested),
        },
        _ => return Err(Error::SYNTAX),
    };
    pop(call, 1, end, wanted, shape)
}

/// `BZPOPMIN` and `BZPOPMAX`.
fn pop_or_wait(call: &mut Call<'_>, end: End) -> Result<(), Error> {
    let last = call.arguments.len() - 1;
    let deadline_ms = deadline_ms(call.arguments[last], call.now_ms())?;
    match first_of(call, 1..last)? {
        Some(at) => pop(call, at, end, 1, Shape::KeyFlat),
        None => {
            wait(call, (1..last).collect(), deadline_ms);
            Ok(())
        }
    }
}

fn wait(call: &mut Call<'_>, keys: Vec<usize>, deadline_ms: Option<u64>) {
    call.block(Block {
        keys,
        kind: Kind::SortedSet,
        wakes_on_removal: false,
        deadline_ms,
        is_null_string: false,
        arguments: None,
    });
}

/// Position of the first key that has a sorted set. A value of another type before is an error.
fn first_of(
    call: &Call<'_>,
    keys: impl IntoIterator<Item = usize>,
) -> Result<Option<usize>, Error> {
    for at in keys {
        if call.database.read::<ZSet>(call.arguments[at])?.is_some() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Takes up to `wanted` elements from the set of the key at position `at`, and replies with them.
fn pop(call: &mut Call<'_>, at: usize, end: End, wanted: i64, shape: Shape) -> Result<(), Error> {
    let key = call.arguments[at];
    let length = call.database.read::<ZSet>(key)?.map_or(0, |set| set.len());
    let count = usize::try_from(wanted).unwrap_or(0).min(length);
    if count == 0 {
        call.reply.raw(shared::EMPTY_ARRAY);
        return Ok(());
    }
    let ranks = match end {
        End::Lowest => 0..count,
        End::Highest => length - count..length,
    };
    match shape {
        Shape::Flat => call.reply.array(2 * count),
        Shape::Nested => call.reply.array(count),
        Shape::KeyFlat => {
            call.reply.array(2 * count + 1);
            call.reply.bulk(key);
        }
        Shape::KeyNested => {
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.array(count);
        }
    }
    let set = call.database.read::<ZSet>(key)?;
    let mut found = set.into_iter().flat_map(|set| set.range(ranks.clone()));
    let is_nested = matches!(shape, Shape::Nested | Shape::KeyNested);
    while let Some((member, score)) = match end {
        End::Lowest => found.next(),
        End::Highest => found.next_back(),
    } {
        if is_nested {
            call.reply.array(2);
        }
        bulk(&mut call.reply, member);
        call.reply.double(score);
    }
    call.database.shrink(key, |set: &mut ZSet, _| set.remove_ranks(ranks))?;
    let event = if end == End::Lowest { "zpopmin" } else { "zpopmax" };
    call.database.changed_or_removed(key, Class::SortedSet, event);
    Ok(())
}

/// Arguments of `ZMPOP` and `BZMPOP`.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Number of keys, all of which are there.
    keys: usize,
    end: End,
    count: i64,
}

impl Request {
    /// Reads the arguments from the number of keys on.
    fn parse(arguments: &[&[u8]], at: usize) -> Result<Self, Error> {
        let keys = integer_in(arguments[at], 1..=i64::MAX, NO_KEYS)?;
        let rest = &arguments[at + 1..];
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let [end, words @ ..] = rest.get(keys..).unwrap_or_default() else {
            return Err(Error::SYNTAX);
        };
        let end = match *end {
            word if is(word, "min") => End::Lowest,
            word if is(word, "max") => End::Highest,
            _ => return Err(Error::SYNTAX),
        };
        let count = match words {
            [] => 1,
            [word, count, rest @ ..] if is(word, "count") => {
                let count = integer_in(count, 1..=i64::MAX, NO_COUNT)?;
                if !rest.is_empty() {
                    return Err(Error::SYNTAX);
                }
                count
            }
            _ => return Err(Error::SYNTAX),
        };
        Ok(Self { keys, end, count })
    }
}
