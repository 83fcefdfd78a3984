// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table `bit` of scripts: operations on integers of 32 bits, with signed results. A number
//! outside the range is taken modulo 2^32, and rounded.

use crate::native::{Arguments, Outcome, set};
use mlua::{Lua, Table};

/// After adding this, a number's lowest bits are those of its integer.
const ALIGNMENT: f64 = 6_755_399_441_055_744.0;
const HEX_DIGITS: u32 = 8;

pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    set(lua, &table, "tobit", |arguments| word(arguments, 1))?;
    set(lua, &table, "bnot", |arguments| Ok(!word(arguments, 1)?))?;
    set(lua, &table, "bswap", |arguments| Ok(word(arguments, 1)?.swap_bytes()))?;
    set(lua, &table, "band", |arguments| fold(arguments, |left, right| left & right))?;
    set(lua, &table, "bor", |arguments| fold(arguments, |left, right| left | right))?;
    set(lua, &table, "bxor", |arguments| fold(arguments, |left, right| left ^ right))?;
    set(lua, &table, "lshift", |arguments| shift(arguments, i32::wrapping_shl))?;
    set(lua, &table, "rshift", |arguments| {
        shift(arguments, |value, count| (value as u32).wrapping_shr(count) as i32)
    })?;
    set(lua, &table, "arshift", |arguments| shift(arguments, i32::wrapping_shr))?;
    set(lua, &table, "rol", |arguments| shift(arguments, i32::rotate_left))?;
    set(lua, &table, "ror", |arguments| shift(arguments, i32::rotate_right))?;
    set(lua, &table, "tohex", hex)?;
    Ok(table)
}

fn word(arguments: &Arguments, number: usize) -> Outcome<i32> {
    Ok((arguments.number(number)? + ALIGNMENT).to_bits() as i32)
}

fn fold(arguments: &Arguments, combine: fn(i32, i32) -> i32) -> Outcome<i32> {
    let first = word(arguments, 1)?;
    (2..=arguments.values().len())
        .try_fold(first, |value, number| Ok(combine(value, word(arguments, number)?)))
}

fn shift(arguments: &Arguments, shift: fn(i32, u32) -> i32) -> Outcome<i32> {
    Ok(shift(word(arguments, 1)?, word(arguments, 2)? as u32 & 31))
}

/// The lowest digits, of which a negative count means capital letters.
fn hex(arguments: &Arguments) -> Outcome<String> {
    let value = word(arguments, 1)?;
    let count = match arguments.get(2) {
        Some(_) => word(arguments, 2)?,
        None => HEX_DIGITS as i32,
    };
    let digits = count.unsigned_abs().min(HEX_DIGITS) as usize;
    let text = if count < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    Ok(text[text.len() - digits..].into())
}
