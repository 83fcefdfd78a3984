// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys, by which one side gives the other access to a region: a few bytes, and a descriptor if the
//! transport needs one.

use crate::bounds::within;
use crate::error::{Error, HelloError};
use crate::socket;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Maximum length of a key: an address and a remote key of RDMA, with room to spare.
pub const KEY_BYTES_MAX: usize = 64;

/// The key of a region, as an [endpoint](crate::Endpoint) exports it.
#[derive(Debug)]
pub struct Key {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl Key {
    /// Creates a key of these bytes.
    ///
    /// # Errors
    /// There are more than [`KEY_BYTES_MAX`] bytes.
    pub fn new(bytes: &[u8], descriptor: Option<OwnedFd>) -> Result<Self, Error> {
        within("a key", 0, bytes.len(), KEY_BYTES_MAX)?;
        Ok(Self { bytes: bytes.to_vec(), descriptor })
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes and the descriptor.
    pub fn into_parts(self) -> (Vec<u8>, Option<OwnedFd>) {
        (self.bytes, self.descriptor)
    }

    /// Sends the key over a Unix socket.
    ///
    /// # Errors
    /// The system refuses, or the peer has hung up.
    pub fn send(&self, stream: &UnixStream) -> Result<(), Error> {
        // All keys have the same length there, so that one ends where the next one begins.
        let mut message = [0; KEY_BYTES_MAX + 1];
        for (to, from) in message.iter_mut().skip(1).zip(&self.bytes) {
            *to = *from;
        }
        message[0] = self.bytes.len() as u8;
        let descriptors = self.descriptor.as_ref().map(AsRawFd::as_raw_fd);
        socket::send(stream, &message, descriptors.as_slice()).map_err(over_socket)
    }

    /// Receives a key.
    ///
    /// # Errors
    /// The system refuses, the peer has hung up, or the message is not a key.
    pub fn receive(stream: &UnixStream) -> Result<Self, Error> {
        let mut bytes = [0; KEY_BYTES_MAX + 1];
        let message = socket::receive(stream, &mut bytes).map_err(over_socket)?;
        let (expected, found) = (bytes.len(), message.length);
        match found {
            0 => return Err(HelloError::HungUp.into()),
            _ if found != expected => return Err(HelloError::Length { expected, found }.into()),
            _ => {}
        }
        let mut descriptors = message.descriptors;
        let found = descriptors.len();
        let descriptor = descriptors.pop();
        if !descriptors.is_empty() {
            return Err(HelloError::Descriptors { expected: 1, found }.into());
        }
        let length = usize::from(bytes[0]);
        let Some(bytes) = bytes[1..].get(..length) else {
            return Err(HelloError::Length { expected: KEY_BYTES_MAX, found: length }.into());
        };
        Self::new(bytes, descriptor)
    }
}

fn over_socket(source: io::Error) -> Error {
    Error::System { what: "a key over the socket", source }
}
