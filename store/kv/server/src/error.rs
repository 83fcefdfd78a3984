// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a server does not start.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::cluster::IdentityError;
use crate::tls::TlsError;

/// Why a server does not start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// The reason.
        error: io::Error,
    },
    /// A Unix socket cannot be made.
    #[error("cannot listen on {}: {error}", path.display())]
    ListenUnix {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The number of workers.
    #[error("{0} workers: must be 1 to 64")]
    Workers(usize),
    /// The file of users cannot be read, or something in it is wrong.
    #[error("{0}")]
    Users(String),
    /// No database, or no client.
    #[error("0 {0}: must be 1 at least")]
    None(&'static str),
    /// The memory is divided among the workers, and a part is too small or too large.
    #[error("memory for a worker: {0}")]
    Memory(String),
    /// A node of a cluster has clients of memcached.
    #[error(
        "a node of a cluster serves no clients of memcached, whose items have no hash slots; start \
         another server for them"
    )]
    MemcachedInCluster,
    /// A node of a cluster has no folder.
    #[error("a node of a cluster needs a folder for its log, which its replicas follow; name one")]
    NoFolder,
    /// The folder has no name of a node.
    #[error("the name of this node: {0}")]
    Identity(#[from] IdentityError),
    /// The data cannot be recovered.
    #[error("cannot recover the data: {0}")]
    Recovery(#[from] freeport_kv_journal::OpenError),
    /// Files or settings of encrypted connections cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The system refused a thread, or what a thread waits with.
    #[error("cannot start a worker: {0}")]
    Worker(#[from] io::Error),
}
