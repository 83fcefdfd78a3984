// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table `struct` of scripts: numbers and strings in binary layouts, which a format describes
//! letter by letter.

use crate::native::{Arguments, Failure, Outcome, set};
use mlua::{IntoLua, Lua, LuaString, MultiValue, Table, Value};

/// Alignment of `!` without a number.
const NATURAL_ALIGNMENT: usize = 8;
/// Maximum bytes of an integer.
const INTEGER_BYTES: usize = 32;
const C_INT_MAX: usize = i32::MAX as usize;

pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    set(lua, &table, "pack", pack)?;
    set(lua, &table, "unpack", unpack)?;
    set(lua, &table, "size", size)?;
    Ok(table)
}

/// A format that is being read.
struct Format<'a> {
    rest: &'a [u8],
    is_little: bool,
    alignment: usize,
}

/// One item of a format.
struct Item {
    letter: u8,
    /// Bytes; 0 for a string without a fixed length, and for what is no item.
    size: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Self {
        // A null ends the text, as in C.
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Self { rest: &text[..end], is_little: cfg!(target_endian = "little"), alignment: 1 }
    }

    /// The next letter, with its size.
    fn next(&mut self) -> Outcome<Option<Item>> {
        let Some(&letter) = self.rest.split_off_first() else { return Ok(None) };
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.number(1)?,
            b'i' | b'I' => match self.number(4)? {
                size if size > INTEGER_BYTES => {
                    let text =
                        format!("integral size {size} is larger than limit of {INTEGER_BYTES}");
                    return Err(Failure::Text(text));
                }
                size => size,
            },
            _ => 0,
        };
        Ok(Some(Item { letter, size }))
    }

    fn number(&mut self, default: usize) -> Outcome<usize> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut number = 0;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            number = number * 10 + usize::from(digit - b'0');
            if number > C_INT_MAX {
                return Err(Failure::text("integral size overflow"));
            }
            self.rest.split_off_first();
        }
        Ok(number)
    }

    /// Bytes between `place` and the item.
    fn padding(&self, place: usize, item: &Item) -> usize {
        if item.size == 0 || item.letter == b'c' {
            return 0;
        }
        let size = item.size.min(self.alignment);
        size.wrapping_sub(place & size.wrapping_sub(1)) & size.wrapping_sub(1)
    }

    /// A letter that sets how the following items are read.
    fn control(&mut self, letter: u8) -> Outcome<()> {
        match letter {
            b' ' => {}
            b'>' => self.is_little = false,
            b'<' => self.is_little = true,
            b'!' => match self.number(NATURAL_ALIGNMENT)? {
                alignment if alignment.is_power_of_two() => self.alignment = alignment,
                alignment => {
                    let text = format!("alignment {alignment} is not a power of 2");
                    return Err(Failure::Text(text));
                }
            },
            other => {
                let text = format!("invalid format option '{}'", char::from(other));
                return Err(Failure::Argument(1, text));
            }
        }
        Ok(())
    }

    /// Puts bytes from the most significant one on into the order of the format.
    fn ordered<const SIZE: usize>(&self, mut bytes: [u8; SIZE]) -> [u8; SIZE] {
        if self.is_little {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(arguments: &Arguments) -> Outcome<LuaString> {
    let text = arguments.text(1)?;
    // A value that is missing is nil, in the words of the reference.
    let arguments = &arguments.followed_by_nil();
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let (mut output, mut number) = (vec![], 1);
    while let Some(item) = format.next()? {
        output.resize(output.len() + format.padding(output.len(), &item), 0);
        match item.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                number += 1;
                pack_integer(&format, arguments.number(number)?, item.size, &mut output);
            }
            b'x' => output.push(0),
            b'f' => {
                number += 1;
                let value = arguments.number(number)? as f32;
                output.extend_from_slice(&format.ordered(value.to_be_bytes()));
            }
            b'd' => {
                number += 1;
                let value = arguments.number(number)?;
                output.extend_from_slice(&format.ordered(value.to_be_bytes()));
            }
            b'c' | b's' => {
                number += 1;
                let text = arguments.text(number)?;
                let text = text.as_bytes();
                let size = if item.size == 0 { text.len() } else { item.size };
                // The reference counts the argument before it checks it.
                let error = || Failure::argument(number + 1, "string too short");
                output.extend_from_slice(text.get(..size).ok_or_else(error)?);
                if item.letter == b's' {
                    output.push(0);
                }
            }
            other => format.control(other)?,
        }
    }
    Ok(arguments.lua.create_string(output)?)
}

