// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts the workers of a server, and stops them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use freeport_kv_commands::{Shard, ShardOptions};
use freeport_kv_engine::{Engine, Options as EngineOptions};
use freeport_kv_items::Items;
use freeport_kv_keyspace::Options as KeyspaceOptions;
use mio::{Poll, Waker};

use crate::error::ServerError;
use crate::listener::{Listener, Protocol};
use crate::mail::Mailbox;
use crate::metrics::Metrics;
use crate::options::{Bind, Options};
use crate::shared::Shared;
use crate::worker::{WAKER, Worker};

/// A running server. It stops when this value is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    addresses: Vec<SocketAddr>,
    metrics: Option<Metrics>,
}

/// Makes a server end.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
}

impl Stopper {
    /// Makes the server end. Does not wait.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

impl Server {
    /// Starts a server. It accepts clients when this returns.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn start(mut options: Options) -> Result<Self, ServerError> {
        if !(1..=64).contains(&options.workers) {
            return Err(ServerError::Workers(options.workers));
        }
        let shard_options = shard_options(&options)?;
        let mut listeners = vec![];
        for (binds, protocol) in
            [(&options.resp, Protocol::Resp), (&options.memcached, Protocol::Memcached)]
        {
            for bind in binds {
                listeners.push(Listener::open(bind, protocol)?);
            }
        }
        let addresses = listeners.iter().filter_map(Listener::address).collect();
        // What the system has chosen in place of port 0 is what the server reports.
        let binds = options.resp.iter_mut().chain(&mut options.memcached);
        for (bind, listener) in binds.zip(&listeners) {
            if let (Bind::Tcp(address), Some(chosen)) = (bind, listener.address()) {
                *address = chosen;
            }
        }
        let (mut polls, mut mailboxes, mut receivers) = (vec![], vec![], vec![]);
        for _ in 0..options.workers {
            let poll = Poll::new()?;
            let (mailbox, receiver) = Mailbox::new(Waker::new(poll.registry(), WAKER)?);
            polls.push(poll);
            mailboxes.push(mailbox);
            receivers.push(receiver);
        }
        let shared = Arc::new(Shared::new(options, mailboxes));
        let metrics = match shared.options.metrics {
            Some(address) => Some(
                Metrics::start(address, shared.clone())
                    .map_err(|error| ServerError::Listen { address: address.to_string(), error })?,
            ),
            None => None,
        };
        let mut server = Self { shared, workers: vec![], addresses, metrics };
        for (number, (poll, mail)) in polls.into_iter().zip(receivers).enumerate() {
            let shard = Box::new(Shard::new(shard_options.clone()));
            // The first worker accepts clients, and hands them to all in turn.
            let mut listeners = std::mem::take(&mut listeners);
            Worker::register(&mut listeners, &poll)?;
            let shared = server.shared.clone();
            let thread = std::thread::Builder::new().name(format!("kv-worker-{number}"));
            server.workers.push(thread.spawn(move || {
                Worker::new((number, shard), shared, poll, mail, listeners).run()
            })?);
        }
        Ok(server)
    }

    /// TCP addresses that the server listens on: those for clients of Redis, and then those for
    /// clients of memcached, in the order of the options.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// TCP address where counts are served, if they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// What makes the server end, for example after a signal.
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: self.shared.clone() }
    }

    /// Waits until the server has ended, because a client sent `SHUTDOWN` or [`Stopper::stop`] was
    /// called.
    ///
    /// # Errors
    /// A worker could not wait for events.
    ///
    /// # Panics
    /// A worker has panicked.
    pub fn join(mut self) -> io::Result<()> {
        for worker in std::mem::take(&mut self.workers) {
            worker.join().expect("workers do not panic")?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop();
        for worker in self.workers.drain(..) {
            // A panic was reported by its thread.
            let _ = worker.join();
        }
    }
}

/// Options of each shard, checked, so that a shard can make its databases when they get keys.
fn shard_options(options: &Options) -> Result<ShardOptions, ServerError> {
    let engine = EngineOptions {
        memory_bytes: options.memory_bytes / options.workers,
        seed: fastrand::u64(..),
        ..EngineOptions::default()
    };
    Engine::new(engine).map_err(|error| ServerError::Memory(error.to_string()))?;
    if !options.memcached.is_empty() {
        let memory_bytes = options.memcached_memory_bytes;
        let items = freeport_kv_items::Options { memory_bytes, ..Default::default() };
        Items::new(items).map_err(|error| ServerError::Memory(error.to_string()))?;
    }
    let keyspace = KeyspaceOptions { engine, ..KeyspaceOptions::default() };
    Ok(ShardOptions { databases: options.databases, keyspace })
}
