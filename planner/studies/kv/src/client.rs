// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of the store.

use crate::alternative::Alternative;
use crate::entry::Entry;
use crate::error::KvError;
use crate::item::{Check, check};
use crate::layout::{KEY_MAX, Layout, LimitError, Options};
use crate::lookup::{Attempts, Found, Source, search};
use crate::message::{Copies, Reply, Request};
use crate::reader::{Index, Reader};
use freeport_study_verbs::{Fault, Place, Verbs, Way};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Addresses of cached copies that a client remembers at most.
const LEARNED_MAX: usize = 1 << 16;

/// A client of the store, for one task.
pub struct Client<V> {
    verbs: V,
    options: Options,
    layout: Layout,
    learned: RefCell<HashMap<Vec<u8>, Copies>>,
    random: RefCell<fastrand::Rng>,
    retries: Cell<u64>,
    answers: Cell<u64>,
    misses: Cell<u64>,
}

/// Result of one attempt of a get.
enum Attempt {
    Value(Vec<u8>),
    None,
    Changing,
}

impl From<Found> for Attempt {
    fn from(found: Found) -> Self {
        match found {
            Found::Value(value, ..) => Self::Value(value),
            Found::None => Self::None,
            Found::Changing => Self::Changing,
        }
    }
}

impl<V: Verbs> Client<V> {
    /// Creates a client. The seed selects among copies.
    ///
    /// # Errors
    /// The options exceed a limit.
    pub fn new(verbs: V, options: Options, seed: u64) -> Result<Self, LimitError> {
        Ok(Self {
            verbs,
            layout: options.layout()?,
            options,
            learned: RefCell::default(),
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            retries: Cell::default(),
            answers: Cell::default(),
            misses: Cell::default(),
        })
    }

