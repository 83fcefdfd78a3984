// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encrypted connections: TLS 1.2 and 1.3, by rustls.
//!
//! A listener for TLS makes a [`TlsStream`] of each accepted socket. Above it a connection is the
//! same as without encryption: it reads requests and writes replies.
//!
//! Certificates are read at the start and whenever one of their parameters is set. New connections
//! use the new ones; those that exist keep what they began with.

pub mod files;
mod settings;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mio::net::TcpStream;
use rustls::ServerConfig;
use thiserror::Error;

use crate::options::Bind;
pub use settings::TlsSettings;
pub use stream::TlsStream;

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Each client needs one.
    Required,
    /// A client may show one, which then has to be valid.
    Optional,
    /// No client is asked for one.
    Ignored,
}

/// Options for encrypted connections.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Where clients of Redis connect with TLS.
    pub resp: Vec<Bind>,
    /// Where clients of memcached connect with TLS.
    pub memcached: Vec<Bind>,
    /// File with the certificate of the server and those between it and its authority, as PEM.
    pub certificate: PathBuf,
    /// File with the private key of the certificate, as PEM without a password.
    pub key: PathBuf,
    /// File with the certificates of authorities that sign those of clients, as PEM.
    pub authority: Option<PathBuf>,
    /// Whether clients have to show a certificate.
    pub clients: ClientCertificates,
    /// Time after which a connection ends that has not completed its handshake.
    pub handshake_timeout: Duration,
}

impl TlsOptions {
    /// Time for a handshake unless another one is chosen.
    pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
}

/// Why there are no encrypted connections with certain files.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The content of a file cannot be used.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The reason, and a remedy.
        reason: String,
    },
    /// Settings contradict each other, or are not supported.
    #[error("{0}")]
    Settings(String),
}

/// Handshakes since the start, or since the counts were reset.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// Those that were completed.
    pub completed: AtomicU64,
    /// Connections that ended before their handshake was complete.
    pub failed: AtomicU64,
}

impl Handshakes {
    /// Counts from 0 again.
    pub fn reset(&self) {
        self.completed.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
    }
}

/// The settings that encrypted connections begin with.
#[derive(Debug)]
pub struct Tls {
    present: RwLock<Arc<ServerConfig>>,
    /// Counts of handshakes.
    pub handshakes: Arc<Handshakes>,
    /// Time that a handshake may take.
    pub handshake_timeout: Duration,
}

impl Tls {
    /// Reads the files of the options.
    ///
    /// # Errors
    /// A file cannot be read or used, or the options contradict each other.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let config = TlsSettings::new(options).config()?;
        Ok(Self {
            present: RwLock::new(config),
            handshakes: Arc::default(),
            handshake_timeout: options.handshake_timeout,
        })
    }

    /// Reads the files of new settings, for connections from now on.
    ///
    /// # Errors
    /// As for the options; the present settings remain.
    pub fn replace(&self, settings: &TlsSettings) -> Result<(), TlsError> {
        let config = settings.config()?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// A connection on an accepted socket. Its handshake happens as it is read.
    ///
    /// # Errors
    /// The session cannot be made, for example because there are no random numbers.
    pub fn accept(&self, socket: TcpStream, peer: SocketAddr) -> io::Result<TlsStream> {
        let config = self.present.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsStream::new(socket, peer, config, self.handshakes.clone())
    }
}
