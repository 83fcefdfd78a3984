// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts the workers of a server, and stops them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use freeport_kv_cluster::NodeId;
use freeport_kv_commands::ShardOptions;
use freeport_kv_engine::{Engine, Options as EngineOptions};
use freeport_kv_items::Items;
use freeport_kv_journal::Progress;
use freeport_kv_keyspace::Options as KeyspaceOptions;
use mio::{Poll, Waker};

use crate::census::Census;
use crate::cluster;
use crate::datagrams::Datagrams;
use crate::error::ServerError;
use crate::listener::{Listener, Protocol};
use crate::loading::{Guest, Loading};
use crate::mail::{Mailbox, Message};
use crate::metrics::Metrics;
use crate::moving::Moving;
use crate::options::{Bind, Options};
use crate::persistence::{Recovery, Start};
use crate::replication::Replication;
use crate::scripting;
use crate::shared::Shared;
use crate::tls::Tls;
use crate::worker::{WAKER, Worker};

/// A running server. It stops when this value is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    addresses: Vec<SocketAddr>,
    udp_addresses: Vec<SocketAddr>,
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
    pub fn start(options: Options) -> Result<Self, ServerError> {
        Self::recover(options, &mut |_| ())
    }

    /// Starts a server, and reports how far it is with the recovery of its data.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn recover(
        mut options: Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ServerError> {
        if !(1..=64).contains(&options.workers) {
            return Err(ServerError::Workers(options.workers));
        }
        for (count, what) in
            [(usize::from(options.databases), "databases"), (options.clients_max, "clients")]
        {
            if count == 0 {
                return Err(ServerError::None(what));
            }
        }
        let node = node(&options)?;
        let shard_options = shard_options(&options)?;
        let mut listeners = vec![];
        for (binds, protocol) in [
            (&options.resp, Protocol::Resp),
            (&options.memcached, Protocol::Memcached),
            (&options.batch, Protocol::Batch),
        ] {
            for bind in binds {
                listeners.push(Listener::open(bind, protocol)?);
            }
        }
        let tls = options.tls.as_ref().map(Tls::new).transpose()?.map(Arc::new);
        if let (Some(tls), Some(binds)) = (&tls, &options.tls) {
            for (binds, protocol) in
                [(&binds.resp, Protocol::Resp), (&binds.memcached, Protocol::Memcached)]
            {
                for bind in binds {
                    listeners.push(Listener::open_encrypted(bind, protocol, tls.clone())?);
                }
            }
        }
        let addresses = listeners.iter().filter_map(Listener::address).collect();
        // The server reports ports that the system has chosen in place of port 0.
        let encrypted =
            options.tls.iter_mut().flat_map(|it| it.resp.iter_mut().chain(&mut it.memcached));
        let plain = options.resp.iter_mut().chain(&mut options.memcached).chain(&mut options.batch);
        let binds = plain.chain(encrypted);
        for (bind, listener) in binds.zip(&listeners) {
            if let (Bind::Tcp(address), Some(chosen)) = (bind, listener.address()) {
                *address = chosen;
            }
        }
        announce(&mut options);
        let (mut datagrams, mut udp_addresses) = (vec![], vec![]);
        datagrams.resize_with(options.workers, Vec::new);
        for (number, address) in options.batch_udp.iter_mut().enumerate() {
            let sockets = Datagrams::open((number, address), options.workers)?;
            udp_addresses.push(*address);
            datagrams.iter_mut().zip(sockets).for_each(|(all, socket)| all.push(socket));
        }
        let (mut polls, mut mailboxes, mut receivers) = (vec![], vec![], vec![]);
        for _ in 0..options.workers {
            let poll = Poll::new()?;
            let (mailbox, receiver) = Mailbox::new(Waker::new(poll.registry(), WAKER)?);
            polls.push(poll);
            mailboxes.push(mailbox);
            receivers.push(receiver);
        }
        // Passwords are not known before, so with a file of users nobody is answered meanwhile.
        let loading = match options.persistence.is_some() && options.access_file.is_none() {
            true => Some(Loading::begin(std::mem::take(&mut listeners), options.clients_max)?),
            false => None,
        };
        let mut progress = |read: Progress| {
            loading.iter().for_each(|loading| loading.note(read));
            progress(read);
        };
        let Start { persistence, shards, functions } =
            Start::new(&options, &shard_options, &mut progress)?;
        let mut guests = vec![];
        if let Some(loading) = loading {
            (listeners, guests) = loading.end()?;
        }
        let mut shared = Shared::new(options, mailboxes, persistence, node);
        shared.configuration.tls = tls;
        let shared = Arc::new(shared);
        if let Some(path) = &shared.options.access_file {
            shared.users.load(path, false).map_err(ServerError::Users)?;
        }
        if let Some((version, dump)) = functions {
            shared.library.recover_functions(version, dump);
            scripting::Engine::new().count_functions(&shared);
        }
        wake_by_log(&shared);
        shared.replication.iter().try_for_each(Replication::begin)?;
        let metrics = match shared.options.metrics {
            Some(address) => Some(
                Metrics::start(address, shared.clone())
                    .map_err(|error| ServerError::Listen { address: address.to_string(), error })?,
            ),
            None => None,
        };
        let mut server = Self { shared, workers: vec![], addresses, udp_addresses, metrics };
        let parts = polls.into_iter().zip(receivers).zip(shards).zip(datagrams);
        for (number, (((poll, mail), shard), datagrams)) in parts.enumerate() {
            // The first worker accepts clients, and hands them to all in turn.
            let mut listeners = std::mem::take(&mut listeners);
            Worker::register(&mut listeners, &datagrams, &poll)?;
            let shared = server.shared.clone();
            server.spawn(number, move || {
                Worker::new((number, shard), shared, poll, mail, (listeners, datagrams)).run()
            })?;
        }
        Replication::start(&server.shared)?;
        Moving::start(&server.shared)?;
        cluster::start_agent(&server.shared)?;
        server.take_over(guests);
        Ok(server)
    }

    /// Another node may be the primary from now on.
    fn end_agent(&self) {
        self.shared.cluster.iter().for_each(|cluster| cluster.agent.end());
    }

    /// Hands clients that came while the server read its folder to all workers in turn.
    fn take_over(&self, guests: Vec<Guest>) {
        for (Guest { stream, address, input, .. }, mailbox) in
            guests.into_iter().zip(self.shared.mailboxes.iter().cycle())
        {
            self.shared.clients.fetch_add(1, Ordering::Relaxed);
            let protocol = Protocol::Resp;
            mailbox.send(Message::Moved { stream, protocol, address, input });
        }
    }

    /// Starts the thread of a worker. When it ends, for whatever reason, all others do: they would
    /// wait for its shard, and its clients for them.
    fn spawn(
        &mut self,
        number: usize,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let end = StopAtEnd(self.stopper());
        let thread = std::thread::Builder::new().name(format!("kv-worker-{number}"));
        self.workers.push(thread.spawn(move || {
            let _end = end;
            run()
        })?);
        Ok(())
    }

    /// TCP addresses that the server listens on: those for clients of Redis, of memcached, and of
    /// the batched protocol, in the order of the options; after them those of the first two for
    /// TLS.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// UDP addresses where datagrams of the batched protocol arrive, in the order of the options.
    pub fn udp_addresses(&self) -> &[SocketAddr] {
        &self.udp_addresses
    }

    /// TCP address where counts are served, if they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// Contents that were found in the server's folder, if it has one.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.shared.persistence.as_ref().map(|persistence| &persistence.recovery)
    }

    /// Its name in the cluster, if it is a node of one.
    pub fn node(&self) -> Option<NodeId> {
        self.shared.cluster.as_ref().map(|cluster| cluster.me)
    }

    /// A handle that ends the server, for example after a signal.
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: self.shared.clone() }
    }

    /// What all workers know.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Counts what the workers hold. Waits for all of them.
    pub fn census(&self) -> Census {
        Census::take(&self.shared)
    }

    /// Waits until the server has ended, because a client sent `SHUTDOWN` or [`Stopper::stop`] was
    /// called, or a worker failed.
    ///
    /// # Errors
    /// A worker could not wait for events, or the last changes could not be written.
    ///
    /// # Panics
    /// A worker has panicked, which is a fault. Its thread has told where; all others have ended.
    pub fn join(mut self) -> io::Result<()> {
        let workers = std::mem::take(&mut self.workers);
        let ends: Vec<_> = workers.into_iter().map(JoinHandle::join).collect();
        self.shared.moving.iter().for_each(Moving::join);
        self.shared.replication.iter().for_each(Replication::join);
        ends.into_iter().try_for_each(|end| end.expect("workers do not panic"))?;
        let synced = match &self.shared.persistence {
            Some(persistence) => persistence.journal.sync().map_err(|failure| {
                io::Error::other(format!("the last changes are lost: {failure}"))
            }),
            None => Ok(()),
        };
        self.end_agent();
        synced
    }
}

