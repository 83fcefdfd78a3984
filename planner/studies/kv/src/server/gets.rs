// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Gets that the processor answers, and how its cache is filled with what is asked for.

use super::Inner;
use crate::entry::{Entry, Slot};
use crate::error::KvError;
use crate::item::{Check, check};
use crate::layout::Hash;
use crate::locks::Guard;
use crate::lookup::Found;
use crate::message::{Copies, Reply};
use crate::reader::{Index, Reader};
use freeport_study_verbs::{Memory, Verbs};
use std::rc::Rc;

impl<V: Verbs> Inner<V> {
    /// Gets by A2 and A3.
    pub(super) async fn get(&self, key: &[u8], index: Index) -> Result<Reply, KvError> {
        Ok(match self.find(key, index).await? {
            Found::Value(value, ..) => Reply::Value(value, Copies::default()),
            Found::None => Reply::None,
            Found::Changing => Reply::Changing,
        })
    }

    /// Gets by A5.
    pub(super) fn get_cached(self: &Rc<Self>, key: Vec<u8>, wants_copies: bool) -> Reply {
        let copies = self.cache.borrow_mut().request(&key).cloned();
        if let Some(copies) = copies {
            let place = self.random.borrow_mut().usize(..copies.at.len());
            let item = self.verbs.memory().load(copies.at[place], copies.bytes as usize);
            if let Check::Value(value) = check(&item, &key, |_| true) {
                return Reply::Value(value, if wants_copies { copies } else { Copies::default() });
            }
        }
        let entries = self.entries(&key);
        let Some(first) = entries.first() else { return Reply::None };
        let is_wanted = self.cache.borrow_mut().wants(&key, first.bytes);
        // If the key is locked, it is being cached, or a put will do that.
        if let Some(guard) = is_wanted.then(|| self.locks.try_lock(&key)).flatten() {
            let inner = Rc::clone(self);
            self.verbs.spawn(async move { inner.fill(key, guard).await });
        }
        Reply::Entries(entries)
    }

    /// Returns all entries that may be a key's.
    fn entries(&self, key: &[u8]) -> Vec<Entry> {
        let hash = Hash::of(key);
        let mut entries = vec![];
        for bucket in self.layout.probes(hash) {
            let mut is_last = false;
            for slot in Slot::of_bucket(&self.bucket(bucket)) {
                match slot {
                    Slot::Live(entry) if entry.fingerprint == hash.fingerprint() => {
                        entries.push(entry);
                    }
                    Slot::Unused => is_last = true,
                    _ => {}
                }
            }
            if is_last {
                break;
            }
        }
        entries
    }

    /// Returns a bucket of the first copy of the index.
    pub(super) fn bucket(&self, bucket: u64) -> Vec<u8> {
        let at = self.layout.soc_bucket(bucket, 0);
        self.verbs.memory().load(at, self.layout.bucket_bytes as usize)
    }

    /// Caches a key that was asked for. The lock keeps puts away until then.
    async fn fill(self: Rc<Self>, key: Vec<u8>, _guard: Guard) {
        let (verbs, layout) = (&self.verbs, &self.layout);
        let reader = Reader { verbs, layout, index: Index::Own(0), way: self.options.way };
        let found = crate::lookup::search(&reader, &self.options, layout, &key).await;
        // A later request tries again.
        let Ok(Found::Value(value, ..)) = found else { return };
        let version = self.next_version();
        self.cache.borrow_mut().fill(verbs.memory(), version, &key, &value);
    }
}
