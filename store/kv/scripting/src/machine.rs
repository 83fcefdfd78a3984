// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A state of Lua with its sandbox: what scripts find in it, and how one of them runs. Scripts and
//! functions have a state each, as their globals differ.

use crate::caller::Caller;
use crate::native::{Failure, function, message};
use crate::session::Session;
use crate::settings::{Purpose, Settings};
use crate::to_reply::{error_line, line, to_reply};
use crate::{api, bit, frames, json, packing, pickle, sandbox};
use freeport_kv_protocol::resp::{Version, Writer};
use mlua::chunk::ChunkMode;
use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value};
use std::rc::Rc;

/// Standard functions that scripts have, beside the tables.
const KEPT: [&str; 22] = [
    "_VERSION",
    "assert",
    "collectgarbage",
    "coroutine",
    "error",
    "gcinfo",
    "getmetatable",
    "ipairs",
    "math",
    "next",
    "pairs",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
];
/// Runs after which garbage is collected a little, also if a script has switched that off.
const RUNS_BETWEEN_COLLECTIONS: u32 = 50;

/// A state of Lua.
pub(crate) struct Machine {
    pub(crate) lua: Lua,
    pub(crate) session: Rc<Session>,
    /// The table from which the front of globals reads.
    pub(crate) globals: Table,
    /// The metatable of the front of globals.
    pub(crate) front: Table,
    runner: Function,
    instructions: u32,
    memory_bytes: usize,
    runs: u32,
}

/// How a run ended.
pub(crate) enum Ended {
    /// With a result.
    Returned(Value),
    /// With an error, whose text is that of the reply.
    Failed(Vec<u8>),
}

impl Ended {
    /// A run that could not begin.
    pub(crate) fn lack_of(error: &mlua::Error) -> Self {
        Self::Failed(format!("ERR {}", message(error)).into_bytes())
    }
}

impl Machine {
    /// A new state.
    pub(crate) fn new(settings: &Settings, purpose: Purpose) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(libraries, options)?;
        lua.set_memory_limit(settings.memory_bytes)?;
        let session = Rc::new(Session::default());
        frames::register_session(&lua, &session)?;
        let (globals, front) = build(&lua, &session, settings, purpose)?;
        let runner = frames::runner(&lua)?;
        let (instructions, memory_bytes) =
            (settings.instructions_between_checks, settings.memory_bytes);
        Ok(Self { lua, session, globals, front, runner, instructions, memory_bytes, runs: 0 })
    }

    /// Compiles a text whose errors name it `name`.
    ///
    /// # Errors
    /// The text is no program, with the place and the reason.
    pub(crate) fn compile(&self, text: &[u8], name: &str) -> Result<Function, String> {
        compile(&self.lua, text, &format!("@{name}")).map_err(|error| message(&error))
    }

    /// Runs a function. `title` names it in its error, which has its place only with a title.
    pub(crate) fn run(
        &mut self,
        function: &Function,
        arguments: impl IntoLuaMulti,
        title: Option<&str>,
        caller: &mut dyn Caller,
    ) -> Ended {
        let session = self.session.clone();
        let result = session.run(caller, || self.run_protected(function, arguments));
        let ended = match result {
            Ok((0, value)) => Ended::Returned(value),
            Ok((_, error)) => self.failed(&error, title),
            Err(error) => Ended::lack_of(&error),
        };
        self.collect();
        ended
    }

    /// Appends the result as a reply.
    pub(crate) fn reply(&self, ended: Ended, version: Version, reply: &mut Vec<u8>) {
        match ended {
            Ended::Returned(value) => {
                to_reply(value, self.session.version.get(), version, reply);
            }
            Ended::Failed(text) => line(b'-', &error_line(&text), &mut Writer::new(reply, version)),
        }
    }

    /// A table of strings.
    pub(crate) fn strings(&self, texts: &[&[u8]]) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(texts.len(), 0)?;
        for (place, text) in texts.iter().enumerate() {
            table.raw_set(place + 1, self.lua.create_string(text)?)?;
        }
        Ok(table)
    }

    /// Frees what nothing refers to.
    pub(crate) fn collect_all(&self) {
        // There is no finalizer that could fail.
        let _ = self.lua.gc_collect();
    }

    /// Bytes of the state.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    fn run_protected(
        &self,
        function: &Function,
        arguments: impl IntoLuaMulti,
    ) -> mlua::Result<(i32, Value)> {
        frames::watch(&self.lua, self.instructions)?;
        let mut values = arguments.into_lua_multi(&self.lua)?;
        values.push_front(Value::Function(function.clone()));
        self.runner.call(values)
    }

    fn failed(&self, error: &Value, title: Option<&str>) -> Ended {
        let text = match error {
            Value::Table(table) => describe(&self.lua, table, title),
            Value::String(text) => Ok(running(title, &text.as_bytes())),
            Value::Error(error) => Ok(running(title, message(error).as_bytes())),
            _ => Ok(running(title, b"execution failure")),
        };
        let short = |error: mlua::Error| format!("ERR {}", message(&error)).into_bytes();
        Ended::Failed(text.unwrap_or_else(short))
    }

    /// Collects a little now and then, and everything if much is in use.
    fn collect(&mut self) {
        self.runs = self.runs.wrapping_add(1);
        let is_full = self.lua.used_memory() > self.memory_bytes / 2;
        // There is no finalizer that could fail.
        let _ = match (is_full, self.runs.is_multiple_of(RUNS_BETWEEN_COLLECTIONS)) {
            (true, _) => self.lua.gc_collect(),
            (false, true) => {
                self.lua.gc_restart();
                self.lua.gc_step().map(|_| ())
            }
            (false, false) => Ok(()),
        };
    }
}

