// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a client.

use freeport_fabric::wait::Waiting;
use std::fmt;
use std::time::Duration;

/// Options of a client.
///
/// ```
/// use freeport_kv_client::Options;
///
/// let options = Options { user: "ann".into(), password: "secret".into(), ..Options::default() };
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// Name of the user; empty for `default`.
    pub user: String,
    /// Password of the user; empty if there is none.
    pub password: String,
    /// Number of the database.
    pub database: u16,
    /// Longest time without any progress: of connecting, of sending, and of waiting for replies.
    pub timeout: Duration,
    /// How long a [`ClusterClient`](crate::ClusterClient) looks for the node that serves a key.
    pub patience: Duration,
    /// Largest packet over TCP and the fabric, in bytes. The server may take less.
    pub packet_bytes: usize,
    /// Most operations in a packet.
    pub packet_operations: u16,
    /// Packets that may be without a reply at the same time on a connection, at least 1.
    pub window: usize,
    /// Most connections to a server: it serves each with another of its workers, so that no
    /// operation passes from one worker to another. A server with more workers gets one connection.
    pub connections: u16,
    /// Size of the shared memory for each direction of a connection, in bytes. Servers take up to
    /// 16 MiB.
    pub ring_bytes: usize,
    /// How to wait for a server that shares memory. Its time-out is not used.
    pub waiting: Waiting,
    /// Largest datagram, in bytes: 1,472 suits Ethernet, 65,507 the loopback.
    pub datagram_bytes: usize,
    /// How often an operation is sent again over UDP at most. Only datagrams whose operations all
    /// read are.
    pub retries: u32,
    /// Time until a datagram is sent again for the first time. It doubles with each.
    pub retry_after: Duration,
}

impl Default for Options {
    /// User `default` without a password, database 0; 5 seconds, and 30 to find a node; packets of
    /// 64 KiB, of which 8 may
    /// be without a reply; up to 64 connections; datagrams of 1,472 bytes, sent again after 100 ms
    /// up to 5 times.
    fn default() -> Self {
        Self {
            user: String::new(),
            password: String::new(),
            database: 0,
            timeout: Duration::from_secs(5),
            patience: Duration::from_secs(30),
            packet_bytes: 64 << 10,
            packet_operations: u16::MAX,
            window: 8,
            connections: 64,
            ring_bytes: 1 << 20,
            waiting: Waiting::default(),
            datagram_bytes: 1_472,
            retries: 5,
            retry_after: Duration::from_millis(100),
        }
    }
}

impl fmt::Debug for Options {
    /// Does not show the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("timeout", &self.timeout)
            .field("packet_bytes", &self.packet_bytes)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
