// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use freeport_kv_functions::Registry;

use crate::cluster::ClusterOptions;
use crate::persistence::PersistenceOptions;
use crate::replication::ReplicationOptions;
use crate::tls::TlsOptions;
pub use freeport_kv_commands::Policy as EvictionPolicy;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, which replaces a socket there that nobody listens on.
    Unix(PathBuf),
    /// A Unix socket where processes of this machine agree on memory, through which they exchange
    /// all bytes. It replaces a socket there that nobody listens on.
    Fabric(PathBuf),
}

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients of Redis connect.
    pub resp: Vec<Bind>,
    /// Where clients of memcached connect.
    pub memcached: Vec<Bind>,
    /// Where clients of the batched protocol connect.
    pub batch: Vec<Bind>,
    /// Addresses of UDP where datagrams of the batched protocol arrive; port 0 lets the system
    /// choose.
    pub batch_udp: Vec<SocketAddr>,
    /// Where clients connect that encrypt, and with which certificates.
    pub tls: Option<TlsOptions>,
    /// Number of workers, 1 to 64.
    pub workers: usize,
    /// Bytes of memory for keys and values of all workers.
    pub memory_bytes: usize,
    /// Which keys are evicted when memory is full (`maxmemory-policy`); none: writes are refused.
    pub eviction: Option<EvictionPolicy>,
    /// Bytes of memory for items of memcached.
    pub memcached_memory_bytes: usize,
    /// Number of databases that `SELECT` knows.
    pub databases: u16,
    /// Maximum number of clients.
    pub clients_max: usize,
    /// File of users, which is read at the start, and which `ACL SAVE` writes.
    pub access_file: Option<PathBuf>,
    /// Where counts are served for Prometheus (`GET /metrics`); port 0 lets the system choose.
    pub metrics: Option<SocketAddr>,
    /// Functions that requests can name: the built-in ones, and those of a user.
    pub functions: Registry,
    /// Where changes are kept; nowhere: the data is gone when the server ends.
    pub persistence: Option<PersistenceOptions>,
    /// How it replicates, which needs a folder.
    pub replication: ReplicationOptions,
    /// The cluster that it is a node of; this needs a folder.
    pub cluster: Option<ClusterOptions>,
}

impl Options {
    /// Clients of memcached can connect.
    pub fn has_memcached(&self) -> bool {
        !self.memcached.is_empty() || self.tls.as_ref().is_some_and(|tls| !tls.memcached.is_empty())
    }

    /// The first TCP port for clients of Redis.
    pub fn resp_port(&self) -> Option<u16> {
        self.resp.iter().find_map(|bind| match bind {
            Bind::Tcp(address) => Some(address.port()),
            Bind::Unix(_) | Bind::Fabric(_) => None,
        })
    }

    /// Clients can connect over shared memory.
    pub fn has_fabric(&self) -> bool {
        let mut binds = self.resp.iter().chain(&self.memcached).chain(&self.batch);
        binds.any(|bind| matches!(bind, Bind::Fabric(_)))
    }
}

impl Default for Options {
    /// One worker with 1 GiB, 64 MiB for memcached, 16 databases, 10,000 clients, no eviction, the
    /// built-in functions, and no address.
    fn default() -> Self {
        Self {
            resp: vec![],
            memcached: vec![],
            batch: vec![],
            batch_udp: vec![],
            tls: None,
            workers: 1,
            memory_bytes: 1 << 30,
            eviction: None,
            memcached_memory_bytes: 64 << 20,
            databases: 16,
            clients_max: 10_000,
            access_file: None,
            metrics: None,
            functions: Registry::built_in(),
            persistence: None,
            replication: ReplicationOptions::default(),
            cluster: None,
        }
    }
}
