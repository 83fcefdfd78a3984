// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of a client that commands need to know.

use freeport_kv_protocol::resp::Version;

use crate::readers::Reader;

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
    /// Number of the client's worker and one more, if the client keeps copies of what it reads, and
    /// wants to know when they become invalid; 0 otherwise.
    pub copies_for: u8,
}

impl Session {
    /// The session of a new connection.
    pub fn new(client: u64) -> Self {
        Self {
            client,
            database: 0,
            version: Version::Two,
            may_block: true,
            touches: true,
            copies_for: 0,
        }
    }

    /// The client, if it keeps copies of what it reads.
    #[inline]
    pub fn reader(&self) -> Option<Reader> {
        let worker = u16::from(self.copies_for).checked_sub(1)?;
        Some(Reader { client: self.client, worker })
    }
}
