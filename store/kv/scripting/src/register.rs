// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `redis.register_function`, by which the run of a library names its functions.

use crate::api;
use crate::header::{BAD_NAME, Flags, is_name};
use crate::native::{Arguments, Outcome};
use crate::registration::Registered;
use crate::session::Session;
use mlua::{Table, Value};
use std::rc::Rc;

/// Registers a function, given a name and the function, or a table of named arguments.
pub(crate) fn register(arguments: &Arguments, session: &Session) -> Outcome<()> {
    let fail = |text: &str| api::raised(arguments.lua, text);
    let mut registration = session.registration.borrow_mut();
    let Some(functions) = registration.as_mut() else {
        return Err(fail("redis.register_function can only be called on FUNCTION LOAD command"));
    };
    let function = match arguments.values() {
        [Value::Table(named)] => from_table(arguments, named)?,
        [_] => {
            return Err(fail(
                "calling redis.register_function with a single argument is only applicable to Lua \
                 table (representing named arguments).",
            ));
        }
        [name, callback] => from_pair(arguments, name, callback)?,
        _ => return Err(fail("wrong number of arguments to redis.register_function")),
    };
    if !is_name(function.name.as_bytes()) {
        return Err(fail(BAD_NAME));
    }
    if functions.iter().any(|known| known.name.eq_ignore_ascii_case(&function.name)) {
        return Err(fail("Function already exists in the library"));
    }
    functions.push(function);
    Ok(())
}

fn from_pair(arguments: &Arguments, name: &Value, callback: &Value) -> Outcome<Registered> {
    let fail = |text: &str| api::raised(arguments.lua, text);
    let Some(name) = arguments.lua.coerce_string(name.clone())? else {
        return Err(fail("first argument to redis.register_function must be a string"));
    };
    let Value::Function(callback) = callback else {
        return Err(fail("second argument to redis.register_function must be a function"));
    };
    let (name, callback) = (name.to_string_lossy(), callback.clone());
    Ok(Registered { name, callback, description: None, flags: Flags::default() })
}

fn from_table(arguments: &Arguments, named: &Table) -> Outcome<Registered> {
    let fail = |text: &str| api::raised(arguments.lua, text);
    let (mut name, mut callback, mut description) = (None, None, None);
    let mut flags = Flags::default();
    for entry in named.pairs::<Value, Value>() {
        let (key, value) = entry?;
        let Some(key) = arguments.lua.coerce_string(key)? else {
            return Err(fail(
                "named argument key given to redis.register_function is not a string",
            ));
        };
        let text = || arguments.lua.coerce_string(value.clone());
        match (&*key.as_bytes().to_ascii_lowercase(), &value) {
            (b"function_name", _) => match text()? {
                Some(text) => name = Some(text.to_string_lossy()),
                None => return Err(fail(&wrong_type("function_name", "string"))),
            },
            (b"description", _) => match text()? {
                Some(text) => description = Some(Rc::from(&*text.as_bytes())),
                None => return Err(fail(&wrong_type("description", "string"))),
            },
            (b"callback", Value::Function(function)) => callback = Some(function.clone()),
            (b"callback", _) => return Err(fail(&wrong_type("callback", "function"))),
            (b"flags", Value::Table(names)) => flags = read_flags(arguments, names)?,
            (b"flags", _) => {
                return Err(fail(
                    "flags argument to redis.register_function must be a table representing \
                     function flags",
                ));
            }
            _ => return Err(fail("unknown argument given to redis.register_function")),
        }
    }
    let missing = |what: &str| fail(&format!("redis.register_function must get a {what} argument"));
    let name = name.ok_or_else(|| missing("function name"))?;
    let callback = callback.ok_or_else(|| missing("callback"))?;
    Ok(Registered { name, callback, description, flags })
}

fn wrong_type(argument: &str, expected: &str) -> String {
    format!("{argument} argument given to redis.register_function must be a {expected}")
}

fn read_flags(arguments: &Arguments, names: &Table) -> Outcome<Flags> {
    let mut flags = Flags::default();
    for name in names.sequence_values::<Value>() {
        let known = match name? {
            Value::String(name) => Flags::named(&name.as_bytes()),
            _ => None,
        };
        flags |= known.ok_or_else(|| api::raised(arguments.lua, "unknown flag given"))?;
    }
    Ok(flags)
}
