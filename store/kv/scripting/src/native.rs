// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Native functions of scripts: their arguments, checked as the auxiliary library of Lua checks
//! them, and their errors, with the texts and places that this library gives.

use crate::frames;
use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value, Variadic};
use std::fmt::Display;

/// Frames from a native function to its caller: the function, and the one that raises its errors.
const CALLER: usize = 2;

/// Why a native function fails.
pub(crate) enum Failure {
    /// A text, raised after the place of the caller.
    Text(String),
    /// Something is wrong with the argument of this number, from 1.
    Argument(usize, String),
    /// A value.
    Value(Value),
    /// An error of the state, such as a lack of memory.
    State(mlua::Error),
}

/// Result of a native function.
pub(crate) type Outcome<R> = Result<R, Failure>;

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Self {
        Self::State(error)
    }
}

impl Failure {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A text about an argument.
    pub(crate) fn argument(number: usize, text: impl Into<String>) -> Self {
        Self::Argument(number, text.into())
    }

    /// The value to raise.
    fn into_value(self, lua: &Lua) -> mlua::Result<Value> {
        let text = match self {
            Self::Text(text) => format!("{}{text}", place(lua)),
            Self::Argument(number, text) => format!("{}{}", place(lua), bad(lua, number, &text)),
            Self::Value(value) => return Ok(value),
            Self::State(error) => return Ok(Value::String(lua.create_string(message(&error))?)),
        };
        Ok(Value::String(lua.create_string(text)?))
    }
}

/// The text of an error of the state.
pub(crate) fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::MemoryError(_) => "not enough memory".into(),
        mlua::Error::CallbackError { cause, .. } => message(cause),
        mlua::Error::SyntaxError { message, .. } | mlua::Error::RuntimeError(message) => {
            message.clone()
        }
        other => other.to_string(),
    }
}

/// `source:line: ` of the caller.
fn place(lua: &Lua) -> String {
    let described = lua.inspect_stack(CALLER, |frame| {
        let line = frame.current_line()?;
        Some(format!("{}:{line}: ", frame.source().short_src?))
    });
    described.flatten().unwrap_or_default()
}

fn bad(lua: &Lua, number: usize, text: &str) -> String {
    let named = lua.inspect_stack(CALLER - 1, |frame| {
        let names = frame.names();
        (names.name.map(|name| name.into_owned()), names.name_what == Some("method"))
    });
    let (name, is_method) = named.unwrap_or_default();
    let name = name.unwrap_or_else(|| "?".into());
    match (is_method, number) {
        (true, 1) => format!("calling '{name}' on bad self ({text})"),
        (true, _) => format!("bad argument #{} to '{name}' ({text})", number - 1),
        (false, _) => format!("bad argument #{number} to '{name}' ({text})"),
    }
}

/// Arguments of a native function.
pub(crate) struct Arguments<'a> {
    /// The state.
    pub(crate) lua: &'a Lua,
    values: Vec<Value>,
}

impl Arguments<'_> {
    /// All values.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value of a number, from 1. `None` if there are fewer.
    pub(crate) fn get(&self, number: usize) -> Option<&Value> {
        self.values.get(number - 1)
    }

    /// The same arguments, and nil.
    pub(crate) fn followed_by_nil(&self) -> Self {
        let values = self.values.iter().cloned().chain([Value::Nil]).collect();
        Self { lua: self.lua, values }
    }

    /// The argument is missing or nil.
    pub(crate) fn is_absent(&self, number: usize) -> bool {
        self.get(number).is_none_or(Value::is_nil)
    }

    /// A string, or a number as its text.
    pub(crate) fn text(&self, number: usize) -> Outcome<LuaString> {
        match self.get(number) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                let text = self.lua.coerce_string(value.clone())?;
                text.ok_or_else(|| self.mismatch(number, "string"))
            }
            _ => Err(self.mismatch(number, "string")),
        }
    }

    /// A number, or the number that a string is.
    pub(crate) fn number(&self, number: usize) -> Outcome<f64> {
        let value = self.get(number).cloned().unwrap_or(Value::Nil);
        let found = self.lua.coerce_number(value)?;
        found.ok_or_else(|| self.mismatch(number, "number"))
    }

    /// A number, cut off to an integer; 0 if it is none.
    pub(crate) fn any_integer(&self, number: usize) -> i64 {
        self.integer(number).unwrap_or(0)
    }

    /// A number, cut off to an integer.
    pub(crate) fn integer(&self, number: usize) -> Outcome<i64> {
        Ok(crate::number::truncate(self.number(number)?))
    }

    /// An integer, or `default` if it is absent.
    pub(crate) fn integer_or(&self, number: usize, default: i64) -> Outcome<i64> {
        if self.is_absent(number) { Ok(default) } else { self.integer(number) }
    }

    /// The error of an argument of the wrong type.
    pub(crate) fn mismatch(&self, number: usize, expected: impl Display) -> Failure {
        let found = self.get(number).map_or("no value", type_name);
        Failure::argument(number, format!("{expected} expected, got {found}"))
    }
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::LightUserData(_) | Value::Error(_) => "userdata",
        Value::Integer(_) => "number",
        other => other.type_name(),
    }
}

/// Makes a function of scripts.
pub(crate) fn function<R: IntoLuaMulti>(
    lua: &Lua,
    body: impl Fn(&Arguments) -> Outcome<R> + 'static,
) -> mlua::Result<Function> {
    let inner = lua.create_function(move |lua, values: Variadic<Value>| {
        let arguments = Arguments { lua, values: values.into() };
        let (succeeded, mut results) = match body(&arguments) {
            Ok(results) => (true, results.into_lua_multi(lua)?),
            Err(failure) => (false, MultiValue::from_vec(vec![failure.into_value(lua)?])),
        };
        results.push_front(Value::Boolean(succeeded));
        Ok(results)
    })?;
    frames::raising(lua, inner)
}

/// Sets a function as the field `name` of `table`.
pub(crate) fn set<R: IntoLuaMulti>(
    lua: &Lua,
    table: &Table,
    name: &str,
    body: impl Fn(&Arguments) -> Outcome<R> + 'static,
) -> mlua::Result<()> {
    table.raw_set(name, function(lua, body)?)
}
