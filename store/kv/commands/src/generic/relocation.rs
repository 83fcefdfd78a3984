// SPDX-License-Identifier: Apache-2.0 OR MIT
//! RENAME, RENAMENX, COPY, MOVE: values get another key, or another database.

use freeport_kv_protocol::resp::reply::shared;

use super::databases::number_of_database;
use crate::arguments::is;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

const SAME: Error = Error::fixed("ERR source and destination objects are the same");

pub(super) fn rename(call: &mut Call<'_>) -> Result<(), Error> {
    let [from, to] = [call.arguments[1], call.arguments[2]];
    if !call.database.contains(from) {
        return Err(Error::NO_SUCH_KEY);
    }
    if from != to {
        rename_to(call, from, to)?;
    }
    call.reply.raw(shared::OK);
    Ok(())
}

pub(super) fn rename_new(call: &mut Call<'_>) -> Result<(), Error> {
    let [from, to] = [call.arguments[1], call.arguments[2]];
    if !call.database.contains(from) {
        return Err(Error::NO_SUCH_KEY);
    }
    let is_free = from != to && !call.database.contains(to);
    if is_free {
        rename_to(call, from, to)?;
    }
    call.reply.integer(i64::from(is_free));
    Ok(())
}

fn rename_to(call: &mut Call<'_>, from: &[u8], to: &[u8]) -> Result<(), Error> {
    call.database.rename(from, to)?;
    call.database.note_new(to);
    call.database.changed(from, Class::Generic, "rename_from");
    call.database.changed(to, Class::Generic, "rename_to");
    Ok(())
}

/// `COPY source destination [DB number] [REPLACE]`.
pub(super) fn copy(call: &mut Call<'_>) -> Result<(), Error> {
    let [from, to] = [call.arguments[1], call.arguments[2]];
    let (mut number, mut replaces) = (call.database.number(), false);
    let mut words = call.arguments[3..].iter();
    while let Some(word) = words.next() {
        if is(word, "REPLACE") {
            replaces = true;
        } else if is(word, "DB")
            && let Some(argument) = words.next()
        {
            number = number_of_database(argument, &call.database)?;
        } else {
            return Err(Error::SYNTAX);
        }
    }
    if number == call.database.number() && from == to {
        return Err(SAME);
    }
    let Some(copy) = call.database.copy(from) else {
        call.reply.raw(shared::ZERO);
        return Ok(());
    };
    let mut target = call.database.other(number);
    let is_free = replaces || !target.contains(to);
    if is_free {
        target.insert(to, copy)?;
        target.note_new(to);
        target.changed(to, Class::Generic, "copy_to");
    }
    call.reply.integer(i64::from(is_free));
    Ok(())
}

pub(super) fn move_key(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    let number = number_of_database(call.arguments[2], &call.database)?;
    if number == call.database.number() {
        return Err(SAME);
    }
    let is_moved = call.database.contains(key)
        && !call.database.other(number).contains(key)
        && call.database.move_to(key, number)?;
    if is_moved {
        call.database.other(number).note_new(key);
        call.database.changed(key, Class::Generic, "move_from");
        call.database.other(number).changed(key, Class::Generic, "move_to");
    }
    call.reply.integer(i64::from(is_moved));
    Ok(())
}