fn pack_integer(format: &Format, value: f64, size: usize, output: &mut Vec<u8>) {
    let bits = if value < 0.0 { value as i64 as u64 } else { value as u64 };
    let start = output.len();
    let low = bits.to_le_bytes();
    output.extend((0..size).map(|place| low.get(place).copied().unwrap_or(0)));
    if !format.is_little {
        output[start..].reverse();
    }
}

fn unpack(arguments: &Arguments) -> Outcome<MultiValue> {
    let (text, data) = (arguments.text(1)?, arguments.text(2)?);
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let start = arguments.integer_or(3, 1)?;
    if start == 0 {
        return Err(Failure::argument(3, "offset must be 1 or greater"));
    }
    // A negative one is behind all data.
    let mut place = usize::try_from(start.wrapping_sub(1)).unwrap_or(usize::MAX >> 1);
    let mut format = Format::new(&text);
    let mut results = vec![];
    while let Some(mut item) = format.next()? {
        place = place.saturating_add(format.padding(place, &item));
        check_length(&data, place, item.size)?;
        if item.letter == b'c' && item.size == 0 {
            item.size = length_before(arguments.lua, &mut results)?;
            check_length(&data, place, item.size)?;
        }
        if results.len() >= RESULTS {
            return Err(Failure::text("stack overflow (too many results)"));
        }
        let bytes = &data[place..place + item.size];
        match item.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                results.push(Value::Number(unpack_integer(&format, &item, bytes)));
            }
            b'f' => {
                let bytes = bytes.try_into().expect("the item has four bytes");
                let value = f32::from_be_bytes(format.ordered(bytes));
                results.push(Value::Number(value.into()));
            }
            b'd' => {
                let bytes = bytes.try_into().expect("the item has eight bytes");
                results.push(Value::Number(f64::from_be_bytes(format.ordered(bytes))));
            }
            b'c' => results.push(arguments.lua.create_string(bytes)?.into_lua(arguments.lua)?),
            b's' => {
                let end = data[place..].iter().position(|&byte| byte == 0);
                let length = end.ok_or_else(|| Failure::text("unfinished string in data"))?;
                let text = arguments.lua.create_string(&data[place..place + length])?;
                results.push(Value::String(text));
                item.size = length + 1;
            }
            b'x' => {}
            other => format.control(other)?,
        }
        place += item.size;
    }
    results.push(Value::Number((place + 1) as f64));
    Ok(MultiValue::from_vec(results))
}

/// Results that fit in the slots of a native function.
const RESULTS: usize = 7_900;

fn check_length(data: &[u8], place: usize, size: usize) -> Outcome<()> {
    match place.checked_add(size) {
        Some(end) if end <= data.len() => Ok(()),
        _ => Err(Failure::argument(2, "data string too short")),
    }
}

/// The number before a string, which is its length.
fn length_before(lua: &Lua, results: &mut Vec<Value>) -> Outcome<usize> {
    let last = results.pop().map(|value| lua.coerce_number(value)).transpose()?.flatten();
    let length = last.ok_or_else(|| Failure::text("format 'c0' needs a previous size"))?;
    // A negative one is a length above all data.
    Ok(if length < 0.0 { usize::MAX } else { length as usize })
}

/// Integers of lower-case letters have a sign. Only the last eight bytes count.
fn unpack_integer(format: &Format, item: &Item, bytes: &[u8]) -> f64 {
    let append = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    let value = match format.is_little {
        true => bytes.iter().rev().fold(0, append),
        false => bytes.iter().fold(0, append),
    };
    if !item.letter.is_ascii_lowercase() {
        return value as f64;
    }
    let mask = u64::MAX.wrapping_shl((item.size as u32 * 8).wrapping_sub(1));
    (if value & mask == 0 { value } else { value | mask }) as i64 as f64
}

fn size(arguments: &Arguments) -> Outcome<f64> {
    let text = arguments.text(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let mut total = 0_usize;
    while let Some(item) = format.next()? {
        total = total.saturating_add(format.padding(total, &item));
        match item.letter {
            b's' => return Err(Failure::argument(1, "option 's' has no fixed size")),
            b'c' if item.size == 0 => {
                return Err(Failure::argument(1, "option 'c0' has no fixed size"));
            }
            letter if !letter.is_ascii_alphanumeric() => format.control(letter)?,
            _ => {}
        }
        total = total.saturating_add(item.size);
    }
    Ok(total as f64)
}
