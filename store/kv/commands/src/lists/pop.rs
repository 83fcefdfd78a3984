// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements are removed at an end. They are written into the reply from where they lie, and then
//! removed.

use freeport_kv_keyspace::Kind;
use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::list::End;
use freeport_kv_types::{Limits, List};

use super::{end, pop_event};
use crate::arguments::{count, deadline_ms, integer_in, is};
use crate::call::Call;
use crate::effects::{Block, Class};
use crate::entries::bulk;
use crate::error::Error;

/// `LPOP key [count]`
pub fn lpop(call: &mut Call<'_>) -> Result<(), Error> {
    pop(call, End::Front, "lpop")
}

/// `RPOP key [count]`
pub fn rpop(call: &mut Call<'_>) -> Result<(), Error> {
    pop(call, End::Back, "rpop")
}

fn pop(call: &mut Call<'_>, end: End, name: &str) -> Result<(), Error> {
    let key = call.arguments[1];
    let number = match call.arguments[2..] {
        [] => None,
        [number] => Some(count(number)? as usize),
        _ => return Err(Error::arity(name)),
    };
    let reply = &mut call.reply;
    let popped = call.database.shrink::<List, _>(key, |list, limits| match number {
        None if list.is_empty() => {
            reply.null();
            0
        }
        Some(_) if list.is_empty() => {
            reply.null_array();
            0
        }
        None => take(reply, (list, limits), end, 1),
        Some(number) => {
            reply.array(number.min(list.len()));
            take(reply, (list, limits), end, number)
        }
    })?;
    if popped > 0 {
        call.database.changed_or_removed(key, Class::List, pop_event(end));
    }
    Ok(())
}

/// `LMPOP numkeys key [key ...] LEFT | RIGHT [COUNT count]`
pub fn lmpop(call: &mut Call<'_>) -> Result<(), Error> {
    let (keys, end, number) = parse_many(&call.arguments[1..])?;
    if !pop_first(call, keys, end, Some(number))? {
        call.reply.null_array();
    }
    Ok(())
}

/// `BLMPOP timeout numkeys key [key ...] LEFT | RIGHT [COUNT count]`
pub fn blmpop(call: &mut Call<'_>) -> Result<(), Error> {
    let (keys, end, number) = parse_many(&call.arguments[2..])?;
    let deadline_ms = deadline_ms(call.arguments[1], call.now_ms())?;
    if !pop_first(call, keys, end, Some(number))? {
        call.block(wait((3..3 + keys.len()).collect(), deadline_ms));
    }
    Ok(())
}

/// `BLPOP key [key ...] timeout`
pub fn blpop(call: &mut Call<'_>) -> Result<(), Error> {
    pop_or_wait(call, End::Front)
}

/// `BRPOP key [key ...] timeout`
pub fn brpop(call: &mut Call<'_>) -> Result<(), Error> {
    pop_or_wait(call, End::Back)
}

fn pop_or_wait(call: &mut Call<'_>, end: End) -> Result<(), Error> {
    let last = call.arguments.len() - 1;
    let deadline_ms = deadline_ms(call.arguments[last], call.now_ms())?;
    if !pop_first(call, &call.arguments[1..last], end, None)? {
        call.block(wait((1..last).collect(), deadline_ms));
    }
    Ok(())
}

fn wait(keys: Vec<usize>, deadline_ms: Option<u64>) -> Block {
    Block {
        keys,
        kind: Kind::List,
        wakes_on_removal: false,
        deadline_ms,
        is_null_string: false,
        arguments: None,
    }
}

/// Keys, end and number of elements, from the number of keys on.
fn parse_many<'a>(words: &'a [&'a [u8]]) -> Result<(&'a [&'a [u8]], End, usize), Error> {
    const NO_KEYS: Error = Error::fixed("ERR numkeys should be greater than 0");
    const NO_COUNT: Error = Error::fixed("ERR count should be greater than 0");

    let keys = integer_in(words[0], 1..=i64::MAX, NO_KEYS)? as usize;
    let rest = &words[1..];
    if keys >= rest.len() {
        return Err(Error::SYNTAX);
    }
    let (keys, words) = rest.split_at(keys);
    let end = end(words[0])?;
    let number = match words[1..] {
        [] => 1,
        [word, number] if is(word, "count") => integer_in(number, 1..=i64::MAX, NO_COUNT)?,
        // A second count is one word too many, but only after the first was read.
        [word, number, ..] if is(word, "count") => {
            integer_in(number, 1..=i64::MAX, NO_COUNT)?;
            return Err(Error::SYNTAX);
        }
        _ => return Err(Error::SYNTAX),
    };
    Ok((keys, end, number as usize))
}

/// Pops from the first of the lists that there are, and replies with its key and with one element,
/// or an array of up to `number`. False: there is no list, and nothing was written.
fn pop_first(
    call: &mut Call<'_>,
    keys: &[&[u8]],
    end: End,
    number: Option<usize>,
) -> Result<bool, Error> {
    for key in keys {
        let Some(list) = call.database.read::<List>(key)? else { continue };
        let reply = &mut call.reply;
        reply.array(2);
        reply.bulk(key);
        if let Some(number) = number {
            reply.array(number.min(list.len()));
        }
        call.database.shrink::<List, _>(key, |list, limits| {
            take(reply, (list, limits), end, number.unwrap_or(1));
        })?;
        call.database.changed_or_removed(key, Class::List, pop_event(end));
        return Ok(true);
    }
    Ok(false)
}

/// Writes up to `number` elements from an end on, and removes them. Returns how many they are.
fn take(
    reply: &mut Writer<'_>,
    (list, limits): (&mut List, &Limits),
    end: End,
    number: usize,
) -> usize {
    let len = list.len();
    let number = number.min(len);
    let range = match end {
        End::Front => 0..number,
        End::Back => len - number..len,
    };
    let elements = list.view().range(range.clone());
    match end {
        End::Front => elements.for_each(|element| bulk(reply, element)),
        End::Back => elements.rev().for_each(|element| bulk(reply, element)),
    }
    list.remove_range(limits, range)
}
