// SPDX-License-Identifier: Apache-2.0 OR MIT
//! OBJECT and MEMORY: what is known of a value besides its contents.

use freeport_kv_protocol::resp::reply::shared;

use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;
use crate::subcommand::{self, Subcommand};

const OBJECT: &[Subcommand] = &[
    Subcommand { name: "encoding", arity: 3, run: encoding },
    Subcommand { name: "freq", arity: 3, run: frequency },
    Subcommand { name: "idletime", arity: 3, run: idle_time },
    Subcommand { name: "refcount", arity: 3, run: references },
    Subcommand { name: "help", arity: 2, run: object_help },
];

const MEMORY: &[Subcommand] = &[
    Subcommand { name: "usage", arity: -3, run: usage },
    Subcommand { name: "help", arity: 2, run: memory_help },
];

pub(super) fn object(call: &mut Call<'_>) -> Result<(), Error> {
    subcommand::run(call, "object", OBJECT)
}

pub(super) fn memory(call: &mut Call<'_>) -> Result<(), Error> {
    subcommand::run(call, "memory", MEMORY)
}

fn encoding(call: &mut Call<'_>) -> Result<(), Error> {
    match call.database.value(call.arguments[2]) {
        Some(value) => call.reply.bulk(value.encoding().as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

fn frequency(call: &mut Call<'_>) -> Result<(), Error> {
    const NOT_TRACKED: Error = Error::fixed(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    );
    let key = call.arguments[2];
    if !call.database.contains(key) {
        call.reply.null();
        return Ok(());
    }
    let count = call.database.frequency(key).ok_or(NOT_TRACKED)?;
    call.reply.integer(i64::from(count));
    Ok(())
}

/// Times are only kept from the first question on, unless a policy of eviction needs them.
fn idle_time(call: &mut Call<'_>) -> Result<(), Error> {
    const NOT_TRACKED: Error = Error::fixed(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
         switching between policies at runtime LRU and LFU data will take some time to adjust.",
    );
    let key = call.arguments[2];
    if !call.database.contains(key) {
        call.reply.null();
        return Ok(());
    }
    let idle_s = call.database.idle_s(key).ok_or(NOT_TRACKED)?;
    call.reply.integer(idle_s as i64);
    Ok(())
}

/// No value has more than one owner.
fn references(call: &mut Call<'_>) -> Result<(), Error> {
    match call.database.contains(call.arguments[2]) {
        true => call.reply.raw(shared::ONE),
        false => call.reply.null(),
    }
    Ok(())
}

/// MEMORY USAGE key [SAMPLES count]. The memory is counted, so nothing has to be sampled.
fn usage(call: &mut Call<'_>) -> Result<(), Error> {
    for pair in call.arguments[3..].chunks(2) {
        match *pair {
            [word, count] if is(word, "SAMPLES") => {
                if integer(count)? < 0 {
                    return Err(Error::SYNTAX);
                }
            }
            _ => return Err(Error::SYNTAX),
        }
    }
    match call.database.memory_of(call.arguments[2]) {
        Some(bytes) => call.reply.integer(bytes as i64),
        None => call.reply.null(),
    }
    Ok(())
}

fn object_help(call: &mut Call<'_>) -> Result<(), Error> {
    const LINES: &[&str] = &[
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "FREQ <key>",
        "    Return the access frequency index of the <key>. The returned integer is",
        "    proportional to the logarithm of the recent access frequency of the key.",
        "IDLETIME <key>",
        "    Return the idle time of the <key>, that is the approximated number of",
        "    seconds elapsed since the last access to the key.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
    ];
    subcommand::help(&mut call.reply, "OBJECT", LINES);
    Ok(())
}

fn memory_help(call: &mut Call<'_>) -> Result<(), Error> {
    const LINES: &[&str] = &[
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. Nothing is sampled.",
    ];
    subcommand::help(&mut call.reply, "MEMORY", LINES);
    Ok(())
}
