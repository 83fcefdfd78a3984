// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The store's part on the device's processor: it answers calls, carries out puts, and caches hot
//! items. The host runs nothing.

mod gets;
mod puts;

use crate::blocks::Blocks;
use crate::cache::Cache;
use crate::error::KvError;
use crate::item::{State, encode};
use crate::layout::{Hash, KEY_MAX, Layout, LimitError, Options};
use crate::locks::Locks;
use crate::lookup::{Attempts, Found, search};
use crate::message::{Reply, Request};
use crate::reader::{Index, Reader};
use freeport_study_verbs::{Call, Memory, Verbs};
use futures::lock::Mutex;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The server on the device's processor. A clone is the same.
#[derive(Clone)]
pub struct Server<V> {
    inner: Rc<Inner<V>>,
}

struct Inner<V> {
    verbs: V,
    options: Options,
    layout: Layout,
    blocks: RefCell<Blocks>,
    cache: RefCell<Cache>,
    locks: Locks,
    /// Held while a new key receives an entry, and while a deleted one loses it. All indexes have
    /// a new entry before another key's lies behind it, and a free one before a key receives it.
    inserting: Mutex<()>,
    version: Cell<u64>,
    retries: Cell<u64>,
    random: RefCell<fastrand::Rng>,
}

impl<V: Verbs> Server<V> {
    /// Creates the server of an empty store. The memory of host and processor is zero, and has at
    /// least the sizes that [`Options::layout`] returns.
    ///
    /// # Errors
    /// The options exceed a limit.
    pub fn new(verbs: V, options: Options) -> Result<Self, LimitError> {
        let layout = options.layout()?;
        let inner = Inner {
            verbs,
            layout,
            blocks: RefCell::new(Blocks::new(layout.items..layout.host_bytes)),
            cache: RefCell::new(Cache::new(&options, &layout)),
            locks: Locks::default(),
            inserting: Mutex::new(()),
            version: Cell::new(0),
            retries: Cell::new(0),
            random: RefCell::new(fastrand::Rng::with_seed(1)),
            options,
        };
        Ok(Self { inner: Rc::new(inner) })
    }

    /// Answers calls, each in a task of its own.
    pub async fn serve(self) {
        loop {
            let call = self.inner.verbs.receive().await;
            let inner = Rc::clone(&self.inner);
            self.inner.verbs.spawn(async move { inner.answer(call).await });
        }
    }

    /// Stores a new key before anybody uses the store, and caches it if there is room. `host` is
    /// the host's memory.
    ///
    /// # Errors
    /// The store is full, or the length of key or value is outside its limits.
    pub fn load(&self, host: &impl Memory, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        let inner = &*self.inner;
        if !(1..=KEY_MAX).contains(&key.len()) {
            return Err(KvError::Key(key.len()));
        }
        inner.check_value(value)?;
        let version = inner.next_version();
        let new = inner.allocate(key, value, version)?;
        let position = inner.free_position(Hash::of(key))?;
        host.store(new.at, &encode(State::Alive, version, key, value));
        let entry = inner.publish_here(position, Some(&new), version);
        host.store(position.at(inner.layout.host_bucket(position.bucket)), &entry);
        inner.cache.borrow_mut().fill(inner.verbs.memory(), version, key, value);
        Ok(())
    }

    /// Returns the number of cached keys.
    pub fn cached(&self) -> usize {
        self.inner.cache.borrow().len()
    }

    /// Returns the number of own searches that met a change and began anew.
    pub fn retries(&self) -> u64 {
        self.inner.retries.get()
    }
}

impl<V: Verbs> Inner<V> {
    async fn answer(self: Rc<Self>, call: Call) {
        self.verbs.work(self.options.soc_work).await;
        // A message of something else gets an empty answer, which is no reply.
        let answer = match Request::decode(&call.message) {
            Some(request) => self.carry_out(request).await.encode(),
            None => Vec::new(),
        };
        call.answer(answer);
        self.verbs.work(self.options.soc_rest).await;
    }

    async fn carry_out(self: &Rc<Self>, request: Request) -> Reply {
        let reply = match request {
            Request::GetFromHost(key) => self.get(&key, Index::Host).await,
            Request::GetByIndex(key) => self.get(&key, Index::Own(0)).await,
            Request::GetCached { key, wants_copies } => Ok(self.get_cached(key, wants_copies)),
            Request::Put(key, value) => self.put(&key, &value).await,
            Request::Delete(key) => self.delete(&key).await,
        };
        reply.unwrap_or_else(|error| match error {
            KvError::Full(limit) => Reply::Full(limit),
            KvError::Changing(_) => Reply::Changing,
            _ => Reply::Failed,
        })
    }

    /// Searches a key until it does not change.
    async fn find(&self, key: &[u8], index: Index) -> Result<Found, KvError> {
        let (verbs, options, layout) = (&self.verbs, &self.options, &self.layout);
        let reader = Reader { verbs, layout, index, way: options.way };
        let mut attempts = Attempts::begin(verbs, self.random.borrow_mut().u64(..));
        loop {
            match search(&reader, options, layout, key).await? {
                Found::Changing => attempts.pause(verbs, options, &self.retries).await?,
                found => return Ok(found),
            }
        }
    }

    fn next_version(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }
}
