// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of commands as values of Lua. A type that Lua does not have is a table with one field,
//! whose name says what it is: `ok`, `err`, `map`, `set`, `double`, `big_number` or
//! `verbatim_string`.

use freeport_kv_protocol::resp::{
    Value as Reply, ValueLimits, ValueProgress, ValueReader, Version,
};
use mlua::{Lua, Table, Value};

/// Reads one complete reply, which was written in `version`.
pub(crate) fn from_reply(lua: &Lua, bytes: &[u8], version: Version) -> mlua::Result<Value> {
    // The server wrote the reply, so that only its depth has a limit.
    let unlimited = usize::MAX / 2;
    let limits = ValueLimits {
        line_bytes: unlimited,
        string_bytes: unlimited,
        reply_bytes: unlimited,
        ..ValueLimits::default()
    };
    match ValueReader::new(limits).read(bytes) {
        Ok(ValueProgress::Complete { value, .. }) => convert(lua, value, version),
        Ok(ValueProgress::Incomplete { .. }) | Err(_) => {
            error(lua, b"ERR the command gave no complete reply")
        }
    }
}

/// A table with the text of an error, as of a command that failed.
pub(crate) fn error(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let table = field(lua, "err", text)?;
    table.raw_set("ignore_error_stats_update", true)?;
    Ok(Value::Table(table))
}

/// A table with one text.
pub(crate) fn field(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set(name, lua.create_string(text)?)?;
    Ok(table)
}

/// Depth is limited by that of the reader.
fn convert(lua: &Lua, reply: Reply, version: Version) -> mlua::Result<Value> {
    Ok(match reply {
        // Version 2 has nulls for which scripts have always seen false.
        Reply::Null if version == Version::Two => Value::Boolean(false),
        Reply::Null => Value::Nil,
        Reply::Status(text) => Value::Table(field(lua, "ok", &text)?),
        Reply::Error(text) => error(lua, &text)?,
        Reply::Integer(number) => Value::Number(number as f64),
        Reply::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
        Reply::Boolean(value) => Value::Boolean(value),
        Reply::Double(number) => wrapped(lua, "double", Value::Number(number))?,
        Reply::BigNumber(digits) => Value::Table(field(lua, "big_number", digits.as_bytes())?),
        Reply::Verbatim { format, text } => {
            let inner = field(lua, "string", &text)?;
            inner.raw_set("format", lua.create_string(format)?)?;
            wrapped(lua, "verbatim_string", Value::Table(inner))?
        }
        Reply::Array(replies) | Reply::Push(replies) => {
            let table = lua.create_table_with_capacity(replies.len(), 0)?;
            for (place, reply) in replies.into_iter().enumerate() {
                table.raw_set(place + 1, convert(lua, reply, version)?)?;
            }
            Value::Table(table)
        }
        Reply::Map(entries) => {
            let table = lua.create_table()?;
            for (key, value) in entries {
                set(&table, convert(lua, key, version)?, convert(lua, value, version)?)?;
            }
            wrapped(lua, "map", Value::Table(table))?
        }
        Reply::Set(members) => {
            let table = lua.create_table()?;
            for member in members {
                set(&table, convert(lua, member, version)?, Value::Boolean(true))?;
            }
            wrapped(lua, "set", Value::Table(table))?
        }
        Reply::Attributed { value, .. } => convert(lua, *value, version)?,
    })
}

fn wrapped(lua: &Lua, name: &str, value: Value) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

/// Nil and what is no number cannot be keys, and are left out.
fn set(table: &Table, key: Value, value: Value) -> mlua::Result<()> {
    match key {
        Value::Nil => Ok(()),
        Value::Number(number) if number.is_nan() => Ok(()),
        key => table.raw_set(key, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of the value, and what `path` leads to in it.
    fn read(reply: &str, version: Version, path: &str) -> String {
        let lua = Lua::new();
        let value = from_reply(&lua, reply.as_bytes(), version).expect("memory suffices");
        lua.globals().set("value", value).expect("memory suffices");
        lua.load(format!("return tostring(value{path})")).eval().expect("the path is right")
    }

    #[test]
    fn types_without_a_counterpart_are_fields() {
        for (reply, path, expected) in [
            ("+OK\r\n", ".ok", "OK"),
            ("-ERR no\r\n", ".err", "ERR no"),
            (":12\r\n", "", "12"),
            ("$1\r\na\r\n", "", "a"),
            ("_\r\n", "", "nil"),
            ("#t\r\n", "", "true"),
            (",1.5\r\n", ".double", "1.5"),
            ("(123\r\n", ".big_number", "123"),
            ("=5\r\ntxt:a\r\n", ".verbatim_string.format", "txt"),
            ("=5\r\ntxt:a\r\n", ".verbatim_string.string", "a"),
            ("*2\r\n:1\r\n*1\r\n:2\r\n", "[2][1]", "2"),
            ("%1\r\n+a\r\n:7\r\n", ".map", "table"),
            ("%2\r\n$1\r\na\r\n:7\r\n_\r\n:8\r\n", ".map.a", "7"),
            ("~1\r\n$1\r\na\r\n", ".set.a", "true"),
            ("|1\r\n+a\r\n+b\r\n:3\r\n", "", "3"),
            ("*2\r\n", ".err", "ERR the command gave no complete reply"),
        ] {
            let found = read(reply, Version::Three, path);
            assert_eq!(found.split(':').next(), Some(expected), "{reply}");
        }
        assert_eq!(read("*-1\r\n", Version::Two, ""), "false");
    }
}
