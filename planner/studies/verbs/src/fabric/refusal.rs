// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons why a place ends a connection with another one.

use crate::fault::Fault;
use crate::place::Place;
use freeport_fabric::{Error, HelloError};
use std::io;
use thiserror::Error;

/// A reason to end a connection. After it, the connection is not used any more.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// The other side has hung up or died.
    #[error("the other side has hung up")]
    HungUp,
    /// The other side did not continue the handshake.
    #[error("the other side was silent during the handshake")]
    Silent,
    /// The hello has a wrong length.
    #[error("a hello of {found} B where {expected} B were expected")]
    Length {
        /// Length of a hello in bytes.
        expected: usize,
        /// Length received in bytes.
        found: usize,
    },
    /// The hello does not begin with the mark of places.
    #[error("the first message is not a hello of a place")]
    Mark,
    /// The versions differ.
    #[error("version {theirs}, and this is version {ours}: use the same release on both sides")]
    Version {
        /// Version of this side.
        ours: u32,
        /// Version of the other side.
        theirs: u32,
    },
    /// There is no such place.
    #[error("no place has kind {kind} and number {number}")]
    Place {
        /// Kind of place in the hello.
        kind: u16,
        /// Number of the place in the hello.
        number: u16,
    },
    /// Another place answers than the one that was asked.
    #[error("{found} answers where {expected} was asked: remove its socket file")]
    Other {
        /// The place that was asked.
        expected: Place,
        /// The place that answers.
        found: Place,
    },
    /// The memory has another size than the hello says.
    #[error("memory of {found} B where the hello says {expected} B")]
    MemoryBytes {
        /// Size in the hello, in bytes.
        expected: u64,
        /// Size of the memory in bytes.
        found: u64,
    },
    /// A message breaks the protocol.
    #[error("{0}")]
    Message(&'static str),
    /// Too many connections are open.
    #[error("{0} connections are open, the maximum of a place")]
    Connections(usize),
    /// The transport failed.
    #[error("{0}")]
    Transport(String),
}

impl Refusal {
    /// Returns the fault of operations on the place at the other side.
    pub fn fault(&self, place: Place) -> Fault {
        match self {
            Self::HungUp | Self::Silent => Fault::Gone(place),
            other => Fault::Broken { place, reason: other.to_string() },
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::PeerDied { .. } | Error::Closed { .. } | Error::Hello(HelloError::HungUp) => {
                Self::HungUp
            }
            Error::Hello(HelloError::Silent(_)) => Self::Silent,
            Error::System { source, .. } if is_hang_up(&source) => Self::HungUp,
            other => Self::Transport(other.to_string()),
        }
    }
}

impl From<freeport_ring::Fault> for Refusal {
    fn from(fault: freeport_ring::Fault) -> Self {
        Self::from(Error::from(fault))
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        if is_hang_up(&error) { Self::HungUp } else { Self::Transport(error.to_string()) }
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | NotFound)
}
