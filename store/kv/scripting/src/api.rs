// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table `redis` of scripts.

use crate::caller::LogLevel;
use crate::from_reply::{error, field, from_reply};
use crate::hash::hash;
use crate::native::{Arguments, Failure, Outcome, function, set};
use crate::number::{EXACT_DIGITS, general};
use crate::session::Session;
use crate::settings::{Purpose, Settings};
use freeport_kv_protocol::resp::Version;
use mlua::{Lua, LuaString, MultiValue, Table, Value};
use std::rc::Rc;

const NO_COMMAND: &str = "Please specify at least one argument for this redis lib call";
const BAD_ARGUMENT: &str = "Lua redis lib command arguments must be strings or integers";
/// Bits of the constants `REPL_...`.
const REPLICATION: [(&str, i64); 5] =
    [("NONE", 0), ("AOF", 1), ("SLAVE", 2), ("REPLICA", 2), ("ALL", 3)];
const LEVELS: [&str; 4] = ["DEBUG", "VERBOSE", "NOTICE", "WARNING"];

/// The table with which scripts and functions run.
pub(crate) fn table(
    lua: &Lua,
    session: &Rc<Session>,
    settings: &Settings,
    purpose: Purpose,
) -> mlua::Result<Table> {
    let table = common(lua, session, settings)?;
    add_commands(lua, &table, session)?;
    add_replies(lua, &table)?;
    add_replication(lua, &table)?;
    let shared = session.clone();
    set(lua, &table, "setresp", move |arguments| {
        if arguments.values().len() != 1 {
            return Err(raised(arguments.lua, "redis.setresp() requires one argument."));
        }
        shared.version.set(match arguments.any_integer(1) {
            2 => Version::Two,
            3 => Version::Three,
            _ => return Err(raised(arguments.lua, "RESP version must be 2 or 3.")),
        });
        Ok(())
    })?;
    if purpose == Purpose::Scripts {
        set(lua, &table, "replicate_commands", |_| Ok(true))?;
        set(lua, &table, "breakpoint", |_| Ok(false))?;
        set(lua, &table, "debug", |_| Ok(()))?;
    }
    Ok(table)
}

/// Fields that are there also while a library is loaded: the log, and the version.
pub(crate) fn common(lua: &Lua, session: &Rc<Session>, settings: &Settings) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (number, name) in LEVELS.iter().enumerate() {
        table.raw_set(format!("LOG_{name}"), number)?;
    }
    let [major, minor, patch] = settings.redis_version.map(u32::from);
    table.raw_set("REDIS_VERSION", format!("{major}.{minor}.{patch}"))?;
    table.raw_set("REDIS_VERSION_NUM", major << 16 | minor << 8 | patch)?;
    let session = session.clone();
    set(lua, &table, "log", move |arguments| log(arguments, &session))?;
    Ok(table)
}

/// An error as a table, which is raised.
pub(crate) fn raised(lua: &Lua, text: &str) -> Failure {
    match field(lua, "err", format!("ERR {text}").as_bytes()) {
        Ok(table) => Failure::Value(Value::Table(table)),
        Err(error) => Failure::State(error),
    }
}

fn log(arguments: &Arguments, session: &Session) -> Outcome<()> {
    let lua = arguments.lua;
    let (level, texts) = match arguments.values() {
        [] | [_] => return Err(raised(lua, "redis.log() requires two arguments or more.")),
        [level, texts @ ..] => (level, texts),
    };
    let Some(level) = lua.coerce_number(level.clone())? else {
        return Err(raised(lua, "First argument must be a number (log level)."));
    };
    let Some(level) = LogLevel::from_number(level) else {
        return Err(raised(lua, "Invalid debug level."));
    };
    let texts = texts.iter().filter_map(|text| lua.coerce_string(text.clone()).ok().flatten());
    let texts: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).collect();
    session.with_caller(|caller| caller.log(level, &texts.join(&b' ')));
    Ok(())
}

fn add_commands(lua: &Lua, table: &Table, session: &Rc<Session>) -> mlua::Result<()> {
    let shared = session.clone();
    set(lua, table, "call", move |arguments| {
        let result = call(arguments, &shared)?;
        match &result {
            Value::Table(table) if !table.raw_get::<Value>("err")?.is_nil() => {
                Err(Failure::Value(result))
            }
            _ => Ok(result),
        }
    })?;
    let shared = session.clone();
    set(lua, table, "pcall", move |arguments| call(arguments, &shared))?;
    let shared = session.clone();
    set(lua, table, "acl_check_cmd", move |arguments| {
        let texts = command(arguments).map_err(|text| raised(arguments.lua, text))?;
        let allowed = with_bytes(&texts, |texts| {
            shared.with_caller(|caller| caller.is_allowed(texts)).flatten()
        });
        let unknown = "Invalid command passed to redis.acl_check_cmd()";
        allowed.ok_or_else(|| raised(arguments.lua, unknown))
    })
}

