// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `FUNCTION` and `FCALL`: libraries of functions. A library is a text whose run registers them.

use crate::caller::Caller;
use crate::header::{self, Flags};
use crate::machine::{Ended, Machine};
use crate::native::set;
use crate::register::register;
use crate::registration::{Registered, Registration};
use crate::run::{Run, admit};
use crate::settings::{Purpose, Settings, TooLittleMemory};
use crate::{api, payload, sandbox};
use freeport_kv_protocol::resp::{Version, Writer};
use mlua::{Function, Table, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Libraries of a worker thread.
pub struct Libraries {
    settings: Settings,
    machine: Machine,
    /// The globals of a library while it is loaded.
    loading: Table,
    known: BTreeMap<String, Library>,
}

#[derive(Clone)]
struct Library {
    code: Rc<[u8]>,
    functions: Vec<Registered>,
}

/// The treatment of existing libraries by `FUNCTION RESTORE`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RestorePolicy {
    /// Deletes all of them.
    Flush,
    /// Keeps them; one with the name of a restored one is an error.
    #[default]
    Append,
    /// Replaces those with the name of a restored one.
    Replace,
}

const CHUNK: &str = "user_function";

impl Libraries {
    /// No libraries.
    ///
    /// # Errors
    /// The limit of memory is below about 100 KiB.
    pub fn new(settings: Settings) -> Result<Self, TooLittleMemory> {
        let make = || {
            let machine = Machine::new(&settings, Purpose::Functions)?;
            let loading = loading_globals(&machine, &settings)?;
            Ok::<_, mlua::Error>((machine, loading))
        };
        let (machine, loading) = make().map_err(|_| TooLittleMemory(settings.memory_bytes))?;
        Ok(Self { settings, machine, loading, known: BTreeMap::new() })
    }

    /// `FUNCTION LOAD`: runs the code of a library, and returns its name. A library that has the
    /// name is an error unless it is replaced.
    ///
    /// # Errors
    /// The error reply. No library has changed.
    pub fn load(
        &mut self,
        code: &[u8],
        replace: bool,
        caller: &mut dyn Caller,
    ) -> Result<String, String> {
        let (name, _) = header::library(code)?;
        if !replace && self.known.contains_key(&name) {
            return Err(format!("ERR Library '{name}' already exists"));
        }
        let library = self.make(code, caller)?;
        let others = self.known.iter().filter(|(other, _)| **other != name);
        check_names(&library, others.map(|(_, library)| library))?;
        self.known.insert(name.clone(), library);
        Ok(name)
    }

    /// `FUNCTION DELETE`: whether there was such a library.
    pub fn delete(&mut self, name: &[u8]) -> bool {
        let name = std::str::from_utf8(name);
        name.is_ok_and(|name| self.known.remove(name).is_some())
    }

    /// `FUNCTION FLUSH`: forgets all libraries, and frees their memory.
    ///
    /// # Errors
    /// The limit of memory is too low; the libraries stay.
    pub fn flush(&mut self) -> Result<(), TooLittleMemory> {
        *self = Self::new(self.settings)?;
        Ok(())
    }

    /// Number of libraries.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// There is no library.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Number of functions of all libraries.
    pub fn function_count(&self) -> usize {
        self.known.values().map(|library| library.functions.len()).sum()
    }

    /// Bytes of the state of Lua, with the libraries.
    pub fn memory_bytes(&self) -> usize {
        self.machine.memory_bytes()
    }

    /// Flags of a function; `None` if there is none of this name.
    pub fn flags(&self, function: &[u8]) -> Option<Flags> {
        self.find(function).map(|found| found.flags)
    }

    /// `FUNCTION LIST`: appends the reply, with the libraries whose name `matches`.
    pub fn list(
        &self,
        matches: impl Fn(&[u8]) -> bool,
        with_code: bool,
        version: Version,
        reply: &mut Vec<u8>,
    ) {
        let chosen = || self.known.iter().filter(|(name, _)| matches(name.as_bytes()));
        let mut writer = Writer::new(reply, version);
        writer.array(chosen().count());
        for (name, library) in chosen() {
            writer.map(if with_code { 4 } else { 3 });
            writer.bulk(b"library_name");
            writer.bulk(name.as_bytes());
            writer.bulk(b"engine");
            writer.bulk(b"LUA");
            writer.bulk(b"functions");
            writer.array(library.functions.len());
            library.functions.iter().for_each(|function| list_function(function, &mut writer));
            if with_code {
                writer.bulk(b"library_code");
                writer.bulk(&library.code);
            }
        }
    }

    /// `FUNCTION DUMP`: all libraries as bytes, which Redis 7 restores too.
    pub fn dump(&self) -> Vec<u8> {
        payload::write(self.known.values().map(|library| &*library.code))
    }

