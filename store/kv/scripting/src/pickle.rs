// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table `cmsgpack` of scripts: values as MessagePack.

use crate::native::{Arguments, Failure, Outcome, set};
use mlua::{Lua, LuaString, MultiValue, Table, Value};

/// Tables below this level are written as nil.
const WRITTEN_DEPTH: usize = 16;
/// Levels that are read.
const READ_DEPTH: usize = 2_000;
/// Values that fit in the slots of a native function.
const RESULTS: usize = 7_900;
/// Maximum bytes that are written. Tables that contain each other several times can become longer
/// than any memory.
const TEXT_BYTES: usize = 512 << 20;

pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    set(lua, &table, "pack", pack)?;
    set(lua, &table, "unpack", |arguments| unpack(arguments, 0, 0))?;
    set(lua, &table, "unpack_one", |arguments| {
        let offset = arguments.integer_or(2, 0)?;
        unpack(arguments, 1, offset)
    })?;
    set(lua, &table, "unpack_limit", |arguments| {
        let (limit, offset) = (arguments.integer(2)?, arguments.integer_or(3, 0)?);
        unpack(arguments, limit, offset)
    })?;
    for (name, text) in [
        ("_NAME", "cmsgpack"),
        ("_VERSION", "lua-cmsgpack 0.4.0"),
        ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ] {
        table.raw_set(name, text)?;
    }
    Ok(table)
}

fn pack(arguments: &Arguments) -> Outcome<LuaString> {
    if arguments.values().is_empty() {
        return Err(Failure::argument(0, "MessagePack pack needs input."));
    }
    let mut output = vec![];
    for value in arguments.values() {
        write(value, 0, &mut output)?;
    }
    Ok(arguments.lua.create_string(output)?)
}

fn write(value: &Value, depth: usize, output: &mut Vec<u8>) -> Outcome<()> {
    if output.len() > TEXT_BYTES {
        return Err(Failure::State(mlua::Error::MemoryError("the text is too long".into())));
    }
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            write_header(output, text.len(), 0xa0, 32, [Some(0xd9), Some(0xda), Some(0xdb)]);
            output.extend_from_slice(&text);
        }
        Value::Boolean(value) => output.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => write_integer(*number, output),
        Value::Number(number) => write_number(*number, output),
        Value::Table(table) if depth < WRITTEN_DEPTH => write_table(table, depth, output)?,
        _ => output.push(0xc0),
    }
    Ok(())
}

