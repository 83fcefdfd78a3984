// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The consequences of lookups, once a command is executed: values whose time has passed are
//! removed, uses are noted, misses are events, and clients that keep copies are remembered.

use crate::call::Call;
use crate::command::{Flags, Group, Spec};
use crate::database::Database;
use crate::effects::{Class, Effects};
use crate::lookups::Lookups;
use crate::store::Store;

impl Call<'_> {
    /// Does what follows from the lookups of the command.
    #[inline]
    pub(crate) fn finish_lookups(&mut self, spec: &Spec) {
        let Lookups { hits, misses, has_hidden } = &self.database.lookups;
        let (hits, misses, mut has_more) = (hits.get(), misses.get(), has_hidden.get());
        if spec.flags.has(Flags::READ) || spec.flags.has(Flags::COUNTED) {
            let effects = &mut *self.database.effects;
            effects.hits += u64::from(hits);
            effects.misses += u64::from(misses);
            has_more |= misses > 0 && effects.listens_to(Class::Miss);
            has_more |= self.session.copies_for != 0;
        }
        if has_more || self.database.store.tracks_uses() {
            self.follow_lookups(spec, misses > 0);
        }
    }

    #[cold]
    fn follow_lookups(&mut self, spec: &Spec, has_misses: bool) {
        let has_hidden = self.database.lookups.has_hidden.get();
        let counts = spec.flags.has(Flags::READ) || spec.flags.has(Flags::COUNTED);
        let tells_misses = has_misses && counts && tells_misses(spec);
        let reader = self.session.reader().filter(|_| spec.flags.has(Flags::READ));
        let touches = (self.session.touches && is_use(spec)) || spec.name == "touch";
        let (number, now_ms, arguments) = (self.database.number(), self.now_ms(), self.arguments);
        let (store, effects) = (&mut *self.database.store, &mut *self.database.effects);
        // The command has refused a number of keys that is too large.
        let _ = spec.keys.visit(arguments, |at| {
            let key = arguments[at];
            if has_hidden {
                store.expire_key((number, key), now_ms, effects);
            }
            if tells_misses && effects.listens_to(Class::Miss) {
                let keyspace = store.shard(store.shard_of(key)).database(number);
                if keyspace.is_none_or(|keyspace| keyspace.kind(key, now_ms).is_none()) {
                    effects.note(Class::Miss, "keymiss", number, key);
                }
            }
            if let Some(reader) = reader {
                store.remember(key, reader, effects);
            }
            if touches {
                store.touch((number, key), now_ms);
            }
        });
    }
}

/// A command uses its keys, as Redis counts it: those that only ask what is known of a key do not.
fn is_use(spec: &Spec) -> bool {
    const QUESTIONS: [&str; 9] = [
        "object",
        "ttl",
        "pttl",
        "expiretime",
        "pexpiretime",
        "type",
        "exists",
        "memory",
        "restore",
    ];
    spec.group != Group::Generic || !QUESTIONS.contains(&spec.name)
}

/// Misses of a command are events.
fn tells_misses(spec: &Spec) -> bool {
    spec.group != Group::Generic || !["object", "memory"].contains(&spec.name)
}

impl Database<'_> {
    /// Seconds since the last use of a key; none: there is no such key, or frequencies are tracked
    /// instead. Times are tracked from now on.
    pub fn idle_s(&mut self, key: &[u8]) -> Option<u64> {
        self.store.ask_for_uses(self.store.shard_of(key), self.now_ms());
        self.keyspace(key)?.idle_s(key, self.now_ms())
    }

    /// Counter of the uses of a key; none: there is no such key, or frequencies are not tracked.
    pub fn frequency(&self, key: &[u8]) -> Option<u8> {
        self.keyspace(key)?.frequency(key, self.now_ms())
    }

    /// Sets what is known of the uses of a key, as far as that is tracked. Idle times are tracked
    /// from now on.
    pub fn set_uses(&mut self, key: &[u8], idle_s: Option<u64>, frequency: Option<u8>) {
        let now_ms = self.now_ms();
        if let Some(idle_s) = idle_s {
            self.store.ask_for_uses(self.store.shard_of(key), now_ms);
            if let Some(keyspace) = self.keyspace_mut(key) {
                keyspace.set_idle_s(key, idle_s, now_ms);
            }
        }
        if let (Some(count), Some(keyspace)) = (frequency, self.keyspace_mut(key)) {
            keyspace.set_frequency(key, count, now_ms);
        }
    }
}

impl Store {
    /// Removes a key whose time has passed, with all that follows. Returns whether it was there.
    pub fn expire_key(
        &mut self,
        (number, key): (u16, &[u8]),
        now_ms: u64,
        effects: &mut Effects,
    ) -> bool {
        // While writes are paused, nothing changes.
        if now_ms < effects.paused_until_ms {
            return false;
        }
        let shard = self.shard_of(key);
        let shard = self.shard_mut(shard);
        let has_expired =
            shard.database_mut(number).is_some_and(|keyspace| keyspace.remove_expired(key, now_ms));
        if has_expired {
            shard.note_expired(number, key, effects);
        }
        has_expired
    }

    /// Notes a use of a key, if uses are tracked.
    pub(crate) fn touch(&mut self, (number, key): (u16, &[u8]), now_ms: u64) {
        let shard = self.shard_of(key);
        if let Some(keyspace) = self.shard_mut(shard).database_mut(number) {
            keyspace.touch(key, now_ms, fastrand::u32(..));
        }
    }
}
