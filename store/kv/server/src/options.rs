// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::persistence::PersistenceOptions;

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

impl Default for Options {
    /// One worker with 1 GiB, 64 MiB for memcached, 16 databases, 10,000 clients, and no address.
    fn default() -> Self {
        Self {
            resp: vec![],
            memcached: vec![],
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
