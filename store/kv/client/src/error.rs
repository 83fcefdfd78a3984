// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of batches, and of single operations.

use crate::address::{Address, InvalidAddress};
use freeport_kv_protocol::batch::{FunctionKind, Refused, Status};
use std::io;
use std::time::Duration;

/// Reason for which a batch has no replies.
///
/// [`may_have_executed`](Self::may_have_executed) says whether the server may have executed
/// operations of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no address.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// A client of a cluster has no node to begin with.
    #[error("name at least one node: tcp://HOST:PORT")]
    NoNodes,
    /// There is no connection to the server.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The server.
        address: Address,
        /// Error of the system.
        source: io::Error,
    },
    /// The server refused the login.
    #[error("{address} refused the login of user `{user}`: {text}")]
    Login {
        /// The server.
        address: Address,
        /// Name of the user.
        user: String,
        /// The server's reason.
        text: String,
    },
    /// The connection ended before all replies had come.
    #[error(
        "the connection to {address} was lost ({source}); the server may have executed operations \
         of this batch"
    )]
    Lost {
        /// The server.
        address: Address,
        /// Error of the system.
        source: io::Error,
    },
    /// The server took or sent nothing for the time-out.
    #[error(
        "no reply from {address} for {after:?}; the server may have executed operations of this \
         batch"
    )]
    TimedOut {
        /// The server.
        address: Address,
        /// The time-out.
        after: Duration,
    },
    /// The server sent something else than replies.
    #[error(
        "{address} broke the batched protocol: {reason}; it may have executed operations of this \
         batch"
    )]
    Protocol {
        /// The server.
        address: Address,
        /// The broken rule.
        reason: String,
    },
    /// The server refused a packet as a whole. It may have executed other packets of the batch.
    #[error("{address} refused a packet of this batch: {text}")]
    Packet {
        /// The server.
        address: Address,
        /// The server's reason.
        text: String,
    },
    /// An operation is too large for a packet. Nothing was sent.
    #[error("operation {operation} takes a packet of {bytes} bytes; {address} takes {limit}")]
    TooLarge {
        /// The server.
        address: Address,
        /// Number of the operation in its batch.
        operation: usize,
        /// Bytes of a packet with this operation alone.
        bytes: usize,
        /// Largest packet.
        limit: usize,
    },
    /// The server has no function with this name.
    #[error("{address} has no function `{name}` of the kind {kind:?}; list them by `functions`")]
    NoFunction {
        /// The server.
        address: Address,
        /// Name of the function.
        name: String,
        /// Kind of the function.
        kind: FunctionKind,
    },
    /// No node has served a key for [`patience`](crate::Options::patience).
    #[error("no node has served slot {slot} for {after:?}: {reason}")]
    NotServed {
        /// Slot of the key.
        slot: u16,
        /// How long nodes were asked.
        after: Duration,
        /// The last reason.
        reason: String,
    },
    /// The only operation of a call failed.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

/// Error of one operation. The others of its batch are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct OperationError {
    /// Kind of error.
    pub status: Status,
    /// The server's reason.
    pub text: String,
}

impl Error {
    /// The server may have executed operations of the batch, and may still execute more. If not, it
    /// has executed none.
    pub fn may_have_executed(&self) -> bool {
        use Error::{Lost, Packet, Protocol, TimedOut};
        matches!(self, Lost { .. } | TimedOut { .. } | Protocol { .. } | Packet { .. })
    }

    /// An operation that was refused by a packet without others.
    #[cold]
    pub(crate) fn too_large(address: &Address, operation: usize, refused: Refused) -> Self {
        let address = address.clone();
        match refused {
            Refused::TooLarge { bytes, limit } => {
                Self::TooLarge { address, operation, bytes, limit }
            }
            Refused::Full => unreachable!("a packet without operations is not full"),
        }
    }

    /// Error of a connection: a time-out if the system says so.
    pub(crate) fn lost(address: &Address, after: Duration, source: io::Error) -> Self {
        let address = address.clone();
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Self::TimedOut { address, after }
            }
            _ => Self::Lost { address, source },
        }
    }
}