    /// Returns the value of a key, or none if there is no such key.
    ///
    /// # Errors
    /// See [`KvError`].
    pub async fn get(
        &self,
        alternative: Alternative,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, KvError> {
        self.check_key(key)?;
        let mut attempts = Attempts::begin(&self.verbs, self.random.borrow_mut().u64(..));
        loop {
            match self.attempt(alternative, key).await? {
                Attempt::Value(value) => return Ok(Some(value)),
                Attempt::None => return Ok(None),
                Attempt::Changing => {
                    attempts.pause(&self.verbs, &self.options, &self.retries).await?;
                }
            }
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// See [`KvError`]. If a place fails, the put may have happened.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        self.check_key(key)?;
        let limit = self.options.value_max;
        if value.len() > limit {
            return Err(KvError::Value { bytes: value.len(), limit });
        }
        match self.call(Request::Put(key.to_vec(), value.to_vec())).await? {
            Reply::Done => Ok(()),
            _ => Err(KvError::Message(Place::Soc)),
        }
    }

    /// Deletes a key, and returns whether there was one.
    ///
    /// # Errors
    /// See [`KvError`]. If a place fails, the delete may have happened.
    pub async fn delete(&self, key: &[u8]) -> Result<bool, KvError> {
        self.check_key(key)?;
        match self.call(Request::Delete(key.to_vec())).await? {
            Reply::Done => Ok(true),
            Reply::None => Ok(false),
            _ => Err(KvError::Message(Place::Soc)),
        }
    }

    /// Returns the number of attempts that met a change, after which a get began anew.
    pub fn retries(&self) -> u64 {
        self.retries.get()
    }

    /// Returns the number of answers to calls of A5.
    pub fn answers(&self) -> u64 {
        self.answers.get()
    }

    /// Returns the number of answers of A5 that were addresses, because the item was not cached.
    pub fn misses(&self) -> u64 {
        self.misses.get()
    }

    fn check_key(&self, key: &[u8]) -> Result<(), KvError> {
        let is_key = (1..=KEY_MAX).contains(&key.len());
        if is_key { Ok(()) } else { Err(KvError::Key(key.len())) }
    }

    async fn attempt(&self, alternative: Alternative, key: &[u8]) -> Result<Attempt, KvError> {
        let key_owned = || key.to_vec();
        match alternative {
            Alternative::HostReads => self.search(key, Index::Host).await,
            Alternative::SplitReads => {
                let copy = self.random.borrow_mut().u64(..self.layout.index_copies);
                self.search(key, Index::Soc(copy)).await
            }
            Alternative::CallHost => self.ask(key, Request::GetFromHost(key_owned())).await,
            Alternative::CallIndex => self.ask(key, Request::GetByIndex(key_owned())).await,
            Alternative::CallCache => {
                let request = Request::GetCached { key: key_owned(), wants_copies: false };
                self.ask(key, request).await
            }
            Alternative::CacheReads => {
                if let Some(value) = self.read_copy(key).await? {
                    return Ok(Attempt::Value(value));
                }
                let request = Request::GetCached { key: key_owned(), wants_copies: true };
                self.ask(key, request).await
            }
        }
    }

    fn reader(&self, index: Index) -> Reader<'_, V> {
        let (verbs, layout) = (&self.verbs, &self.layout);
        Reader { verbs, layout, index, way: Way::Nic }
    }

    async fn search(&self, key: &[u8], index: Index) -> Result<Attempt, KvError> {
        let found = search(&self.reader(index), &self.options, &self.layout, key).await?;
        Ok(found.into())
    }

    async fn ask(&self, key: &[u8], request: Request) -> Result<Attempt, KvError> {
        let is_cached = matches!(request, Request::GetCached { .. });
        let reply = self.call(request).await?;
        self.answers.set(self.answers.get() + u64::from(is_cached));
        Ok(match reply {
            Reply::Value(value, copies) => {
                self.learn(key, copies);
                Attempt::Value(value)
            }
            Reply::None => Attempt::None,
            Reply::Entries(entries) => {
                self.misses.set(self.misses.get() + 1);
                self.complete(key, &entries).await?
            }
            _ => return Err(KvError::Message(Place::Soc)),
        })
    }

    /// Completes a get whose item was not cached: one of these entries is the key's, or none.
    async fn complete(&self, key: &[u8], entries: &[Entry]) -> Result<Attempt, KvError> {
        let reader = self.reader(Index::Host);
        for entry in entries {
            let item = reader.item(entry).await?;
            let has_version =
                |version| !self.options.compares_versions || entry.has_version(version);
            match check(&item, key, has_version) {
                Check::Value(value) => return Ok(Attempt::Value(value)),
                Check::OtherKey => {}
                Check::Stale => return Ok(Attempt::Changing),
            }
        }
        Ok(Attempt::None)
    }

    fn learn(&self, key: &[u8], copies: Copies) {
        let mut learned = self.learned.borrow_mut();
        if copies.at.is_empty() {
            return;
        }
        if learned.len() >= LEARNED_MAX {
            learned.clear();
        }
        learned.insert(key.to_vec(), copies);
    }

    /// Reads a cached copy of an item, if one is known and still valid.
    async fn read_copy(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        let Some(copies) = self.learned.borrow().get(key).cloned() else { return Ok(None) };
        let place = self.random.borrow_mut().usize(..copies.at.len());
        let from = Place::Soc.at(copies.at[place]);
        let item = self.verbs.read(from, copies.bytes as usize, Way::Nic).await?;
        if let Check::Value(value) = check(&item, key, |_| true) {
            return Ok(Some(value));
        }
        self.retries.set(self.retries.get() + 1);
        self.learned.borrow_mut().remove(key);
        Ok(None)
    }

    async fn call(&self, request: Request) -> Result<Reply, KvError> {
        let reply = self.verbs.call(Place::Soc, request.encode()).await?;
        match Reply::decode(&reply) {
            Some(Reply::Full(limit)) => Err(KvError::Full(limit)),
            Some(Reply::Changing) => Err(KvError::Changing(self.options.patience.as_millis())),
            // The processor works, so it is the host that does not.
            Some(Reply::Failed) => Err(KvError::Fault(Fault::Gone(Place::Host))),
            Some(reply) => Ok(reply),
            None => Err(KvError::Message(Place::Soc)),
        }
    }
}
