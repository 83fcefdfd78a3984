// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table `cjson` of scripts: JSON with the choices of lua-cjson 2.1, which scripts can change.

mod decode;
mod encode;

use crate::native::{Arguments, Failure, Outcome, set};
use mlua::{IntoLua, Lua, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Levels that both directions go down whatever the script allows: as many as fit on a stack.
const DEPTH_LIMIT: i64 = 2_000;
const C_INT_MAX: i64 = i32::MAX as i64;

/// Choices of one instance.
#[derive(Clone, Copy)]
struct Settings {
    /// Sparse arrays are objects, instead of an error.
    converts_sparse: bool,
    /// An array is sparse if its last index is above this number of times its elements.
    sparse_ratio: i64,
    /// An array up to this last index is never sparse.
    sparse_safe: i64,
    encode_depth: i64,
    decode_depth: i64,
    keeps_buffer: bool,
    encode_invalid: Invalid,
    decodes_invalid: bool,
    digits: i64,
}

/// Treatment of numbers that JSON does not have.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            converts_sparse: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1_000,
            decode_depth: 1_000,
            keeps_buffer: true,
            encode_invalid: Invalid::Refused,
            decodes_invalid: true,
            digits: crate::number::LUA_DIGITS as i64,
        }
    }
}

/// A table with its own settings.
pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let settings = Rc::new(RefCell::new(Settings::default()));
    let shared = settings.clone();
    set(lua, &table, "encode", move |arguments| {
        encode::encode(arguments.lua, only(arguments)?, &shared.borrow())
    })?;
    let shared = settings.clone();
    set(lua, &table, "decode", move |arguments| {
        only(arguments)?;
        let text = arguments.text(1)?;
        decode::decode(arguments.lua, &text.as_bytes(), &shared.borrow())
    })?;
    add_numbers(lua, &table, &settings)?;
    add_choices(lua, &table, &settings)?;
    set(lua, &table, "new", |arguments| Ok(self::table(arguments.lua)?))?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}

fn only<'a>(arguments: &'a Arguments) -> Outcome<&'a Value> {
    match arguments.values() {
        [value] => Ok(value),
        _ => Err(Failure::argument(1, "expected 1 argument")),
    }
}

fn add_numbers(lua: &Lua, table: &Table, settings: &Rc<RefCell<Settings>>) -> mlua::Result<()> {
    type Place = fn(&mut Settings) -> &mut i64;
    let places: [(&str, Place, i64); 3] = [
        ("encode_max_depth", |it| &mut it.encode_depth, C_INT_MAX),
        ("decode_max_depth", |it| &mut it.decode_depth, C_INT_MAX),
        ("encode_number_precision", |it| &mut it.digits, 14),
    ];
    for (name, place, limit) in places {
        let shared = settings.clone();
        set(lua, table, name, move |arguments| {
            at_most(arguments, 1)?;
            let mut settings = shared.borrow_mut();
            set_number(arguments, 1, place(&mut settings), 1, limit)
        })?;
    }
    let shared = settings.clone();
    set(lua, table, "encode_sparse_array", move |arguments| {
        at_most(arguments, 3)?;
        let mut settings = shared.borrow_mut();
        set_boolean(arguments, &mut settings.converts_sparse)?;
        let ratio = set_number(arguments, 2, &mut settings.sparse_ratio, 0, C_INT_MAX)?;
        let safe = set_number(arguments, 3, &mut settings.sparse_safe, 0, C_INT_MAX)?;
        Ok((settings.converts_sparse, ratio, safe))
    })
}

fn add_choices(lua: &Lua, table: &Table, settings: &Rc<RefCell<Settings>>) -> mlua::Result<()> {
    type Place = fn(&mut Settings) -> &mut bool;
    let places: [(&str, Place); 2] = [
        ("encode_keep_buffer", |it| &mut it.keeps_buffer),
        ("decode_invalid_numbers", |it| &mut it.decodes_invalid),
    ];
    for (name, place) in places {
        let shared = settings.clone();
        set(lua, table, name, move |arguments| {
            at_most(arguments, 1)?;
            set_boolean(arguments, place(&mut shared.borrow_mut()))
        })?;
    }
    let shared = settings.clone();
    set(lua, table, "encode_invalid_numbers", move |arguments| {
        at_most(arguments, 1)?;
        let invalid = &mut shared.borrow_mut().encode_invalid;
        *invalid = match option(arguments, &["off", "on", "null"])? {
            Some(0) => Invalid::Refused,
            Some(1) => Invalid::Written,
            Some(_) => Invalid::Null,
            None => *invalid,
        };
        Ok(match invalid {
            Invalid::Null => "null".into_lua(arguments.lua)?,
            other => Value::Boolean(*other == Invalid::Written),
        })
    })
}

fn at_most(arguments: &Arguments, count: usize) -> Outcome<()> {
    match arguments.values().len() <= count {
        true => Ok(()),
        false => Err(Failure::argument(count + 1, "found too many arguments")),
    }
}

fn set_number(
    arguments: &Arguments,
    number: usize,
    place: &mut i64,
    least: i64,
    most: i64,
) -> Outcome<i64> {
    if !arguments.is_absent(number) {
        let value = arguments.integer(number)?;
        if !(least..=most).contains(&value) {
            let text = format!("expected integer between {least} and {most}");
            return Err(Failure::Argument(number, text));
        }
        *place = value;
    }
    Ok(*place)
}

fn set_boolean(arguments: &Arguments, place: &mut bool) -> Outcome<bool> {
    if let Some(choice) = option(arguments, &["off", "on"])? {
        *place = choice == 1;
    }
    Ok(*place)
}

/// The index of the option that the first argument names. A boolean is the first or second one.
fn option(arguments: &Arguments, names: &[&str]) -> Outcome<Option<usize>> {
    match arguments.get(1) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Boolean(value)) => Ok(Some(usize::from(*value))),
        Some(_) => {
            let text = arguments.text(1)?.to_string_lossy();
            let found = names.iter().position(|name| *name == text);
            let error = || Failure::argument(1, format!("invalid option '{text}'"));
            found.map(Some).ok_or_else(error)
        }
    }
}