/// Runs a command. Its error is a result.
fn call(arguments: &Arguments, session: &Session) -> Outcome<Value> {
    let lua = arguments.lua;
    let texts = match command(arguments) {
        Ok(texts) => texts,
        Err(text) => return Ok(Value::Table(field(lua, "err", format!("ERR {text}").as_bytes())?)),
    };
    let (version, mut reply) = (session.version.get(), vec![]);
    let called = with_bytes(&texts, |texts| {
        session.with_caller(|caller| caller.call(texts, version, &mut reply))
    });
    match called {
        Some(()) => Ok(from_reply(lua, &reply, version)?),
        None => Ok(error(lua, b"ERR redis.call can only be called inside a script invocation")?),
    }
}

/// An argument of a command.
enum Text {
    Given(LuaString),
    Number(String),
}

/// Numbers keep all their digits, unlike in Lua.
fn command(arguments: &Arguments) -> Result<Vec<Text>, &'static str> {
    if arguments.values().is_empty() {
        return Err(NO_COMMAND);
    }
    let text = |value: &Value| match value {
        Value::String(text) => Ok(Text::Given(text.clone())),
        Value::Integer(number) if number.unsigned_abs() < 1 << 53 => {
            Ok(Text::Number(number.to_string()))
        }
        Value::Integer(number) => Ok(Text::Number(general(*number as f64, EXACT_DIGITS))),
        Value::Number(number) => Ok(Text::Number(general(*number, EXACT_DIGITS))),
        _ => Err(BAD_ARGUMENT),
    };
    arguments.values().iter().map(text).collect()
}

fn with_bytes<R>(texts: &[Text], body: impl FnOnce(&[&[u8]]) -> R) -> R {
    let guards: Vec<_> = texts
        .iter()
        .map(|text| match text {
            Text::Given(text) => Ok(text.as_bytes()),
            Text::Number(text) => Err(text.as_bytes()),
        })
        .collect();
    let bytes: Vec<&[u8]> = guards
        .iter()
        .map(|guard| match guard {
            Ok(bytes) => &**bytes,
            Err(bytes) => *bytes,
        })
        .collect();
    body(&bytes)
}

fn add_replies(lua: &Lua, table: &Table) -> mlua::Result<()> {
    set(lua, table, "error_reply", |arguments| reply(arguments, "err", error_text))?;
    set(lua, table, "status_reply", |arguments| reply(arguments, "ok", <[u8]>::to_vec))?;
    set(lua, table, "sha1hex", |arguments| {
        let [value] = arguments.values() else {
            return Err(raised(arguments.lua, "wrong number of arguments"));
        };
        let text = arguments.lua.coerce_string(value.clone())?;
        Ok(text.map_or_else(|| hash(b""), |text| hash(&text.as_bytes())))
    })
}

/// A table with one text, or with the error that there is none.
fn reply(arguments: &Arguments, name: &str, text: fn(&[u8]) -> Vec<u8>) -> Outcome<Table> {
    let lua = arguments.lua;
    Ok(match arguments.values() {
        [Value::String(given)] => field(lua, name, &text(&given.as_bytes()))?,
        _ => field(lua, "err", b"ERR wrong number or type of arguments")?,
    })
}

/// An error begins with a code: its first word, or `ERR` if it has only one.
fn error_text(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match text.contains(&b' ') {
        true => crate::to_reply::error_line(text),
        false => [b"ERR ", &crate::to_reply::error_line(text)[..]].concat(),
    }
}

fn add_replication(lua: &Lua, table: &Table) -> mlua::Result<()> {
    for (name, bits) in REPLICATION {
        table.raw_set(format!("REPL_{name}"), bits)?;
    }
    set(lua, table, "set_repl", |arguments| {
        if arguments.values().len() != 1 {
            return Err(raised(arguments.lua, "redis.set_repl() requires two arguments."));
        }
        let flags = arguments.any_integer(1);
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        if flags & !3 == 0 { Ok(()) } else { Err(raised(arguments.lua, text)) }
    })
}

/// The functions of `math` that draw from the session's random numbers.
pub(crate) fn add_random(lua: &Lua, math: &Table, session: &Rc<Session>) -> mlua::Result<()> {
    let shared = session.clone();
    math.raw_set(
        "random",
        function(lua, move |arguments| {
            let mut random = shared.random.get();
            let fraction = random.fraction();
            shared.random.set(random);
            scaled(arguments, fraction)
        })?,
    )?;
    let shared = session.clone();
    set(lua, math, "randomseed", move |arguments| {
        shared.random.set(crate::random::Random::new(arguments.integer(1)? as i32));
        Ok(MultiValue::new())
    })
}

/// A fraction, or the integer that it chooses from a range.
fn scaled(arguments: &Arguments, fraction: f64) -> Outcome<f64> {
    let empty = |number| Err(Failure::argument(number, "interval is empty"));
    // Bounds are C integers of 32 bits.
    let bound = |number| Ok::<_, Failure>(arguments.integer(number)? as i32);
    match arguments.values().len() {
        0 => Ok(fraction),
        1 => match bound(1)? {
            upper if upper < 1 => empty(1),
            upper => Ok((fraction * f64::from(upper)).floor() + 1.0),
        },
        2 => match (bound(1)?, bound(2)?) {
            (lower, upper) if lower > upper => empty(2),
            (lower, upper) => {
                let count = f64::from(upper) - f64::from(lower) + 1.0;
                Ok((fraction * count).floor() + f64::from(lower))
            }
        },
        _ => Err(Failure::text("wrong number of arguments")),
    }
}
