// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values as JSON. A table whose keys are all positive integers is an array, in which absent
//! elements are null; an empty one is an object.

use super::{DEPTH_LIMIT, Invalid, Settings};
use crate::native::{Failure, Outcome, type_name};
use crate::number::general;
use mlua::{Lua, LuaString, Table, Value};

/// Maximum bytes of a text. Tables that contain each other several times can become longer than
/// any memory.
const TEXT_BYTES: usize = 512 << 20;

pub(super) fn encode(lua: &Lua, value: &Value, settings: &Settings) -> Outcome<LuaString> {
    let mut encoder = Encoder { settings, text: vec![] };
    encoder.value(value, 0)?;
    Ok(lua.create_string(encoder.text)?)
}

struct Encoder<'a> {
    settings: &'a Settings,
    text: Vec<u8>,
}

fn cannot(value: &Value, reason: &str) -> Failure {
    Failure::Text(format!("Cannot serialise {}: {reason}", type_name(value)))
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: i64) -> Outcome<()> {
        if self.text.len() > TEXT_BYTES {
            return Err(Failure::State(mlua::Error::MemoryError("the text is too long".into())));
        }
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(number) => self.number(value, *number as f64)?,
            Value::Number(number) => self.number(value, *number)?,
            Value::Boolean(true) => self.text.extend_from_slice(b"true"),
            Value::Boolean(false) => self.text.extend_from_slice(b"false"),
            Value::Nil => self.text.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => {
                self.text.extend_from_slice(b"null");
            }
            Value::Table(table) => self.table(table, value, depth + 1)?,
            other => return Err(cannot(other, "type not supported")),
        }
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) {
        self.text.push(b'"');
        for &byte in bytes {
            match byte {
                b'"' | b'\\' | b'/' => self.text.extend_from_slice(&[b'\\', byte]),
                0x08 => self.text.extend_from_slice(b"\\b"),
                0x0c => self.text.extend_from_slice(b"\\f"),
                b'\n' => self.text.extend_from_slice(b"\\n"),
                b'\r' => self.text.extend_from_slice(b"\\r"),
                b'\t' => self.text.extend_from_slice(b"\\t"),
                0..0x20 | 0x7f => {
                    self.text.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                }
                _ => self.text.push(byte),
            }
        }
        self.text.push(b'"');
    }

    fn number(&mut self, value: &Value, number: f64) -> Outcome<()> {
        let text = match self.settings.encode_invalid {
            _ if number.is_finite() => general(number, self.settings.digits as usize),
            Invalid::Refused => return Err(cannot(value, "must not be NaN or Inf")),
            Invalid::Null => "null".into(),
            Invalid::Written if number.is_nan() => "nan".into(),
            Invalid::Written => general(number, self.settings.digits as usize),
        };
        self.text.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn table(&mut self, table: &Table, value: &Value, depth: i64) -> Outcome<()> {
        if depth > self.settings.encode_depth.min(DEPTH_LIMIT) {
            return Err(Failure::Text(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_length(table, value)? {
            Some(length) if length > 0 => self.array(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// The last index; `None` if the table is no array.
    fn array_length(&self, table: &Table, value: &Value) -> Outcome<Option<i64>> {
        let (mut last, mut count) = (0, 0);
        for entry in table.pairs::<Value, Value>() {
            match entry?.0 {
                Value::Integer(index) if index >= 1 => last = last.max(index),
                Value::Number(index) if index >= 1.0 && index.floor() == index => {
                    last = i64::MAX;
                }
                _ => return Ok(None),
            }
            count += 1;
        }
        let Settings { sparse_ratio, sparse_safe, converts_sparse, .. } = *self.settings;
        let is_sparse =
            sparse_ratio > 0 && last > sparse_ratio.saturating_mul(count) && last > sparse_safe;
        match (is_sparse, converts_sparse) {
            (true, false) => Err(cannot(value, "excessively sparse array")),
            (true, true) => Ok(None),
            (false, _) => Ok(Some(last)),
        }
    }

    fn array(&mut self, table: &Table, length: i64, depth: i64) -> Outcome<()> {
        self.text.push(b'[');
        for index in 1..=length {
            if index > 1 {
                self.text.push(b',');
            }
            self.value(&table.raw_get(index)?, depth)?;
        }
        self.text.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> Outcome<()> {
        self.text.push(b'{');
        for (place, entry) in table.pairs::<Value, Value>().enumerate() {
            let (key, value) = entry?;
            if place > 0 {
                self.text.push(b',');
            }
            match &key {
                Value::String(text) => self.string(&text.as_bytes()),
                Value::Integer(_) | Value::Number(_) => {
                    self.text.push(b'"');
                    self.value(&key, depth)?;
                    self.text.push(b'"');
                }
                other => return Err(cannot(other, "table key must be a number or string")),
            }
            self.text.push(b':');
            self.value(&value, depth)?;
        }
        self.text.push(b'}');
        Ok(())
    }
}
