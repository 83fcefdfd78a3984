// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of a script as a reply. Tables are arrays up to their first nil, or what their field
//! says that they are. A table may contain itself: the depth is limited as Redis limits it, by the
//! slots that a native function of Lua has, and no depth needs the program's stack.

use crate::native::message;
use crate::number::truncate;
use freeport_kv_protocol::resp::{Version, Writer};
use mlua::{Table, Value};
use std::vec;

/// Slots of a native function.
const SLOTS: usize = 8_000;
/// Slots that have to be free for a value.
const NEEDED_SLOTS: usize = 4;
/// Slots in use before the first value.
const FIRST_SLOTS: usize = 2;
/// Maximum bytes of a reply. Tables that contain each other several times can become longer than
/// any memory.
const REPLY_BYTES: usize = 1 << 30;
/// Bytes of a value without its text, for this limit.
const HEADER_BYTES: usize = 16;

/// An aggregate that is being written.
struct Open {
    rest: vec::IntoIter<Value>,
    /// Slots that Redis has in use when it writes one of the values.
    slots: usize,
    /// Values are keys and values in turn. Keys have one more slot in use.
    is_map: bool,
}

impl Open {
    /// The next value, and the slots in use.
    fn next(&mut self) -> Option<(Value, usize)> {
        let is_key = self.is_map && self.rest.len().is_multiple_of(2);
        Some((self.rest.next()?, self.slots + usize::from(is_key)))
    }
}

/// Appends the reply. `script_version` is the version that the script has chosen for itself.
pub(crate) fn to_reply(
    value: Value,
    script_version: Version,
    version: Version,
    reply: &mut Vec<u8>,
) {
    let start = reply.len();
    let mut writer = Writer::new(reply, version);
    if let Err(error) = write(value, script_version, &mut writer) {
        // Memory was short, and the reply is incomplete.
        reply.truncate(start);
        Writer::new(reply, version).error(&format!("ERR {}", message(&error)));
    }
}

fn write(value: Value, script_version: Version, writer: &mut Writer) -> mlua::Result<()> {
    let first = vec![value].into_iter();
    let mut open = vec![Open { rest: first, slots: FIRST_SLOTS, is_map: false }];
    let mut bytes = 0;
    while let Some(last) = open.last_mut() {
        let Some((value, slots)) = last.next() else {
            open.pop();
            continue;
        };
        bytes += HEADER_BYTES + value.as_string().map_or(0, |text| text.as_bytes().len());
        if bytes > REPLY_BYTES {
            return Err(mlua::Error::MemoryError("the reply is too long".into()));
        }
        if slots + NEEDED_SLOTS > SLOTS {
            writer.error("ERR reached lua stack limit");
            continue;
        }
        match value {
            Value::Table(table) => open.extend(write_table(&table, slots, writer)?),
            other => write_plain(&other, script_version, writer),
        }
    }
    Ok(())
}

fn write_plain(value: &Value, script_version: Version, writer: &mut Writer) {
    match value {
        Value::String(text) => writer.bulk(&text.as_bytes()),
        Value::Integer(number) => writer.integer(*number),
        Value::Number(number) => writer.integer(truncate(*number)),
        Value::Boolean(value) if script_version == Version::Three => writer.boolean(*value),
        Value::Boolean(true) => writer.integer(1),
        _ => writer.null(),
    }
}

/// Writes a table of which one field is the value, or the header of an aggregate.
fn write_table(table: &Table, slots: usize, writer: &mut Writer) -> mlua::Result<Option<Open>> {
    if let Some(text) = text_field(table, "err")? {
        line(b'-', &error_line(&text), writer);
    } else if let Some(text) = text_field(table, "ok")? {
        line(b'+', &text, writer);
    } else if let Some(number) = table.raw_get::<Value>("double")?.as_number_of_any_kind() {
        writer.double(number);
    } else if let Value::Table(map) = table.raw_get("map")? {
        let entries = entries(&map)?;
        writer.map(entries.len());
        let rest = entries.into_iter().flat_map(|(key, value)| [key, value]).collect::<Vec<_>>();
        return Ok(Some(Open { rest: rest.into_iter(), slots: slots + 3, is_map: true }));
    } else if let Value::Table(set) = table.raw_get("set")? {
        let entries = entries(&set)?;
        writer.set(entries.len());
        let rest = entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        return Ok(Some(Open { rest: rest.into_iter(), slots: slots + 3, is_map: false }));
    } else if let Some(digits) = text_field(table, "big_number")? {
        big_number(&digits, writer);
    } else if let Some((format, text)) = verbatim(table)? {
        writer.verbatim(format, &text);
    } else {
        let elements = elements(table)?;
        writer.array(elements.len());
        return Ok(Some(Open { rest: elements.into_iter(), slots: slots + 1, is_map: false }));
    }
    Ok(None)
}