    /// `FUNCTION RESTORE`: adds the libraries of a dump.
    ///
    /// # Errors
    /// The error reply. No library has changed.
    pub fn restore(
        &mut self,
        dump: &[u8],
        policy: RestorePolicy,
        caller: &mut dyn Caller,
    ) -> Result<(), String> {
        let mut result =
            if policy == RestorePolicy::Flush { BTreeMap::new() } else { self.known.clone() };
        let mut restored = BTreeMap::new();
        for code in payload::read(dump)? {
            let (name, _) = header::library(&code)?;
            if policy == RestorePolicy::Append && result.contains_key(&name)
                || restored.contains_key(&name)
            {
                return Err(format!("ERR Library {name} already exists"));
            }
            let library = self.make(&code, caller)?;
            result.remove(&name);
            restored.insert(name, library);
        }
        for (name, library) in restored {
            check_names(&library, result.values())?;
            result.insert(name, library);
        }
        self.known = result;
        Ok(())
    }

    /// `FCALL`: runs a function, and appends its reply.
    pub fn call(
        &mut self,
        function: &[u8],
        run: &Run,
        caller: &mut dyn Caller,
        reply: &mut Vec<u8>,
    ) {
        let Some(found) = self.find(function).cloned() else {
            return Writer::new(reply, run.version).error("ERR Function not found");
        };
        if let Err(error) = admit(found.flags, run.read_only, caller) {
            return Writer::new(reply, run.version).error(&error);
        }
        let lists = self
            .machine
            .strings(run.keys)
            .and_then(|keys| Ok((keys, self.machine.strings(run.arguments)?)));
        let ended = match lists {
            Ok(lists) => self.machine.run(&found.callback, lists, Some(&found.name), caller),
            Err(error) => Ended::lack_of(&error),
        };
        self.machine.reply(ended, run.version, reply);
    }

    fn find(&self, function: &[u8]) -> Option<&Registered> {
        let mut functions = self.known.values().flat_map(|library| &library.functions);
        functions.find(|known| known.name.as_bytes().eq_ignore_ascii_case(function))
    }

    /// Runs the code of a library.
    fn make(&mut self, code: &[u8], caller: &mut dyn Caller) -> Result<Library, String> {
        let (_, text) = header::library(code)?;
        let function = self
            .machine
            .compile(text, CHUNK)
            .map_err(|error| format!("ERR Error compiling function: {error}"))?;
        let (ended, functions) = self
            .register(&function, caller)
            .map_err(|error| format!("ERR Error registering functions: {error}"))?;
        match ended {
            Ended::Failed(text) => {
                let text = String::from_utf8_lossy(&text);
                Err(format!("ERR Error registering functions: {text}"))
            }
            Ended::Returned(_) if functions.is_empty() => Err("ERR No functions registered".into()),
            Ended::Returned(_) => Ok(Library { code: code.into(), functions }),
        }
    }

    fn register(
        &mut self,
        function: &Function,
        caller: &mut dyn Caller,
    ) -> mlua::Result<(Ended, Registration)> {
        let usual: Value = self.machine.front.raw_get("__index")?;
        self.machine.front.raw_set("__index", &self.loading)?;
        self.machine.session.registration.replace(Some(vec![]));
        let ended = self.machine.run(function, (), None, caller);
        let functions = self.machine.session.registration.take().unwrap_or_default();
        self.machine.front.raw_set("__index", usual)?;
        Ok((ended, functions))
    }
}

/// An error if another library has a function of the same name, in any case.
fn check_names<'a>(
    library: &Library,
    others: impl Iterator<Item = &'a Library>,
) -> Result<(), String> {
    let mut known = others.flat_map(|other| &other.functions);
    let is_same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    let clash =
        known.find(|known| library.functions.iter().any(|new| is_same(&new.name, &known.name)));
    match clash {
        Some(known) => Err(format!("ERR Function {} already exists", known.name)),
        None => Ok(()),
    }
}

fn list_function(function: &Registered, writer: &mut Writer) {
    writer.map(3);
    writer.bulk(b"name");
    writer.bulk(function.name.as_bytes());
    writer.bulk(b"description");
    match &function.description {
        Some(description) => writer.bulk(description),
        None => writer.null(),
    }
    writer.bulk(b"flags");
    writer.set(function.flags.names().count());
    function.flags.names().for_each(|name| writer.status(name));
}

fn loading_globals(machine: &Machine, settings: &Settings) -> mlua::Result<Table> {
    let lua = &machine.lua;
    let redis = api::common(lua, &machine.session, settings)?;
    let session = machine.session.clone();
    set(lua, &redis, "register_function", move |arguments| register(arguments, &session))?;
    // A missing name is an error, in the table too.
    redis.set_metatable(machine.globals.metatable())?;
    let globals = lua.create_table()?;
    globals.raw_set("redis", sandbox::readonly(lua, &redis)?)?;
    globals.set_metatable(machine.globals.metatable())?;
    Ok(globals)
}
