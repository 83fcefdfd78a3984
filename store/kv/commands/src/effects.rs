// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Effects of a command besides its reply.

use freeport_kv_keyspace::Kind;

use crate::readers::Invalidation;

/// Classes of keyspace events, as `notify-keyspace-events` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Class {
    /// `g`: keys of any type.
    Generic = 1 << 2,
    /// `$`: strings.
    String = 1 << 3,
    /// `l`: lists.
    List = 1 << 4,
    /// `s`: sets.
    Set = 1 << 5,
    /// `h`: hashes.
    Hash = 1 << 6,
    /// `z`: sorted sets.
    SortedSet = 1 << 7,
    /// `x`: the time of a key has passed.
    Expired = 1 << 8,
    /// `e`: a key was evicted.
    Evicted = 1 << 9,
    /// `t`: streams.
    Stream = 1 << 10,
    /// `m`: a key was not found.
    Miss = 1 << 11,
    /// `n`: a key was made.
    New = 1 << 12,
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its class.
    pub class: Class,
    /// Its name, such as `set`.
    pub name: &'static str,
    /// Number of the database.
    pub database: u16,
    /// The key.
    pub key: Vec<u8>,
}

/// A wait for one of several keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Positions of the keys among the arguments.
    pub keys: Vec<usize>,
    /// Type of value that the command waits for.
    pub kind: Kind,
    /// Whether the command is also executed again when a key is removed or gets another type.
    pub wakes_on_removal: bool,
    /// When the wait ends without success, in milliseconds since 1970; none: never.
    pub deadline_ms: Option<u64>,
    /// The reply then is `null` instead of the null array.
    pub is_null_string: bool,
    /// Arguments of further executions, where they differ from the first: ids that were relative.
    pub arguments: Option<Vec<Vec<u8>>>,
}

/// Effects of the commands since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Number of changed keys.
    pub changes: u64,
    /// Number of keys that were removed because their time had passed.
    pub expired: u64,
    /// Number of keys that were evicted.
    pub evicted: u64,
    /// Number of keys that reads have looked up and found.
    pub hits: u64,
    /// Number of keys that reads have looked up and not found.
    pub misses: u64,
    /// Reads change nothing until this time, in milliseconds since 1970, because writes are paused
    /// or refused: values whose time has passed stay, and no count is stored.
    pub paused_until_ms: u64,
    /// Classes of events that somebody listens to, as bits.
    pub listened: u16,
    /// Events of those classes.
    pub events: Vec<Event>,
    /// Keys that the command has made, with their databases, and without their event so far.
    /// They are kept only if somebody listens to that.
    pub made: Vec<(u16, Vec<u8>)>,
    /// All keys of a database were removed.
    pub has_cleared: bool,
    /// Somebody keeps a log of the changes: the next two are noted.
    pub records: bool,
    /// Keys, with their databases, that were removed although no command asked for it: their time
    /// had passed, or they were evicted. Each removal came before the command in which it was
    /// noted.
    pub removed: Vec<(u16, Vec<u8>)>,
    /// The command for the log in place of the one that was executed, which chooses at random or
    /// depends on how values lie in memory. Every other command has the same result again if it is
    /// executed on equal data at the same time.
    pub logged: Option<Vec<Vec<u8>>>,
    /// The command waits.
    pub block: Option<Block>,
    /// Some key that clients wait for was changed: the shards know which. Or copies of clients have
    /// become invalid.
    pub has_ready_keys: bool,
    /// Clients want to know of changes of keys with one of these prefixes.
    pub broadcast_prefixes: Vec<Vec<u8>>,
    /// Keys that have changed and of which clients may keep copies.
    pub invalidations: Vec<Invalidation>,
    /// All copies of clients are invalid.
    pub are_all_invalid: bool,
}

impl Effects {
    /// Somebody listens to a class of events.
    #[inline]
    pub fn listens_to(&self, class: Class) -> bool {
        self.listened & class as u16 != 0
    }

    /// Notes that a key was removed although no command asked for it, if somebody keeps a log.
    #[inline]
    pub fn note_removed(&mut self, database: u16, key: &[u8]) {
        if self.records {
            self.removed.push((database, key.to_vec()));
        }
    }

    /// Notes that a key was made. Its event comes before the first other one of the key.
    #[cold]
    pub fn make(&mut self, database: u16, key: &[u8]) {
        self.made.push((database, key.to_vec()));
    }

    /// Notes the event of a key that was made, if it was, and if that was not done before.
    #[inline]
    pub fn tell_made(&mut self, database: u16, key: &[u8]) {
        if !self.made.is_empty()
            && let Some(at) = self.made.iter().position(|made| made.0 == database && made.1 == key)
        {
            self.made.remove(at);
            self.note(Class::New, "new", database, key);
        }
    }

    /// Notes the events of all keys that were made and have none so far.
    #[inline]
    pub fn tell_all_made(&mut self) {
        for (database, key) in std::mem::take(&mut self.made) {
            self.note(Class::New, "new", database, &key);
        }
    }

    /// Notes an event, if its class is listened to.
    #[inline]
    pub fn note(&mut self, class: Class, name: &'static str, database: u16, key: &[u8]) {
        if self.listens_to(class) {
            self.events.push(Event { class, name, database, key: key.to_vec() });
        }
    }
}
