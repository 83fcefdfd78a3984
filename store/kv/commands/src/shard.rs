// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of the data that one worker owns: its keys in every database, and the clients that
//! watch or wait for some of them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_keyspace::{Keyspace, Kind, Options};
use freeport_kv_types::Limits;

use crate::eviction::Evictor;
use crate::readers::Readers;

/// Options of a shard.
#[derive(Clone, Debug)]
pub struct ShardOptions {
    /// Number of databases.
    pub databases: u16,
    /// The keyspace of each database; the memory is the limit of the whole shard.
    pub keyspace: Options,
}

/// A client that waits for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The worker that has its connection.
    pub worker: u16,
    /// Number of the client.
    pub client: u64,
    /// Type of value that it waits for.
    pub kind: Kind,
    /// It also has to know when the value is removed.
    pub wakes_on_removal: bool,
    /// Its worker knows of a change, and has not looked at the key since.
    pub is_told: bool,
}

/// A key of a database.
type Place = (u16, Box<[u8]>);

/// Keys and values of a worker.
pub struct Shard {
    options: ShardOptions,
    pub(crate) databases: Vec<Option<Box<Keyspace>>>,
    /// Keys whose time has passed are searched for.
    expires: bool,
    /// It may use an eighth more memory than its options say.
    is_stretched: bool,
    /// Flags of transactions that watch a key; set when it changes.
    watches: HashMap<Place, Vec<Arc<AtomicBool>>>,
    /// Clients that wait for a key, in the order in which they are served.
    waiting: HashMap<Place, VecDeque<Waiter>>,
    /// Keys that were changed and that clients wait for, each once.
    ready: Vec<Place>,
    /// Clients that keep copies of keys.
    pub(crate) readers: Readers,
    pub(crate) evictor: Evictor,
}