/// Bytes of an error that is no table, as it is quoted.
const QUOTED_BYTES: usize = 100;

fn running(title: Option<&str>, text: &[u8]) -> Vec<u8> {
    let text = &text[..text.len().min(QUOTED_BYTES)];
    match title {
        Some(title) => [format!("ERR Error running script {title}, ").as_bytes(), text].concat(),
        None => [b"ERR ", text].concat(),
    }
}

/// The text of an error, and where it was raised.
fn describe(lua: &Lua, table: &Table, title: Option<&str>) -> mlua::Result<Vec<u8>> {
    let text_field = |name: &str| {
        let text = lua.coerce_string(table.raw_get(name)?)?;
        Ok::<_, mlua::Error>(text.map(|text| text.as_bytes().to_vec()))
    };
    let mut text = text_field("err")?.unwrap_or_else(|| b"ERR unknown error".to_vec());
    let source = text_field("source")?;
    let line: Option<i64> = table.raw_get("line")?;
    if let (Some(title), Some(source), Some(line)) = (title, source, line) {
        text.extend_from_slice(format!(" script: {title}, on ").as_bytes());
        text.extend_from_slice(&source);
        text.extend_from_slice(format!(":{line}.").as_bytes());
    }
    Ok(text)
}

fn compile(lua: &Lua, text: &[u8], name: &str) -> mlua::Result<Function> {
    lua.load(text).set_name(name).set_mode(ChunkMode::Text).into_function()
}

/// Builds the globals, and puts a front of them in their place. Returns the globals, and the
/// metatable of the front.
fn build(
    lua: &Lua,
    session: &Rc<Session>,
    settings: &Settings,
    purpose: Purpose,
) -> mlua::Result<(Table, Table)> {
    let standard = lua.globals();
    sandbox::guard(lua, &standard)?;
    let globals = lua.create_table()?;
    for name in KEPT {
        globals.raw_set(name, standard.raw_get::<Value>(name)?)?;
    }
    globals.raw_set("pcall", frames::protected_call(lua)?)?;
    globals.raw_set("xpcall", frames::handled_call(lua)?)?;
    add_loaders(lua, &globals)?;
    let math: Table = globals.raw_get("math")?;
    api::add_random(lua, &math, session)?;
    let (os, clock) = (standard.raw_get::<Table>("os")?, lua.create_table()?);
    clock.raw_set("clock", os.raw_get::<Value>("clock")?)?;
    globals.raw_set("os", clock)?;
    globals.raw_set("bit", bit::table(lua)?)?;
    globals.raw_set("cjson", json::table(lua)?)?;
    globals.raw_set("struct", packing::table(lua)?)?;
    globals.raw_set("cmsgpack", pickle::table(lua)?)?;
    globals.raw_set("redis", api::table(lua, session, settings, purpose)?)?;
    if purpose == Purpose::Scripts {
        globals.raw_set("__redis__err__handler", frames::error_handler(lua)?)?;
    }
    let strings: Table = globals.raw_get("string")?;
    protect_tables(lua, &globals)?;
    sandbox::protect_strings(lua, &strings, &globals.raw_get("string")?)?;
    let (front, metatable) = sandbox::globals(lua, &globals)?;
    globals.raw_set("_G", &front)?;
    lua.set_globals(front)?;
    Ok((globals, metatable))
}

