// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DEBUG, as far as test suites of clients use it. SLEEP belongs to the server.

use freeport_kv_keyspace::Expiry;
use freeport_kv_protocol::resp::Version;
use freeport_kv_protocol::resp::reply::shared;

use super::digest::Digest;
use super::payload::serialized_bytes;
use super::reload::{reload, reload_all};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;
use crate::subcommand::{help, shown};

#[expect(clippy::approx_constant, reason = "the number that Redis replies")]
const DOUBLE: f64 = 3.141;

pub(super) fn debug(call: &mut Call<'_>) -> Result<(), Error> {
    match *call.arguments {
        [_, word] if is(word, "HELP") => show_help(call),
        [_, word, key] if is(word, "OBJECT") => object(call, key),
        [_, word, text] if is(word, "ERROR") => Err(Error::new(String::from_utf8_lossy(text))),
        [_, word, kind] if is(word, "PROTOCOL") => protocol(call, kind),
        [_, word, ref options @ ..] if is(word, "RELOAD") => reload(call, options),
        [_, word] if is(word, "LOADAOF") => reload_all(call),
        [_, word] if is(word, "DIGEST") => digest_all(call),
        [_, word, ref keys @ ..] if is(word, "DIGEST-VALUE") => digest_values(call, keys),
        [_, word, number] if is(word, "SET-ACTIVE-EXPIRE") => set_active_expire(call, number),
        // Every element that is long has a sequence of its own, so there is nothing to set.
        [_, word, _] if is(word, "QUICKLIST-PACKED-THRESHOLD") => {
            call.reply.raw(shared::OK);
            Ok(())
        }
        [_, word, ref options @ ..] if is(word, "POPULATE") && matches!(options.len(), 1..=3) => {
            populate(call, options)
        }
        _ => Err(Error::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{}'. Try DEBUG HELP.",
            shown(call.arguments[1])
        ))),
    }
}

fn object(call: &mut Call<'_>, key: &[u8]) -> Result<(), Error> {
    let idle_s = call.database.keyspace(key).and_then(|keys| keys.idle_s(key, call.now_ms()));
    // Also after its time, while it is there.
    let value = call.database.keyspace(key).and_then(|keys| keys.value(key, 0));
    let value = value.ok_or(Error::NO_SUCH_KEY)?;
    // Values move: the address is always 0.
    let text = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:{}",
        value.encoding(),
        serialized_bytes(value),
        idle_s.unwrap_or(0)
    );
    call.reply.status(&text);
    Ok(())
}

/// DEBUG DIGEST: of all keys in all databases.
fn digest_all(call: &mut Call<'_>) -> Result<(), Error> {
    let mut digest = Digest::default();
    for shard in call.database.store.shards() {
        for number in 0..shard.options().databases {
            if let Some(keyspace) = shard.database(number) {
                digest.add_database(number, keyspace, call.database.now_ms());
            }
        }
    }
    call.reply.status(&digest.to_string());
    Ok(())
}

fn digest_values(call: &mut Call<'_>, keys: &[&[u8]]) -> Result<(), Error> {
    call.reply.array(keys.len());
    for key in keys {
        let keyspace = call.database.keyspace(key);
        let digest = keyspace.map(|keyspace| Digest::of_key(keyspace, key, call.now_ms()));
        call.reply.status(&digest.unwrap_or_default().to_string());
    }
    Ok(())
}

/// DEBUG SET-ACTIVE-EXPIRE 0|1: whether keys are searched for whose time has passed.
fn set_active_expire(call: &mut Call<'_>, number: &[u8]) -> Result<(), Error> {
    let expires = integer(number).is_ok_and(|number| number != 0);
    call.database.store.shards_mut().for_each(|shard| shard.set_expires(expires));
    call.reply.raw(shared::OK);
    Ok(())
}

/// `DEBUG POPULATE count [prefix] [bytes]`: makes keys with numbers, except those that exist.
fn populate(call: &mut Call<'_>, options: &[&[u8]]) -> Result<(), Error> {
    const NOT_POSITIVE: Error = Error::fixed("ERR value is out of range, must be positive");
    const TOO_LONG: Error =
        Error::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    let positive = |argument: &[u8]| {
        let number = integer(argument).ok().and_then(|number| u64::try_from(number).ok());
        number.ok_or(NOT_POSITIVE)
    };
    let count = positive(options[0])?;
    let prefix = options.get(1).copied().unwrap_or(b"key");
    let bytes = options.get(2).map_or(Ok(0), |bytes| positive(bytes))?;
    let bytes = usize::try_from(bytes).map_err(|_| TOO_LONG)?;
    if bytes > call.database.limits(prefix).text_bytes {
        return Err(TOO_LONG);
    }
    for number in 0..count {
        let key = [prefix, format!(":{number}").as_bytes()].concat();
        if call.database.contains(&key) {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if bytes > 0 {
            value.resize(bytes, 0);
        }
        call.database.set_string(&key, &value, Expiry::Never)?;
        call.database.touch_watchers(&key);
    }
    call.reply.raw(shared::OK);
    Ok(())
}

/// DEBUG PROTOCOL type: a reply of each type of the protocol.
fn protocol(call: &mut Call<'_>, kind: &[u8]) -> Result<(), Error> {
    const UNKNOWN: Error = Error::fixed(
        "ERR Wrong protocol type name. Please use one of the following: \
         string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
    );
    let kind = str::from_utf8(kind).unwrap_or_default().to_ascii_lowercase();
    let reply = &mut call.reply;
    match kind.as_str() {
        "string" => reply.bulk(b"Hello World"),
        "integer" => reply.integer(12_345),
        "double" => reply.double(DOUBLE),
        "null" => reply.null(),
        "array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        "set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        "map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        "attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        "push" => {
            if reply.version() == Version::Two {
                return Err(Error::fixed("ERR RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        "true" => reply.boolean(true),
        "false" => reply.boolean(false),
        "verbatim" => reply.verbatim(*b"txt", b"This is a verbatim\nstring"),
        "bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => return Err(UNKNOWN),
    }
    Ok(())
}

fn show_help(call: &mut Call<'_>) -> Result<(), Error> {
    const LINES: &[&str] = &[
        "DIGEST",
        "    Output a hex signature representing the current DB content.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Output a hex signature of the values of all the specified keys.",
        "ERROR <string>",
        "    Return an error with <string> as message.",
        "LOADAOF",
        "    Write all values and read them again.",
        "OBJECT <key>",
        "    Show the encoding of the value of <key>, and its bytes when it is serialized.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Create <count> string keys named key:<num>, or <prefix>:<num>, with values of",
        "    <size> bytes.",
        "PROTOCOL <type>",
        "    Reply with a value of the type: string, integer, double, bignum, null, array,",
        "    set, map, attrib, push, verbatim, true, false.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Accepted without an effect.",
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Write all values and read them again.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Whether keys are searched for whose time has passed.",
    ];
    help(&mut call.reply, "DEBUG", LINES);
    Ok(())
}
