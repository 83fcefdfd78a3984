// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `EVAL`, `EVALSHA` and `SCRIPT`: scripts, known by the hash of their text.

use crate::machine::{Ended, Machine, Purpose};
use crate::{Caller, Flags, header};
use freeport_kv_protocol::resp::{Version, Writer};
use mlua::Function;
use sha1::{Digest, Sha1};
use std::collections::HashMap;

/// Limits of scripts, and what they are told of the server.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum bytes of a state of Lua. There is one for scripts, and one for functions.
    pub memory_bytes: usize,
    /// Instructions of Lua between two calls of [`Caller::interrupt`].
    pub instructions_between_checks: u32,
    /// The version of Redis whose behaviour the server has: major, minor, patch.
    pub redis_version: [u8; 3],
}

impl Default for Settings {
    /// 1 GiB, 100000 instructions, version 7.2.4.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            instructions_between_checks: 100_000,
            redis_version: [7, 2, 4],
        }
    }
}

/// The limit of memory does not suffice for an empty state of Lua.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("scripts need more memory than {0} bytes: raise the limit")]
pub struct TooLittleMemory(pub usize);

/// A call of a script or function.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Names of keys.
    pub keys: &'a [&'a [u8]],
    /// Other arguments.
    pub arguments: &'a [&'a [u8]],
    /// Version of the reply.
    pub version: Version,
    /// It comes from a command that may not write, such as `EVAL_RO`: a script that declares that it
    /// writes is refused. The caller refuses single commands.
    pub read_only: bool,
}

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

/// Whether a script or function with these flags may start.
pub(crate) fn admit(flags: Flags, read_only: bool, caller: &mut dyn Caller) -> Result<(), String> {
    let may_write = !flags.contains(Flags::NO_WRITES) && !flags.contains(Flags::UNDECLARED);
    if read_only && may_write {
        return Err("ERR Can not execute a script with write flag using *_ro command.".into());
    }
    caller.begin(flags)
}

/// The SHA-1 of a text, in hexadecimal.
pub(crate) fn hash(text: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    Sha1::digest(text).iter().flat_map(|&byte| digits(byte)).map(char::from).collect()
}
