// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Texts of scripts and functions, which all workers share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use freeport_kv_commands::Error;

/// Scripts and functions of a server.
#[derive(Debug, Default)]
pub struct Library {
    scripts: Mutex<HashMap<Vec<u8>, Arc<[u8]>>>,
    scripts_version: AtomicU64,
    /// All libraries of functions, as `FUNCTION DUMP` writes them.
    functions: Mutex<Arc<[u8]>>,
    functions_version: AtomicU64,
    is_kill_wanted: AtomicBool,
    /// A script runs; it holds all shards, so there is only one.
    is_running: AtomicBool,
    /// The running script is a function.
    is_function: AtomicBool,
    /// The running function.
    function: Mutex<Option<Function>>,
    /// Numbers of libraries and of functions.
    counts: Mutex<(usize, usize)>,
    /// The running script has written.
    has_written: AtomicBool,
    /// Scripts may call all commands, as test suites need it.
    pub allows_all: AtomicBool,
}

/// A function that is running.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Vec<u8>,
    /// The command that has called it, with all arguments.
    pub command: Vec<Vec<u8>>,
    /// When it began.
    pub started: Instant,
}

impl Library {
    /// Number of times that scripts were flushed.
    pub fn scripts_version(&self) -> u64 {
        self.scripts_version.load(Ordering::Acquire)
    }

    /// Remembers the text of a script by its hash in lower case.
    pub fn add_script(&self, hash: &[u8], text: &[u8]) {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.entry(hash.to_vec()).or_insert_with(|| text.into());
    }

    /// Text of a script.
    pub fn script(&self, hash: &[u8]) -> Option<Arc<[u8]>> {
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.get(&hash.to_ascii_lowercase()).cloned()
    }

    /// Number of texts of scripts.
    pub fn cached_scripts(&self) -> usize {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Forgets all scripts.
    pub fn flush_scripts(&self) {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.scripts_version.fetch_add(1, Ordering::AcqRel);
    }

    /// The functions and their version, if that is not the given one.
    pub fn functions_since(&self, version: u64) -> Option<(u64, Arc<[u8]>)> {
        if self.functions_version.load(Ordering::Acquire) == version {
            return None;
        }
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        Some((self.functions_version.load(Ordering::Acquire), functions.clone()))
    }

    /// Replaces all functions; returns their version.
    pub fn set_functions(&self, dump: Vec<u8>, counts: (usize, usize)) -> u64 {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        *functions = dump.into();
        self.functions_version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Sets the functions that were recovered, before the first worker starts.
    pub fn recover_functions(&self, version: u64, dump: Vec<u8>) {
        *self.functions.lock().unwrap_or_else(PoisonError::into_inner) = dump.into();
        self.functions_version.store(version, Ordering::Release);
    }

    /// Sets the numbers of libraries and of functions.
    pub fn set_counts(&self, counts: (usize, usize)) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    /// Error of commands that a running script keeps waiting for too long.
    pub fn busy(&self) -> Error {
        const SCRIPT: Error = Error::fixed(
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
             NOSAVE.",
        );
        const FUNCTION: Error = Error::fixed(
            "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN \
             NOSAVE.",
        );
        if self.is_function.load(Ordering::Acquire) { FUNCTION } else { SCRIPT }
    }

    /// Stops the script or function that is running, at its next check.
    ///
    /// # Errors
    /// None is running, it has written, and values would stay half changed, or it is of the other
    /// kind.
    pub fn kill(&self, is_function: bool) -> Result<(), Error> {
        const NOT_BUSY: Error = Error::fixed("NOTBUSY No scripts in execution right now.");
        const UNKILLABLE: Error = Error::fixed(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You \
             can either wait the script termination or kill the server in a hard way using the \
             SHUTDOWN NOSAVE command.",
        );
        if !self.is_running.load(Ordering::Acquire) {
            return Err(NOT_BUSY);
        }
        if self.has_written.load(Ordering::Acquire) {
            return Err(UNKILLABLE);
        }
        if self.is_function.load(Ordering::Acquire) != is_function {
            return Err(self.busy());
        }
        self.is_kill_wanted.store(true, Ordering::Release);
        Ok(())
    }

    /// Numbers of libraries and of functions.
    pub fn counts(&self) -> (usize, usize) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running function, if there is one.
    ///
    /// # Errors
    /// A script is running.
    pub fn function(&self) -> Result<Option<Function>, Error> {
        match self.is_running.load(Ordering::Acquire) {
            false => Ok(None),
            true if !self.is_function.load(Ordering::Acquire) => Err(self.busy()),
            true => Ok(self.function.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }

    /// A script or function begins. A wish that came too late for an earlier one is not for this
    /// one.
    pub fn begin(&self, function: Option<Function>) {
        self.is_function.store(function.is_some(), Ordering::Release);
        *self.function.lock().unwrap_or_else(PoisonError::into_inner) = function;
        self.is_kill_wanted.store(false, Ordering::Release);
        self.has_written.store(false, Ordering::Release);
        self.is_running.store(true, Ordering::Release);
    }

    /// The running script writes, and is executed to its end.
    pub fn writes(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    /// The script has ended.
    pub fn end(&self) {
        self.is_running.store(false, Ordering::Release);
    }

    /// The running script has to stop.
    pub fn is_kill_wanted(&self) -> bool {
        self.is_kill_wanted.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_by_their_hash_in_any_case() {
        let library = Library::default();
        library.add_script(b"abc0", b"return 1");
        assert_eq!(library.script(b"ABC0").as_deref(), Some(&b"return 1"[..]));
        library.flush_scripts();
        assert!(library.script(b"abc0").is_none());
        assert_eq!(library.scripts_version(), 1);
    }

    #[test]
    fn a_script_can_be_stopped_until_it_writes() {
        let library = Library::default();
        let refusal =
            |library: &Library| library.kill(false).expect_err("it is refused").to_string();
        assert!(refusal(&library).starts_with("NOTBUSY "));
        library.begin(None);
        assert!(library.kill(false).is_ok() && library.is_kill_wanted());
        assert!(library.kill(true).is_err());
        library.begin(None);
        assert!(!library.is_kill_wanted());
        library.writes();
        assert!(refusal(&library).starts_with("UNKILLABLE "));
        library.end();
        assert!(refusal(&library).starts_with("NOTBUSY "));
    }

    #[test]
    fn functions_have_versions() {
        let library = Library::default();
        assert!(library.functions_since(0).is_none());
        assert_eq!(library.set_functions(vec![1], (1, 2)), 1);
        assert_eq!(library.counts(), (1, 2));
        let (version, dump) = library.functions_since(0).expect("they changed");
        assert_eq!((version, &dump[..]), (1, &[1][..]));
        assert!(library.functions_since(1).is_none());
    }
}
