// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of a client that commands need to know.

use freeport_kv_protocol::resp::Version;

/// State of a connection that commands on values depend on. It is small, so that it travels with a
/// command to another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Number of the client.
    pub client: u64,
    /// The selected database.
    pub database: u16,
    /// Version of the replies.
    pub version: Version,
    /// The command may wait for a key. Not so inside a transaction or a script.
    pub may_block: bool,
    /// Its commands count as uses of their keys.
    pub touches: bool,
}

impl Session {
    /// The session of a new connection.
    pub fn new(client: u64) -> Self {
        Self { client, database: 0, version: Version::Two, may_block: true, touches: true }
    }
}
