// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Followers of keys: transactions that watch one, clients that wait for one, and clients that keep
//! copies. Each change of a key passes here.
//!
//! The readers of a key lie with its shard, so a read and the changes around it have one order,
//! whichever workers execute them. Nothing is sent from here: invalidations are effects, which the
//! worker passes on after the command.

use std::sync::Arc;

use crate::effects::Effects;
use crate::readers::{Invalidation, Reader, ReaderCounts};
use crate::shard::Shard;
use crate::store::Store;

/// Why a key has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A command has changed it.
    Command,
    /// It was removed without a command: its time had passed, or it was evicted.
    Removal,
}

impl Effects {
    /// Clients want to know of changes by prefixes of keys.
    #[inline]
    pub fn broadcasts(&self) -> bool {
        !self.broadcast_prefixes.is_empty()
    }

    fn note_invalidation(&mut self, invalidation: Invalidation) {
        self.invalidations.push(invalidation);
        self.has_ready_keys = true;
    }
}

impl Shard {
    /// A key has changed: those that follow it are told, or noted in the effects.
    #[inline]
    pub(crate) fn follow_change(
        &mut self,
        place: (u16, &[u8]),
        cause: Cause,
        effects: &mut Effects,
    ) {
        if self.is_followed() | effects.broadcasts() {
            self.tell_followers(place, cause, effects);
        }
    }

    #[cold]
    fn tell_followers(
        &mut self,
        (database, key): (u16, &[u8]),
        cause: Cause,
        effects: &mut Effects,
    ) {
        if self.changed(database, key) {
            effects.has_ready_keys = true;
        }
        let is_prefix = |prefix: &Vec<u8>| key.starts_with(prefix);
        let is_broadcast = effects.broadcast_prefixes.iter().any(is_prefix);
        let taken = self.readers.take(key);
        if taken.is_some() || is_broadcast {
            let (key, readers) = taken.unwrap_or_else(|| (key.into(), vec![]));
            let is_by_command = cause == Cause::Command;
            effects.note_invalidation(Invalidation { key, readers, is_broadcast, is_by_command });
        }
    }

    /// A client has read a key, and keeps a copy.
    fn remember(&mut self, key: &[u8], reader: Reader, effects: &mut Effects) {
        self.readers.add(key, reader);
        // More than one, so that a limit that was lowered is reached in the end.
        self.trim_readers(2, effects);
    }

    /// Takes random keys out of a table of readers that has grown above its limit, up to a number,
    /// as if they had changed. Returns whether it is below the limit.
    pub fn trim_readers(&mut self, most: usize, effects: &mut Effects) -> bool {
        for _ in 0..most {
            if !self.readers.is_over_limit() {
                return true;
            }
            let Some((key, readers)) = self.readers.take_random() else { return true };
            let (is_broadcast, is_by_command) = (false, false);
            effects.note_invalidation(Invalidation { key, readers, is_broadcast, is_by_command });
        }
        !self.readers.is_over_limit()
    }

    /// Limits the table of readers to a number of keys, and to 16 times as many pairs of a key and
    /// a client.
    pub fn set_read_keys_max(&mut self, keys_max: usize) {
        self.readers.set_keys_max(keys_max);
    }

    /// Publishes the sizes of the table of readers in these counts.
    pub fn count_readers(&mut self, counts: Arc<ReaderCounts>) {
        self.readers.set_counts(counts);
    }
}

impl Store {
    /// A client has read a key whose shard is here, and keeps a copy.
    pub(crate) fn remember(&mut self, key: &[u8], reader: Reader, effects: &mut Effects) {
        let shard = self.shard_of(key);
        self.shard_mut(shard).remember(key, reader, effects);
    }

    /// All copies of clients are invalid, because whole databases have changed.
    pub(crate) fn invalidate_all(&mut self, effects: &mut Effects) {
        self.shards_mut().for_each(|shard| shard.readers.clear());
        effects.are_all_invalid = true;
        effects.has_ready_keys = true;
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_keyspace::Options;

    use super::*;
    use crate::shard::ShardOptions;

    fn shard() -> Shard {
        Shard::new(ShardOptions { databases: 2, keyspace: Options::default() })
    }

    fn reader(client: u64) -> Reader {
        Reader { client, worker: 0 }
    }

    fn taken(effects: &mut Effects) -> Vec<(Vec<u8>, usize, bool, bool)> {
        let all = std::mem::take(&mut effects.invalidations).into_iter();
        all.map(|it| (it.key.to_vec(), it.readers.len(), it.is_broadcast, it.is_by_command))
            .collect()
    }

    #[test]
    fn readers_of_a_key_are_told_once_whatever_the_database() {
        let (mut shard, mut effects) = (shard(), Effects::default());
        shard.remember(b"key", reader(1), &mut effects);
        shard.remember(b"key", reader(2), &mut effects);
        shard.follow_change((1, b"other"), Cause::Command, &mut effects);
        assert!(!effects.has_ready_keys);
        shard.follow_change((1, b"key"), Cause::Removal, &mut effects);
        shard.follow_change((0, b"key"), Cause::Command, &mut effects);
        assert!(effects.has_ready_keys);
        assert_eq!(taken(&mut effects), [(b"key".to_vec(), 2, false, false)]);
    }

    #[test]
    fn prefixes_choose_the_changes_that_are_broadcast() {
        let (mut shard, mut effects) = (shard(), Effects::default());
        effects.broadcast_prefixes = vec![b"a:".to_vec(), b"b:".to_vec()];
        for key in [&b"a:1"[..], b"c:1", b"a"] {
            shard.follow_change((0, key), Cause::Command, &mut effects);
        }
        assert_eq!(taken(&mut effects), [(b"a:1".to_vec(), 0, true, true)]);
    }

    #[test]
    fn a_table_that_is_too_large_is_trimmed_step_by_step() {
        let (mut shard, mut effects) = (shard(), Effects::default());
        for number in 0..10_u8 {
            shard.remember(&[number], reader(1), &mut effects);
        }
        shard.set_read_keys_max(4);
        assert!(!shard.trim_readers(5, &mut effects) && shard.trim_readers(5, &mut effects));
        assert_eq!((shard.readers.len(), taken(&mut effects).len()), (4, 6));
        shard.remember(b"another", reader(1), &mut effects);
        assert_eq!((shard.readers.len(), taken(&mut effects).len()), (4, 1));
    }
}