/// Replaces the tables of `globals` by fronts.
fn protect_tables(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    let tables: Vec<(LuaString, Value)> = globals.pairs().collect::<mlua::Result<_>>()?;
    for (name, value) in tables {
        if let Value::Table(table) = value {
            globals.raw_set(name, sandbox::readonly(lua, &table)?)?;
        }
    }
    Ok(())
}

/// `load` and `loadstring` take no compiled code, which could do anything.
fn add_loaders(lua: &Lua, globals: &Table) -> mlua::Result<()> {
    let loadstring = function(lua, |arguments| {
        let text = arguments.text(1)?;
        let name = if arguments.is_absent(2) { text.clone() } else { arguments.text(2)? };
        Ok(load(arguments.lua, &text.as_bytes(), &name)?)
    })?;
    let load = function(lua, |arguments| {
        let Some(Value::Function(reader)) = arguments.get(1) else {
            return Err(arguments.mismatch(1, "function"));
        };
        let lua = arguments.lua;
        let name = match arguments.is_absent(2) {
            true => lua.create_string("=(load)")?,
            false => arguments.text(2)?,
        };
        match read(lua, reader)? {
            Ok(text) => Ok(load(lua, &text, &name)?),
            Err(error) => Ok((Value::Nil, error).into_lua_multi(lua)?),
        }
    })?;
    globals.raw_set("loadstring", loadstring)?;
    globals.raw_set("load", load)
}

/// Maximum bytes of a text that a function returns in pieces.
const CODE_BYTES: usize = 64 << 20;

/// All pieces that a function returns, or its error.
fn read(lua: &Lua, reader: &Function) -> Result<Result<Vec<u8>, Value>, Failure> {
    let (call, mut text) = (frames::protected_call(lua)?, vec![]);
    loop {
        let (succeeded, piece): (bool, Value) = call.call(reader)?;
        if text.len() > CODE_BYTES {
            return Err(Failure::State(mlua::Error::MemoryError("the text is too long".into())));
        }
        match piece {
            error if !succeeded => return Ok(Err(error)),
            Value::Nil => return Ok(Ok(text)),
            Value::String(piece) if piece.as_bytes().is_empty() => return Ok(Ok(text)),
            Value::String(piece) => text.extend_from_slice(&piece.as_bytes()),
            piece @ (Value::Integer(_) | Value::Number(_)) => {
                let piece = lua.coerce_string(piece)?;
                text.extend(piece.iter().flat_map(|piece| piece.as_bytes().to_vec()));
            }
            _ => {
                let error = lua.create_string("reader function must return a string")?;
                return Ok(Err(Value::String(error)));
            }
        }
    }
}

/// The function, or nil and the error. Compiled code is read as a text, which it is not: a space
/// before it hides what it is.
fn load(lua: &Lua, text: &[u8], name: &LuaString) -> mlua::Result<MultiValue> {
    let hidden = [b" ", text].concat();
    let is_compiled = text.first() == Some(&b'\x1b');
    // A null ends the name, as in C.
    let name = name.to_string_lossy();
    let name = name.split('\0').next().unwrap_or_default();
    match compile(lua, if is_compiled { &hidden } else { text }, name) {
        Ok(function) => function.into_lua_multi(lua),
        Err(error) => (Value::Nil, message(&error)).into_lua_multi(lua),
    }
}
