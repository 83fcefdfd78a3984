// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Texts of scripts and functions, which all workers share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Scripts and functions of a server.
#[derive(Debug, Default)]
pub struct Library {
    scripts: Mutex<HashMap<Vec<u8>, Arc<[u8]>>>,
    scripts_version: AtomicU64,
    /// All libraries of functions, as `FUNCTION DUMP` writes them.
    functions: Mutex<Arc<[u8]>>,
    functions_version: AtomicU64,
    is_kill_wanted: AtomicBool,
    /// Scripts may call all commands, as test suites need it.
    pub allows_all: AtomicBool,
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
    pub fn set_functions(&self, dump: Vec<u8>) -> u64 {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        *functions = dump.into();
        self.functions_version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Stops the script that is running, at its next check.
    pub fn kill(&self) {
        self.is_kill_wanted.store(true, Ordering::Release);
    }

    /// A script begins, or ends at the wish of a client.
    pub fn take_kill(&self) -> bool {
        self.is_kill_wanted.swap(false, Ordering::AcqRel)
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
    fn functions_have_versions() {
        let library = Library::default();
        assert!(library.functions_since(0).is_none());
        assert_eq!(library.set_functions(vec![1]), 1);
        let (version, dump) = library.functions_since(0).expect("they changed");
        assert_eq!((version, &dump[..]), (1, &[1][..]));
        assert!(library.functions_since(1).is_none());
    }
}