/// Makes the server end when a worker does.
struct StopAtEnd(Stopper);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop();
        for worker in self.workers.drain(..) {
            // A panic was reported by its thread.
            let _ = worker.join();
        }
        self.shared.moving.iter().for_each(Moving::join);
        self.shared.replication.iter().for_each(Replication::join);
        self.end_agent();
    }
}

/// Makes the log wake the workers whose clients wait for it.
fn wake_by_log(shared: &Arc<Shared>) {
    let Some(persistence) = &shared.persistence else { return };
    let mailboxes = shared.mailboxes.clone();
    let progress = shared.replication.as_ref().map(|replication| replication.progress.clone());
    let wake = move || {
        mailboxes.iter().for_each(Mailbox::log_has_advanced);
        progress.iter().for_each(|progress| progress.notify());
    };
    persistence.journal.on_release(Box::new(wake));
}

/// The node that the server is in its cluster, if it is in one.
fn node(options: &Options) -> Result<Option<NodeId>, ServerError> {
    if options.cluster.is_none() {
        return Ok(None);
    }
    if options.has_memcached() {
        return Err(ServerError::MemcachedInCluster);
    }
    let Some(persistence) = &options.persistence else { return Err(ServerError::NoFolder) };
    Ok(Some(cluster::identity(&persistence.folder)?))
}

