// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts and functions of a server.
//!
//! Every worker has a Lua state, in which it executes the scripts of its clients while it holds all
//! shards. The texts are the server's: a script that one worker was given is known to all.

mod caller;
mod library;

pub use caller::ScriptCaller;
pub use library::{Function, Library};

use freeport_kv_scripting::{Libraries, Scripts, Settings};

use crate::shared::Shared;

/// The Lua states of a worker.
pub struct Engine {
    /// Scripts.
    pub scripts: Scripts,
    /// Functions.
    pub functions: Libraries,
    /// Versions of the server's scripts and functions that this worker has.
    scripts_version: u64,
    functions_version: u64,
}

impl Engine {
    /// States without scripts.
    pub fn new() -> Self {
        let settings = Settings::default();
        Self {
            scripts: Scripts::new(settings).expect("the limit suffices for an empty state"),
            functions: Libraries::new(settings).expect("the limit suffices for an empty state"),
            scripts_version: 0,
            functions_version: 0,
        }
    }

    /// Forgets scripts if another worker's client has flushed them.
    pub fn follow_scripts(&mut self, shared: &Shared) {
        let version = shared.library.scripts_version();
        if version != self.scripts_version {
            self.scripts.flush().expect("the limit suffices for an empty state");
            self.scripts_version = version;
        }
    }

    /// Takes the functions that the server has now.
    pub fn follow_functions(&mut self, shared: &Shared) {
        if let Some((version, dump)) = shared.library.functions_since(self.functions_version) {
            let policy = freeport_kv_scripting::RestorePolicy::Flush;
            // Libraries that one worker could load can be loaded by the others.
            let _ = self.functions.restore(&dump, policy, &mut caller::Silent);
            self.functions_version = version;
        }
    }

    /// Takes the functions that the server has recovered, and lets it know how many they are.
    pub fn count_functions(&mut self, shared: &Shared) {
        self.follow_functions(shared);
        shared.library.set_counts((self.functions.len(), self.functions.function_count()));
    }

    /// Makes this worker's functions those of the server. Returns their version and bytes.
    pub fn share_functions(&mut self, shared: &Shared) -> (u64, Vec<u8>) {
        let dump = self.functions.dump();
        self.functions_version = shared
            .library
            .set_functions(dump.clone(), (self.functions.len(), self.functions.function_count()));
        (self.functions_version, dump)
    }
}
