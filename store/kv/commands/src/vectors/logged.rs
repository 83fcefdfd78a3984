// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Updates by functions of a user, in the log: as bytes, not as calls. So a log has the same result
//! with other functions, or with none.
//!
//! The command in the log is `SETRANGE key 0 value`. It writes the value where it lies, so it needs
//! no memory, and the expiry stays, as in the update itself.

use freeport_kv_functions::{Function, Kind, Registry, Update};

use super::function::find;
use crate::database::Database;
use crate::store::Store;

impl Database<'_> {
    /// Leaves the new bytes of a string for the log, if there is one and `function` is a user's.
    /// Built-in functions are logged as they are called.
    #[inline]
    pub fn log_update(&mut self, function: &Function<'_, Update>, key: &[u8]) {
        if self.effects.records && matches!(function, Function::User(_)) {
            self.log_string(key);
        }
    }

    #[cold]
    fn log_string(&mut self, key: &[u8]) {
        let Some(keyspace) = self.keyspace(key) else { return };
        let Ok(Some(value)) = keyspace.string(key, self.now_ms()) else { return };
        let words = [&b"SETRANGE"[..], key, b"0", value].map(<[u8]>::to_vec);
        self.effects.logged = Some(words.into());
    }
}

impl Store {
    /// Number of bytes that the log gets in place of a command, if it is an update by a function of
    /// a user: those of the value. None also if the shard of its key is not here.
    #[inline]
    pub fn update_bytes(&self, database: u16, arguments: &[&[u8]], now_ms: u64) -> Option<u64> {
        match self.functions().user_functions() {
            0 => None,
            _ => self.update_bytes_by_name(database, arguments, now_ms),
        }
    }

    fn update_bytes_by_name(&self, database: u16, arguments: &[&[u8]], now_ms: u64) -> Option<u64> {
        let [command, key, function, ..] = *arguments else { return None };
        let is_update =
            [&b"kv.update"[..], b"kv.updatev"].iter().any(|it| command.eq_ignore_ascii_case(it));
        let registry = self.functions();
        if !is_update || find(registry, Kind::Update, function).ok()?.id < Registry::FIRST_USER_ID {
            return None;
        }
        let number = self.shard_of(key);
        let keyspace = self.has(number).then(|| self.shard(number))?.database(database)?;
        keyspace.string(key, now_ms).ok().flatten().map(|value| value.len() as u64)
    }
}
