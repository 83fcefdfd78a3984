// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server, as a running script sees it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use freeport_kv_commands::{Error, Flags as CommandFlags};
use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_scripting::{Caller, Flags, LogLevel, StopReason};

use super::Function;
use crate::client::Client;
use crate::shared::since_1970;
use crate::worker::Core;

const SHORT_MEMORY: &str = "OOM allow-oom flag is not set on the script, can not run it when used \
                            memory > 'maxmemory'";

/// Commands with effects on other servers or clients, although they are not marked as writes.
const MAY_REPLICATE: [&str; 3] = ["publish", "spublish", "pfcount"];

/// Executes the commands of a script for its client.
pub struct ScriptCaller<'a> {
    core: &'a mut Core,
    client: &'a mut Client,
    /// The script may not write: it says so, or the command does.
    is_read_only: bool,
    has_written: bool,
    started: Instant,
    /// Clients were answered while it runs.
    is_busy: bool,
    /// The script says that it may grow values while memory is short.
    allows_short_memory: bool,
}

impl<'a> ScriptCaller<'a> {
    /// A caller for one script or function.
    pub fn new(
        (core, client): (&'a mut Core, &'a mut Client),
        function: Option<Function>,
        is_read_only: bool,
    ) -> Self {
        core.shared.library.begin(function);
        core.begin_unit();
        core.begin_script_slot();
        core.script_began = Some(since_1970());
        Self {
            core,
            client,
            is_read_only,
            has_written: false,
            started: Instant::now(),
            is_busy: false,
            allows_short_memory: false,
        }
    }

    fn check(&mut self, arguments: &[&[u8]]) -> Result<(), Error> {
        let name = arguments.first().copied().unwrap_or_default();
        let Some(command) = self.core.table.get(name) else {
            return Err(Error::fixed("ERR Unknown Redis command called from script"));
        };
        let spec = &command.spec;
        if spec.check_arity(arguments.len()).is_err() {
            return Err(Error::fixed("ERR Wrong number of args calling Redis command from script"));
        }
        let flags = spec.of(arguments).flags;
        let allows_all = self.core.shared.library.allows_all.load(Ordering::Relaxed);
        if flags.has(CommandFlags::NO_SCRIPT) && !allows_all {
            return Err(Error::fixed("ERR This Redis command is not allowed from script"));
        }
        self.core.check_rights_of_script(self.client, spec, arguments)?;
        let writes = flags.has(CommandFlags::WRITE) || MAY_REPLICATE.contains(&spec.name);
        if self.is_read_only && writes {
            return Err(Error::fixed("ERR Write commands are not allowed from read-only scripts."));
        }
        let spec = *spec;
        self.core.check_route_of_script(self.client, &spec, arguments)?;
        let waits = |argument: &&[u8]| argument.eq_ignore_ascii_case(b"BLOCK");
        let is_read = matches!(spec.name, "xread" | "xreadgroup");
        if is_read && options_of(arguments).any(waits) {
            let name = String::from_utf8_lossy(name);
            let text = format!("ERR {name} command is not allowed with BLOCK option from scripts");
            return Err(Error::new(text));
        }
        // A script that has written continues, so that it is executed to its end.
        let may_grow = self.allows_short_memory || self.has_written;
        if flags.has(CommandFlags::GROWS) && !may_grow && self.core.is_memory_short() {
            return Err(Error::OUT_OF_MEMORY);
        }
        Ok(())
    }
}

/// Arguments of a command that reads streams, in front of their keys.
fn options_of<'a>(arguments: &'a [&'a [u8]]) -> impl Iterator<Item = &'a &'a [u8]> {
    arguments.iter().take_while(|argument| !argument.eq_ignore_ascii_case(b"STREAMS"))
}

impl Caller for ScriptCaller<'_> {
    fn begin(&mut self, flags: Flags) -> Result<(), String> {
        self.is_read_only |= flags.contains(Flags::NO_WRITES);
        self.allows_short_memory = flags.contains(Flags::ALLOW_OOM);
        let is_checked = flags.contains(Flags::UNDECLARED) || self.is_read_only;
        if !is_checked && !self.allows_short_memory && self.core.is_memory_short() {
            return Err(SHORT_MEMORY.into());
        }
        Ok(())
    }

    fn call(&mut self, arguments: &[&[u8]], version: Version, reply: &mut Vec<u8>) {
        if let Err(error) = self.check(arguments) {
            return Writer::new(reply, version).error(error.text());
        }
        let table = self.core.table.clone();
        let Some(command) = table.get(arguments[0]) else { return };
        if !self.has_written && command.spec.of(arguments).flags.has(CommandFlags::WRITE) {
            self.has_written = true;
            self.core.shared.library.writes();
        }
        if !self.core.monitors.is_empty() {
            self.core.show_of_script(self.client, &command.spec, arguments);
        }
        let own_version = std::mem::replace(&mut self.client.session.version, version);
        self.core.run(command, self.client, arguments, reply);
        self.client.session.version = own_version;
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        match level {
            LogLevel::Debug | LogLevel::Verbose => tracing::debug!(script = %text),
            LogLevel::Notice => tracing::info!(script = %text),
            LogLevel::Warning => tracing::warn!(script = %text),
        }
    }

    fn is_allowed(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let command = self.core.table.get(arguments.first()?)?;
        command.spec.check_arity(arguments.len()).ok()?;
        Some(self.core.has_rights(self.client, &command.spec, arguments))
    }

    fn interrupt(&mut self) -> Option<StopReason> {
        if self.core.shared.is_stopping() {
            return Some(StopReason::Killed);
        }
        let busy = Duration::from_millis(self.core.settings.busy_ms);
        if self.started.elapsed() >= busy {
            self.core.answer_while_busy(!std::mem::replace(&mut self.is_busy, true));
        }
        // Values that a script has written stay, so it is executed to its end.
        let is_killed = !self.has_written && self.core.shared.library.is_kill_wanted();
        is_killed.then_some(StopReason::Killed)
    }
}

impl Drop for ScriptCaller<'_> {
    fn drop(&mut self) {
        self.core.end_unit_slot();
        self.core.end_unit();
        self.core.script_began = None;
        self.core.shared.library.end();
    }
}

/// Loads functions that were checked before: they call nothing.
pub struct Silent;

impl Caller for Silent {
    fn call(&mut self, _: &[&[u8]], version: Version, reply: &mut Vec<u8>) {
        Writer::new(reply, version).error("ERR redis.call can only be called inside a script");
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}
}
