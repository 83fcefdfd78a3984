// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of keys, as etcd reports them while they happen.

use std::io::{self, ErrorKind};
use std::time::Instant;

use super::client::{CallError, Client};
use super::endpoint::Connection;
use super::http::MAXIMUM_BODY_BYTES;
use super::messages::{Event, WatchMessage, watch};

/// A stream of changes of all keys with a prefix.
pub(super) struct Watch {
    connection: Connection,
    /// Begin of the next message.
    bytes: Vec<u8>,
}

impl Watch {
    /// Begins with the changes of a revision.
    pub(super) fn begin(
        client: &Client,
        prefix: &str,
        first: u64,
        deadline: Instant,
    ) -> Result<Self, CallError> {
        let connection = client.begin("/v3/watch", &watch(prefix, first), deadline)?;
        Ok(Self { connection, bytes: vec![] })
    }

    /// The changes of the next message; none if there is no message until the deadline.
    ///
    /// # Errors
    /// The stream has ended, or is malformed. It cannot be used any longer.
    pub(super) fn next(&mut self, deadline: Instant) -> io::Result<Option<Vec<Event>>> {
        self.connection.source.set_deadline(deadline);
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let message: Vec<u8> = self.bytes.drain(..=end).collect();
                return parse(&message).map(Some);
            }
            match self.connection.chunk() {
                Ok(Some(chunk)) => self.bytes.extend_from_slice(&chunk),
                Ok(None) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(None),
                Err(error) => return Err(error),
            }
            if self.bytes.len() > MAXIMUM_BODY_BYTES {
                return Err(io::Error::other("a message of the watch is too long"));
            }
        }
    }
}

/// Reads a message.
pub(super) fn parse(message: &[u8]) -> io::Result<Vec<Event>> {
    match serde_json::from_slice(message)? {
        WatchMessage { error: Some(error), .. } => Err(io::Error::other(error.to_string())),
        WatchMessage { result: Some(result), .. } if !result.canceled => Ok(result.events),
        WatchMessage { result: Some(result), .. } => Err(io::Error::other(result.cancel_reason)),
        WatchMessage { result: None, .. } => Err(io::Error::other("an empty message")),
    }
}
