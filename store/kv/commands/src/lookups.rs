// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys that a command has looked up.

use std::cell::Cell;

use freeport_kv_keyspace::Keyspace;

/// Lookups of one command.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    pub hits: Cell<u32>,
    pub misses: Cell<u32>,
    /// A value was not seen because its time had passed.
    pub has_hidden: Cell<bool>,
}

impl Lookups {
    /// A key was looked up among the keys of a database.
    #[inline]
    pub fn note(&self, keyspace: &Keyspace, is_found: bool) {
        if is_found {
            self.hits.set(self.hits.get() + 1);
        } else {
            self.note_miss();
            if keyspace.take_hidden() {
                self.has_hidden.set(true);
            }
        }
    }

    /// A key was looked up in a database that never had a key.
    #[inline]
    pub fn note_miss(&self) {
        self.misses.set(self.misses.get() + 1);
    }
}
