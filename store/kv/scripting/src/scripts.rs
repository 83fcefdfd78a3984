// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `EVAL`, `EVALSHA` and `SCRIPT`: scripts, known by the hash of their text.

use crate::caller::Caller;
use crate::hash::hash;
use crate::header::{self, Flags};
use crate::machine::{Ended, Machine};
use crate::run::{Run, admit};
use crate::settings::{Purpose, Settings, TooLittleMemory};
use freeport_kv_protocol::resp::Writer;
use mlua::Function;
use std::collections::HashMap;

/// Scripts of a worker thread.
pub struct Scripts {
    settings: Settings,
    machine: Machine,
    known: HashMap<String, Script>,
}

#[derive(Clone)]
struct Script {
    function: Function,
    flags: Flags,
    /// It came by `SCRIPT LOAD`, and is kept until it is flushed.
    is_loaded: bool,
}

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
const CHUNK: &str = "user_script";

impl Scripts {
    /// No scripts.
    ///
    /// # Errors
    /// The limit of memory is below about 100 KiB.
    pub fn new(settings: Settings) -> Result<Self, TooLittleMemory> {
        let machine = Machine::new(&settings, Purpose::Scripts);
        let machine = machine.map_err(|_| TooLittleMemory(settings.memory_bytes))?;
        Ok(Self { settings, machine, known: HashMap::new() })
    }

    /// Runs a script, and appends its reply. The script is known from now on.
    pub fn eval(&mut self, script: &[u8], run: &Run, caller: &mut dyn Caller, reply: &mut Vec<u8>) {
        let hash = hash(script);
        match self.find_or_compile(&hash, script, false) {
            Ok(script) => self.run(&hash, &script, run, caller, reply),
            Err(error) => Writer::new(reply, run.version).error(&error),
        }
    }

    /// Runs the script with this hash, in hexadecimal, and appends its reply.
    pub fn eval_sha(
        &mut self,
        hash: &[u8],
        run: &Run,
        caller: &mut dyn Caller,
        reply: &mut Vec<u8>,
    ) {
        match self.find(hash).map(|(hash, script)| (hash.clone(), script.clone())) {
            Some((hash, script)) => self.run(&hash, &script, run, caller, reply),
            None => Writer::new(reply, run.version).error(NO_SCRIPT),
        }
    }

    /// `SCRIPT LOAD`: compiles a script, and returns its hash.
    ///
    /// # Errors
    /// The text is no script, with the error reply.
    pub fn load(&mut self, script: &[u8]) -> Result<String, String> {
        let hash = hash(script);
        self.find_or_compile(&hash, script, true)?;
        Ok(hash)
    }

    /// The hash by which a script is known: its SHA-1 in hexadecimal.
    pub fn hash(script: &[u8]) -> String {
        hash(script)
    }

    /// `SCRIPT EXISTS`: whether the script with this hash is known.
    pub fn exists(&self, hash: &[u8]) -> bool {
        self.find(hash).is_some()
    }

    /// `SCRIPT FLUSH`: forgets all scripts, and frees their memory.
    ///
    /// # Errors
    /// The limit of memory is too low; the scripts stay.
    pub fn flush(&mut self) -> Result<(), TooLittleMemory> {
        *self = Self::new(self.settings)?;
        Ok(())
    }

    /// Number of known scripts.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// No script is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Bytes of the state of Lua, with the scripts.
    pub fn memory_bytes(&self) -> usize {
        self.machine.memory_bytes()
    }

    fn find(&self, hash: &[u8]) -> Option<(&String, &Script)> {
        let hash = std::str::from_utf8(hash).ok()?.to_ascii_lowercase();
        self.known.get_key_value(&hash)
    }

    fn find_or_compile(
        &mut self,
        hash: &str,
        script: &[u8],
        is_loaded: bool,
    ) -> Result<Script, String> {
        if let Some(known) = self.known.get_mut(hash) {
            known.is_loaded |= is_loaded;
            return Ok(known.clone());
        }
        let (flags, text) = header::script(script)?;
        self.make_room();
        let function = self
            .machine
            .compile(text, CHUNK)
            .map_err(|error| format!("ERR Error compiling script (new function): {error}"))?;
        let script = Script { function, flags, is_loaded };
        self.known.insert(hash.into(), script.clone());
        Ok(script)
    }

    /// If memory is short, forgets scripts that came by `EVAL`, which sends them again.
    fn make_room(&mut self) {
        if self.memory_bytes() / 3 > self.settings.memory_bytes / 4 {
            self.known.retain(|_, script| script.is_loaded);
            self.machine.collect_all();
        }
    }

    fn run(
        &mut self,
        hash: &str,
        script: &Script,
        run: &Run,
        caller: &mut dyn Caller,
        reply: &mut Vec<u8>,
    ) {
        if let Err(error) = admit(script.flags, run.read_only, caller) {
            return Writer::new(reply, run.version).error(&error);
        }
        let ended = match self.set_arguments(run) {
            Ok(()) => self.machine.run(&script.function, (), Some(hash), caller),
            Err(error) => Ended::lack_of(&error),
        };
        self.machine.reply(ended, run.version, reply);
    }

    fn set_arguments(&self, run: &Run) -> mlua::Result<()> {
        self.machine.globals.raw_set("KEYS", self.machine.strings(run.keys)?)?;
        self.machine.globals.raw_set("ARGV", self.machine.strings(run.arguments)?)
    }
}
