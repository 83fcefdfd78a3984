// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Puts and deletes, whose steps have an order that makes gets of all alternatives linearizable:
//! see [`ORDER`](crate::layout::ORDER).

use super::Inner;
use crate::entry::{Entry, Slot};
use crate::error::KvError;
use crate::item::{State, encode, item_bytes, state_word};
use crate::layout::{ENTRY_BYTES, Hash, Step};
use crate::lookup::{Found, Position};
use crate::message::Reply;
use crate::reader::Index;
use freeport_study_verbs::{Fault, Memory, Place, Verbs};

/// A change of a key that is under way.
struct Change<'a> {
    key: &'a [u8],
    value: &'a [u8],
    old: Option<Entry>,
    new: Entry,
    position: Position,
    version: u64,
}

impl<V: Verbs> Inner<V> {
    /// Puts a value.
    pub(super) async fn put(&self, key: &[u8], value: &[u8]) -> Result<Reply, KvError> {
        self.check_value(value)?;
        let _guard = self.locks.lock(key).await;
        let found = self.find(key, Index::Own(0)).await?;
        let version = self.next_version();
        let new = self.allocate(key, value, version)?;
        let done = match found {
            Found::Value(_, old, position) => {
                let change = Change { key, value, old: Some(old), new, position, version };
                self.change(&change).await.map_err(KvError::from)
            }
            _ => self.insert(key, value, new, version).await,
        };
        match (done, found_entry(&found)) {
            (Ok(()), Some(old)) => self.blocks.borrow_mut().give(old.at, old.bytes),
            // Nothing has happened yet.
            (Err(KvError::Full(limit)), _) => {
                self.blocks.borrow_mut().give(new.at, new.bytes);
                return Err(KvError::Full(limit));
            }
            (Err(error), _) => return Err(error),
            (Ok(()), None) => {}
        }
        Ok(Reply::Done)
    }

    async fn insert(
        &self,
        key: &[u8],
        value: &[u8],
        new: Entry,
        version: u64,
    ) -> Result<(), KvError> {
        let _inserting = self.inserting.lock().await;
        let position = self.free_position(Hash::of(key))?;
        let change = Change { key, value, old: None, new, position, version };
        Ok(self.change(&change).await?)
    }

    async fn change(&self, change: &Change<'_>) -> Result<(), Fault> {
        for step in &self.options.order {
            match step {
                Step::Write => self.write_pending(change).await?,
                Step::Retire => self.retire(change.key, change.old).await?,
                Step::Publish => {
                    self.publish(change.position, Some(&change.new), change.version).await?;
                }
                Step::Enliven => {
                    self.write_word(change.new.at, state_word(State::Alive, change.version))
                        .await?;
                }
                Step::Fill => {
                    let memory = self.verbs.memory();
                    let Change { key, value, version, .. } = *change;
                    self.cache.borrow_mut().fill(memory, version, key, value);
                }
            }
        }
        Ok(())
    }

    /// Deletes a key. It is gone at the moment when its item is dead and no copy is valid.
    pub(super) async fn delete(&self, key: &[u8]) -> Result<Reply, KvError> {
        let _guard = self.locks.lock(key).await;
        let Found::Value(_, old, position) = self.find(key, Index::Own(0)).await? else {
            return Ok(Reply::None);
        };
        self.retire(key, Some(old)).await?;
        {
            // The entry is free at once in the own index, and must not be used before the host's
            // index has it free as well: writes on their way have no order.
            let locks = self.options.locks_deletes;
            let _inserting = if locks { Some(self.inserting.lock().await) } else { None };
            self.publish(position, None, self.next_version()).await?;
        }
        self.blocks.borrow_mut().give(old.at, old.bytes);
        Ok(Reply::Done)
    }

    async fn write_pending(&self, change: &Change<'_>) -> Result<(), Fault> {
        let item = encode(State::Pending, change.version, change.key, change.value);
        self.verbs.write(Place::Host.at(change.new.at), item, self.options.way).await
    }

    async fn write_word(&self, at: u64, word: u64) -> Result<(), Fault> {
        let word = word.to_le_bytes().to_vec();
        self.verbs.write(Place::Host.at(at), word, self.options.way).await
    }

    async fn retire(&self, key: &[u8], old: Option<Entry>) -> Result<(), Fault> {
        self.cache.borrow_mut().invalidate(self.verbs.memory(), key);
        match old {
            Some(old) => self.write_word(old.at, state_word(State::Dead, old.version)).await,
            None => Ok(()),
        }
    }

    /// Writes an entry to all indexes.
    async fn publish(
        &self,
        position: Position,
        entry: Option<&Entry>,
        version: u64,
    ) -> Result<(), Fault> {
        let bytes = self.publish_here(position, entry, version);
        let at = position.at(self.layout.host_bucket(position.bucket));
        self.verbs.write(Place::Host.at(at), bytes.to_vec(), self.options.way).await
    }

    /// Writes an entry to all indexes in the own memory, and returns its bytes.
    pub(super) fn publish_here(
        &self,
        position: Position,
        entry: Option<&Entry>,
        version: u64,
    ) -> [u8; ENTRY_BYTES as usize] {
        let bytes = Slot::encode(entry, version);
        for copy in 0..self.layout.index_copies {
            let at = position.at(self.layout.soc_bucket(position.bucket, copy));
            self.verbs.memory().store(at, &bytes);
        }
        bytes
    }

    /// Returns the first position for a key that is in no index.
    pub(super) fn free_position(&self, hash: Hash) -> Result<Position, KvError> {
        for bucket in self.layout.probes(hash) {
            for (slot, found) in (0..).zip(Slot::of_bucket(&self.bucket(bucket))) {
                if matches!(found, Slot::Unused | Slot::Deleted) {
                    return Ok(Position { bucket, slot });
                }
            }
        }
        let (buckets, probes) = (self.layout.buckets, self.layout.probes(hash).count());
        Err(KvError::Full(format!(
            "the {probes} buckets that can have the key are full; use more than {buckets} buckets \
             or more than {} entries in each (buckets, bucket_entries)",
            self.options.bucket_entries
        )))
    }

    /// Checks the length of a value.
    pub(super) fn check_value(&self, value: &[u8]) -> Result<(), KvError> {
        let limit = self.options.value_max;
        if value.len() > limit {
            return Err(KvError::Full(format!("values have at most {limit} B (value_max)")));
        }
        Ok(())
    }

    /// Takes memory of the host for an item.
    pub(super) fn allocate(
        &self,
        key: &[u8],
        value: &[u8],
        version: u64,
    ) -> Result<Entry, KvError> {
        let bytes = item_bytes(key, value);
        let at = self.blocks.borrow_mut().take(bytes).ok_or_else(|| {
            let limit = self.options.item_memory;
            KvError::Full(format!("no {bytes} B are free (item_memory = {limit} B)"))
        })?;
        Ok(Entry { fingerprint: Hash::of(key).fingerprint(), version, at, bytes })
    }
}

/// Returns the entry that was found.
fn found_entry(found: &Found) -> Option<Entry> {
    if let Found::Value(_, entry, _) = found { Some(*entry) } else { None }
}
