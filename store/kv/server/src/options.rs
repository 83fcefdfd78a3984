// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::persistence::PersistenceOptions;
use crate::tls::TlsOptions;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, which replaces a socket there that nobody listens on.
    Unix(PathBuf),
}

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients of Redis connect.
    pub resp: Vec<Bind>,
    /// Where clients of memcached connect.
    pub memcached: Vec<Bind>,
    /// Where clients connect that encrypt, and with which certificates.
    pub tls: Option<TlsOptions>,
    /// Number of workers, 1 to 64.
    pub workers: usize,
    /// Bytes of memory for keys and values of all workers.
    pub memory_bytes: usize,
    /// Bytes of memory for items of memcached.
    pub memcached_memory_bytes: usize,
    /// Number of databases that `SELECT` knows.
    pub databases: u16,
    /// Maximum number of clients.
    pub clients_max: usize,
    /// Where counts are served for Prometheus (`GET /metrics`); port 0 lets the system choose.
    pub metrics: Option<SocketAddr>,
    /// Where changes are kept; nowhere: the data is gone when the server ends.
    pub persistence: Option<PersistenceOptions>,
}

impl Options {
    /// Clients of memcached can connect.
    pub fn has_memcached(&self) -> bool {
        !self.memcached.is_empty() || self.tls.as_ref().is_some_and(|tls| !tls.memcached.is_empty())
    }
}

impl Default for Options {
    /// One worker with 1 GiB, 64 MiB for memcached, 16 databases, 10,000 clients, and no address.
    fn default() -> Self {
        Self {
            resp: vec![],
            memcached: vec![],
            tls: None,
            workers: 1,
            memory_bytes: 1 << 30,
            memcached_memory_bytes: 64 << 20,
            databases: 16,
            clients_max: 10_000,
            metrics: None,
            persistence: None,
        }
    }
}