/// Ports that a node of a cluster announces, if they are 0, become those that it listens on.
fn announce(options: &mut Options) {
    let Some(cluster) = &mut options.cluster else { return };
    let first = |binds: &[Bind]| {
        binds.iter().find_map(|bind| match bind {
            Bind::Tcp(address) => Some(address.port()),
            Bind::Unix(_) | Bind::Fabric(_) => None,
        })
    };
    let announced = &mut cluster.address;
    if announced.port == 0 {
        announced.port = first(&options.resp).unwrap_or(0);
    }
    let tls = options.tls.as_ref().and_then(|tls| first(&tls.resp));
    announced.tls_port = announced.tls_port.filter(|port| *port != 0).or(tls);
    let batch = first(&options.batch);
    announced.batch_port = announced.batch_port.filter(|port| *port != 0).or(batch);
}

/// Options of each shard, checked, so that a shard can make its databases when they get keys.
fn shard_options(options: &Options) -> Result<ShardOptions, ServerError> {
    let engine = EngineOptions {
        memory_bytes: options.memory_bytes / options.workers,
        seed: fastrand::u64(..),
        ..EngineOptions::default()
    };
    Engine::new(engine).map_err(|error| ServerError::Memory(error.to_string()))?;
    if options.has_memcached() {
        let memory_bytes = options.memcached_memory_bytes;
        let items = freeport_kv_items::Options { memory_bytes, ..Default::default() };
        Items::new(items).map_err(|error| ServerError::Memory(error.to_string()))?;
    }
    let keyspace = KeyspaceOptions { engine, ..KeyspaceOptions::default() };
    Ok(ShardOptions { databases: options.databases, keyspace })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the others continued, this test would not end.
    #[test]
    fn a_panic_of_a_worker_ends_the_server() {
        let options = Options { workers: 3, ..Options::default() };
        let mut server = Server::start(options).expect("a server without addresses starts");
        server.spawn(3, || panic!("as a test wants it")).expect("a thread starts");
        let end = std::thread::spawn(move || server.join()).join();
        assert!(end.is_err(), "the caller hears of the panic");
    }

    #[test]
    fn a_worker_that_fails_ends_the_server() {
        let options = Options { workers: 2, ..Options::default() };
        let mut server = Server::start(options).expect("a server without addresses starts");
        let error = || Err(io::Error::other("as a test wants it"));
        server.spawn(2, error).expect("a thread starts");
        let error = server.join().expect_err("the caller hears of the error");
        assert_eq!(error.to_string(), "as a test wants it");
    }
}