/// Writes the length of a string or table: in the byte of its type if it is below `short`, else
/// after a code for each length of length.
fn write_header(
    output: &mut Vec<u8>,
    length: usize,
    short_code: u8,
    short: usize,
    [one, two, four]: [Option<u8>; 3],
) {
    match (one, two, four) {
        _ if length < short => output.push(short_code | length as u8),
        (Some(code), _, _) if length <= 0xff => output.extend_from_slice(&[code, length as u8]),
        (_, Some(code), _) if length <= 0xffff => {
            output.push(code);
            output.extend_from_slice(&(length as u16).to_be_bytes());
        }
        (_, _, code) => {
            output.extend(code);
            output.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

fn write_integer(number: i64, output: &mut Vec<u8>) {
    match number {
        -32..=127 => output.push(number as u8),
        128..=0xff => output.extend_from_slice(&[0xcc, number as u8]),
        0x100..=0xffff => write_code(0xcd, &(number as u16).to_be_bytes(), output),
        0x1_0000..=0xffff_ffff => write_code(0xce, &(number as u32).to_be_bytes(), output),
        0x1_0000_0000.. => write_code(0xcf, &number.to_be_bytes(), output),
        -0x80..-32 => write_code(0xd0, &(number as i8).to_be_bytes(), output),
        -0x8000..-0x80 => write_code(0xd1, &(number as i16).to_be_bytes(), output),
        -0x8000_0000..-0x8000 => write_code(0xd2, &(number as i32).to_be_bytes(), output),
        ..-0x8000_0000 => write_code(0xd3, &number.to_be_bytes(), output),
    }
}

/// A number without a fraction is an integer; one that needs four bytes has four.
fn write_number(number: f64, output: &mut Vec<u8>) {
    let integer = number as i64;
    if integer as f64 == number && integer != i64::MAX {
        write_integer(integer, output);
    } else if f64::from(number as f32) == number {
        write_code(0xca, &(number as f32).to_be_bytes(), output);
    } else {
        write_code(0xcb, &number.to_be_bytes(), output);
    }
}

fn write_code(code: u8, bytes: &[u8], output: &mut Vec<u8>) {
    output.push(code);
    output.extend_from_slice(bytes);
}

fn write_table(table: &Table, depth: usize, output: &mut Vec<u8>) -> Outcome<()> {
    let (count, is_array) = extent(table)?;
    if is_array {
        write_header(output, count, 0x90, 16, [None, Some(0xdc), Some(0xdd)]);
        for index in 1..=count {
            write(&table.raw_get(index)?, depth + 1, output)?;
        }
        return Ok(());
    }
    write_header(output, count, 0x80, 16, [None, Some(0xde), Some(0xdf)]);
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        write(&key, depth + 1, output)?;
        write(&value, depth + 1, output)?;
    }
    Ok(())
}

/// Number of pairs, and whether keys are the numbers from 1 to it. Pairs are not kept: Lua has room
/// for a few thousand values outside of it.
fn extent(table: &Table) -> Outcome<(usize, bool)> {
    let (mut count, mut largest) = (0, Some(0));
    for pair in table.pairs::<Value, Value>() {
        let index = pair?.0.as_integer().filter(|index| *index > 0);
        largest = largest.zip(index).map(|(largest, index)| index.max(largest));
        count += 1;
    }
    // Keys are different, so none is missing if the largest is their number.
    Ok((count, largest == Some(count as i64)))
}

/// Reads `limit` values from `offset` on, or all if both are 0. A limited call first returns where
/// the next one continues, or -1 at the end.
fn unpack(arguments: &Arguments, limit: i64, offset: i64) -> Outcome<MultiValue> {
    let text = arguments.text(1)?;
    let text = text.as_bytes();
    let length = text.len();
    let (Ok(wanted), Ok(start)) = (usize::try_from(limit), usize::try_from(offset)) else {
        let text =
            format!("Invalid request to unpack with offset of {offset} and limit of {length}.");
        return Err(Failure::Text(text));
    };
    if start > length {
        let text = format!("Start offset {start} greater than input length {length}.");
        return Err(Failure::Text(text));
    }
    let takes_all = wanted == 0 && start == 0;
    let mut reader = Reader { lua: arguments.lua, rest: &text[start..] };
    let mut results = vec![];
    while !reader.rest.is_empty() && (takes_all || results.len() < wanted) {
        if results.len() >= RESULTS {
            return Err(Failure::text("stack overflow (too many return values at once)"));
        }
        results.push(reader.value(0)?);
    }
    if !takes_all {
        let place = match reader.rest.len() {
            0 => -1.0,
            left => (length - left) as f64,
        };
        results.insert(0, Value::Number(place));
    }
    Ok(MultiValue::from_vec(results))
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Outcome<Value> {
        if depth > READ_DEPTH {
            return Err(Failure::text("stack overflow (too many nested values)"));
        }
        let [code] = self.take()?;
        Ok(match code {
            0x00..=0x7f => Value::Number(code.into()),
            0x80..=0x8f => self.map(usize::from(code & 0xf), depth)?,
            0x90..=0x9f => self.array(usize::from(code & 0xf), depth)?,
            0xa0..=0xbf => self.string(usize::from(code & 0x1f))?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xd9 => {
                let [length] = self.take()?;
                self.string(length.into())?
            }
            0xda => {
                let length = u16::from_be_bytes(self.take()?);
                self.string(length.into())?
            }
            0xdb => {
                let length = u32::from_be_bytes(self.take()?);
                self.string(length as usize)?
            }
            0xdc => {
                let length = u16::from_be_bytes(self.take()?);
                self.array(length.into(), depth)?
            }
            0xdd => {
                let length = u32::from_be_bytes(self.take()?);
                self.array(length as usize, depth)?
            }
            0xde => {
                let length = u16::from_be_bytes(self.take()?);
                self.map(length.into(), depth)?
            }
            0xdf => {
                let length = u32::from_be_bytes(self.take()?);
                self.map(length as usize, depth)?
            }
            _ => Value::Number(self.number(code)?),
        })
    }

    fn number(&mut self, code: u8) -> Outcome<f64> {
        Ok(match code {
            0xca => f32::from_be_bytes(self.take()?).into(),
            0xcb => f64::from_be_bytes(self.take()?),
            0xcc => u8::from_be_bytes(self.take()?).into(),
            0xcd => u16::from_be_bytes(self.take()?).into(),
            0xce => u32::from_be_bytes(self.take()?).into(),
            0xcf => u64::from_be_bytes(self.take()?) as f64,
            0xd0 => i8::from_be_bytes(self.take()?).into(),
            0xd1 => i16::from_be_bytes(self.take()?).into(),
            0xd2 => i32::from_be_bytes(self.take()?).into(),
            0xd3 => i64::from_be_bytes(self.take()?) as f64,
            0xe0..=0xff => (code as i8).into(),
            _ => return Err(Failure::text("Bad data format in input.")),
        })
    }

    fn take<const SIZE: usize>(&mut self) -> Outcome<[u8; SIZE]> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| Failure::text("Missing bytes in input."))?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn string(&mut self, length: usize) -> Outcome<Value> {
        let bytes = self.rest.split_off(..length);
        let bytes = bytes.ok_or_else(|| Failure::text("Missing bytes in input."))?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn array(&mut self, length: usize, depth: usize) -> Outcome<Value> {
        let table = self.lua.create_table()?;
        for index in 1..=length {
            table.raw_set(index, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Outcome<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            match key {
                Value::Nil => return Err(Failure::text("table index is nil")),
                Value::Number(number) if number.is_nan() => {
                    return Err(Failure::text("table index is NaN"));
                }
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