/// Values up to the first nil.
fn elements(table: &Table) -> mlua::Result<Vec<Value>> {
    let mut elements = vec![];
    loop {
        match table.raw_get(elements.len() + 1)? {
            Value::Nil => return Ok(elements),
            value => elements.push(value),
        }
    }
}

fn entries(table: &Table) -> mlua::Result<Vec<(Value, Value)>> {
    table.pairs().collect()
}

/// A field that is a string.
fn text_field(table: &Table, name: &str) -> mlua::Result<Option<Vec<u8>>> {
    match table.raw_get(name)? {
        Value::String(text) => Ok(Some(text.as_bytes().to_vec())),
        _ => Ok(None),
    }
}

fn verbatim(table: &Table) -> mlua::Result<Option<([u8; 3], Vec<u8>)>> {
    let Value::Table(inner) = table.raw_get("verbatim_string")? else { return Ok(None) };
    let (text, format) = (text_field(&inner, "string")?, text_field(&inner, "format")?);
    let (Some(text), Some(format)) = (text, format) else { return Ok(None) };
    let mut padded = *b"   ";
    padded.iter_mut().zip(format).for_each(|(place, byte)| *place = byte);
    Ok(Some((padded, text)))
}

fn big_number(digits: &[u8], writer: &mut Writer) {
    match writer.version() {
        Version::Two => writer.bulk(&without_line_ends(digits)),
        Version::Three => line(b'(', digits, writer),
    }
}

/// Writes a line of any bytes. Line ends inside are spaces.
pub(crate) fn line(kind: u8, text: &[u8], writer: &mut Writer) {
    writer.raw(&[kind]);
    writer.raw(&without_line_ends(text));
    writer.raw(b"\r\n");
}

fn without_line_ends(text: &[u8]) -> Vec<u8> {
    text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect()
}

/// The text of an error's line: without line ends at its end.
pub(crate) fn error_line(text: &[u8]) -> Vec<u8> {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    text[..end.map_or(0, |end| end + 1)].to_vec()
}

/// Numbers of both representations.
trait AnyNumber {
    fn as_number_of_any_kind(&self) -> Option<f64>;
}

impl AnyNumber for Value {
    fn as_number_of_any_kind(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::Lua;

    #[track_caller]
    fn check(script: &str, two: &str, three: &str) {
        let lua = Lua::new();
        let value: Value = lua.load(script).eval().expect("the sample is right");
        for (version, expected) in [(Version::Two, two), (Version::Three, three)] {
            let mut reply = vec![];
            to_reply(value.clone(), Version::Two, version, &mut reply);
            assert_eq!(String::from_utf8_lossy(&reply).replace("\r\n", " "), expected);
        }
    }

    #[test]
    fn values_have_replies_in_both_versions() {
        check("return 1.9", ":1 ", ":1 ");
        check("return 'a'", "$1 a ", "$1 a ");
        check("return true", ":1 ", ":1 ");
        check("return false", "$-1 ", "_ ");
        check("return nil", "$-1 ", "_ ");
        check("return {1,'a',nil,2}", "*2 :1 $1 a ", "*2 :1 $1 a ");
        check("return {err='ERR a\\nb\\r\\n'}", "-ERR a b ", "-ERR a b ");
        check("return {ok='a\\r\\nb'}", "+a  b ", "+a  b ");
        check("return {double=0.5}", "$3 0.5 ", ",0.5 ");
        check("return {map={a=1}}", "*2 $1 a :1 ", "%1 $1 a :1 ");
        check("return {set={a=1}}", "*1 $1 a ", "~1 $1 a ");
        check("return {big_number='12'}", "$2 12 ", "(12 ");
        check("return {verbatim_string={format='m',string='a'}}", "$1 a ", "=5 m  :a ");
        check("return print", "$-1 ", "_ ");
    }

    #[test]
    fn a_table_in_itself_ends() {
        let lua = Lua::new();
        let value = lua.load("local t = {} t[1] = t return t").eval().expect("the sample is right");
        let mut reply = vec![];
        to_reply(value, Version::Two, Version::Two, &mut reply);
        assert!(reply.ends_with(b"*1\r\n-ERR reached lua stack limit\r\n"));
    }
}