impl fmt::Debug for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shard")
            .field("keys", &self.keys())
            .field("watched", &self.watches.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// A shard without keys. Memory is taken when a database gets its first key.
    pub fn new(options: ShardOptions) -> Self {
        let databases = (0..options.databases).map(|_| None).collect();
        Self {
            options,
            databases,
            expires: true,
            is_stretched: false,
            watches: HashMap::new(),
            waiting: HashMap::new(),
            ready: vec![],
            readers: Readers::default(),
            evictor: Evictor::default(),
        }
    }

    /// Options that it was made with.
    pub fn options(&self) -> &ShardOptions {
        &self.options
    }

    /// Number of keys in all databases.
    pub fn keys(&self) -> usize {
        self.databases.iter().flatten().map(|database| database.len()).sum()
    }

    /// Bytes of all databases.
    pub fn memory_bytes(&self) -> usize {
        self.databases.iter().flatten().map(|database| database.memory_bytes()).sum()
    }

    /// A database, if it ever had a key.
    #[inline]
    pub fn database(&self, number: u16) -> Option<&Keyspace> {
        self.databases.get(usize::from(number))?.as_deref()
    }

    /// A database that is changed, if it ever had a key.
    #[inline]
    pub fn database_mut(&mut self, number: u16) -> Option<&mut Keyspace> {
        self.databases.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// A database that gets keys.
    ///
    /// # Panics
    /// There is no such database; `SELECT` refuses its number.
    #[inline]
    pub fn database_or_new(&mut self, number: u16) -> &mut Keyspace {
        self.databases[usize::from(number)].get_or_insert_with(|| {
            let mut keyspace = new_keyspace(&self.options.keyspace, &self.evictor);
            keyspace.set_stretched(self.is_stretched);
            keyspace
        })
    }

    /// Databases that ever had a key, with their numbers.
    pub(crate) fn databases(&self) -> impl Iterator<Item = (u16, &Keyspace)> {
        let numbered = (0..).zip(&self.databases);
        numbered.filter_map(|(number, database)| Some((number, database.as_deref()?)))
    }

    /// As [`Shard::databases`], to be changed.
    pub(crate) fn databases_mut(&mut self) -> impl Iterator<Item = (u16, &mut Keyspace)> {
        let numbered = (0..).zip(&mut self.databases);
        numbered.filter_map(|(number, database)| Some((number, database.as_deref_mut()?)))
    }

    /// Two different databases that get keys.
    ///
    /// # Panics
    /// See [`Shard::database_or_new`].
    pub fn two_databases(&mut self, one: u16, other: u16) -> [&mut Keyspace; 2] {
        self.database_or_new(one);
        self.database_or_new(other);
        let databases = self.databases.get_disjoint_mut([one, other].map(usize::from));
        let databases = databases.expect("the numbers are different, and those of databases");
        databases.map(|database| database.as_deref_mut().expect("it was just made"))
    }

    /// Sets the sizes up to which values stay packed, in all databases. Values that are large stay
    /// so.
    pub fn set_limits(&mut self, limits: &Limits) {
        for database in self.databases.iter_mut().flatten() {
            database.set_limits(limits.clone());
        }
        self.options.keyspace.limits = limits.clone();
    }

    /// Lets the shard use an eighth more memory than its options say, or no longer. Values
    /// take other blocks when they are loaded again, and may need a little more.
    pub fn set_stretched(&mut self, is_stretched: bool) {
        self.is_stretched = is_stretched;
        for database in self.databases.iter_mut().flatten() {
            database.set_stretched(is_stretched);
        }
    }

    /// Exchanges two databases.
    pub fn swap_databases(&mut self, one: u16, other: u16) {
        self.databases.swap(usize::from(one), usize::from(other));
    }

    /// Whether keys are searched for whose time has passed (`DEBUG SET-ACTIVE-EXPIRE`).
    pub fn expires(&self) -> bool {
        self.expires
    }

    /// Sets what [`Shard::expires`] returns.
    pub fn set_expires(&mut self, expires: bool) {
        self.expires = expires;
    }

    /// Sets a flag when a key changes.
    pub fn watch(&mut self, database: u16, key: &[u8], flag: &Arc<AtomicBool>) {
        let flags = self.watches.entry((database, key.into())).or_default();
        if !flags.iter().any(|one| Arc::ptr_eq(one, flag)) {
            flags.push(flag.clone());
        }
    }

    /// Ends what [`Shard::watch`] began.
    pub fn unwatch(&mut self, database: u16, key: &[u8], flag: &Arc<AtomicBool>) {
        let place = (database, key.into());
        if let Some(flags) = self.watches.get_mut(&place) {
            flags.retain(|one| !Arc::ptr_eq(one, flag));
            if flags.is_empty() {
                self.watches.remove(&place);
            }
        }
    }

    /// Puts a client behind those that wait for a key already.
    pub fn wait(&mut self, database: u16, key: &[u8], waiter: Waiter) {
        self.waiting.entry((database, key.into())).or_default().push_back(waiter);
    }

    /// Removes the oldest wait of a client for a key. A shard on loan is notified of an end late,
    /// when the client may wait again.
    pub fn stop_waiting(&mut self, database: u16, key: &[u8], client: u64) {
        let place = (database, key.into());
        if let Some(waiters) = self.waiting.get_mut(&place) {
            if let Some(oldest) = waiters.iter().position(|waiter| waiter.client == client) {
                waiters.remove(oldest);
            }
            if waiters.is_empty() {
                self.waiting.remove(&place);
            }
        }
    }

    /// Clients that wait for a key, in their order.
    pub fn waiters(&self, database: u16, key: &[u8]) -> Vec<Waiter> {
        let waiters = self.waiting.get(&(database, key.into()));
        waiters.map(|waiters| waiters.iter().copied().collect()).unwrap_or_default()
    }

    /// Notes that the worker of a waiting client knows of a change, or that it has looked at the
    /// key. Returns whether it was told before.
    pub fn set_told(&mut self, database: u16, key: &[u8], client: u64, is_told: bool) -> bool {
        let waiters = self.waiting.get_mut(&(database, key.into()));
        let waits = waiters.into_iter().flatten().filter(|waiter| waiter.client == client);
        waits.fold(false, |was_told, one| was_told | std::mem::replace(&mut one.is_told, is_told))
    }

    /// Number of keys that clients wait for.
    pub fn awaited_keys(&self) -> usize {
        self.waiting.len()
    }

    /// Number of keys that transactions watch.
    pub fn watched_keys(&self) -> usize {
        self.watches.len()
    }

    /// Number of keys whose removal clients wait for as well.
    pub fn awaited_removals(&self) -> usize {
        let is_awaited = |waiters: &&VecDeque<Waiter>| waiters.iter().any(|it| it.wakes_on_removal);
        self.waiting.values().filter(is_awaited).count()
    }

    /// Takes the keys that were changed and that clients wait for.
    pub fn take_ready(&mut self) -> Vec<(u16, Box<[u8]>)> {
        std::mem::take(&mut self.ready)
    }

    /// Somebody watches, waits for, or keeps a copy of some key.
    #[inline]
    pub fn is_followed(&self) -> bool {
        self.watches.len() | self.waiting.len() | self.readers.len() != 0
    }

    /// A key has changed. Returns whether clients wait for it.
    #[inline]
    pub fn changed(&mut self, database: u16, key: &[u8]) -> bool {
        self.is_followed() && self.tell(database, key)
    }

    /// All keys of a database are about to be removed, or exchanged with those of `replacement`:
    /// transactions fail that watch a key which is in one of both. Returns whether clients wait for
    /// some key.
    pub fn change_all(&mut self, database: u16, replacement: Option<u16>, now_ms: u64) -> bool {
        for ((number, key), flags) in &self.watches {
            let has_key = |database: u16| {
                self.database(database).is_some_and(|keys| keys.kind(key, now_ms).is_some())
            };
            if *number == database && (has_key(database) || replacement.is_some_and(has_key)) {
                flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
            }
        }
        let mut keys: Vec<Place> = self.waiting.keys().cloned().collect();
        keys.retain(|(number, _)| *number == database);
        let is_awaited = !keys.is_empty();
        keys.into_iter().for_each(|place| self.make_ready(place));
        is_awaited
    }

    #[cold]
    fn tell(&mut self, database: u16, key: &[u8]) -> bool {
        if let Some(flags) = self.watches.get(&(database, key.into())) {
            flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
        }
        self.wake(database, key)
    }

    /// Clients that wait for a key have to look at it. Returns whether there are any.
    pub fn wake(&mut self, database: u16, key: &[u8]) -> bool {
        let place = (database, key.into());
        let is_awaited = self.waiting.contains_key(&place);
        if is_awaited {
            self.make_ready(place);
        }
        is_awaited
    }

    fn make_ready(&mut self, place: Place) {
        if !self.ready.contains(&place) {
            self.ready.push(place);
        }
    }
}

fn new_keyspace(options: &Options, evictor: &Evictor) -> Box<Keyspace> {
    // Options are checked when the server starts; address space alone can be refused later.
    let keyspace = Keyspace::new(options.clone()).expect("options made a keyspace at the start");
    let mut keyspace = Box::new(keyspace);
    evictor.prepare(&mut keyspace);
    keyspace
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard() -> Shard {
        Shard::new(ShardOptions { databases: 4, keyspace: Options::default() })
    }

    fn waiter(client: u64) -> Waiter {
        Waiter { worker: 0, client, kind: Kind::List, wakes_on_removal: false, is_told: false }
    }

    #[test]
    fn a_change_sets_the_flags_of_those_that_watch_the_key() {
        let mut shard = shard();
        let flag = Arc::new(AtomicBool::new(false));
        shard.watch(1, b"key", &flag);
        shard.watch(1, b"key", &flag);
        assert!(!shard.changed(1, b"other") && !shard.changed(0, b"key"));
        assert!(!flag.load(Ordering::Relaxed));
        shard.changed(1, b"key");
        assert!(flag.swap(false, Ordering::Relaxed));
        shard.unwatch(1, b"key", &flag);
        shard.changed(1, b"key");
        assert!(!flag.load(Ordering::Relaxed) && shard.watches.is_empty());
    }

    #[test]
    fn clients_are_served_in_their_order() {
        let mut shard = shard();
        for client in [3, 1, 2] {
            shard.wait(0, b"list", waiter(client));
        }
        assert!(shard.changed(0, b"list") && shard.changed(0, b"list"));
        assert_eq!(shard.take_ready(), [(0, Box::from(&b"list"[..]))]);
        assert!(shard.take_ready().is_empty());
        shard.stop_waiting(0, b"list", 1);
        let clients: Vec<u64> = shard.waiters(0, b"list").iter().map(|one| one.client).collect();
        assert_eq!(clients, [3, 2]);
        assert!(!shard.set_told(0, b"list", 2, true) && shard.set_told(0, b"list", 2, true));
        assert!(!shard.set_told(0, b"list", 3, false));
        shard.stop_waiting(0, b"list", 3);
        shard.stop_waiting(0, b"list", 2);
        assert_eq!(shard.awaited_keys(), 0);
    }

    #[test]
    fn an_end_that_is_heard_of_late_does_not_end_the_next_wait() {
        let mut shard = shard();
        shard.wait(0, b"list", waiter(1));
        shard.wait(0, b"list", waiter(1));
        shard.stop_waiting(0, b"list", 1);
        assert_eq!(shard.waiters(0, b"list"), [waiter(1)]);
    }

    #[test]
    fn a_database_takes_memory_with_its_first_key() {
        let mut shard = shard();
        assert!(shard.database(2).is_none() && shard.memory_bytes() == 0);
        shard.database_or_new(2);
        assert!(shard.database(2).is_some_and(Keyspace::is_empty));
        shard.swap_databases(2, 3);
        assert!(shard.database(2).is_none() && shard.database(3).is_some());
        assert!(shard.database(9).is_none());
    }

    #[test]
    fn limits_hold_in_all_databases_and_in_later_ones() {
        let mut shard = shard();
        shard.database_or_new(1);
        shard.set_limits(&Limits { set_entries: 7, ..Limits::default() });
        let entries =
            |shard: &mut Shard, number| shard.database_or_new(number).limits().set_entries;
        assert_eq!((entries(&mut shard, 1), entries(&mut shard, 2)), (7, 7));
    }
}
