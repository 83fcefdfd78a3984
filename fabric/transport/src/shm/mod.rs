// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transport between two processes of one machine: memory that both have mapped.
//!
//! A [`Connection`] is a stream of bytes in each direction, a [`MessageConnection`] whole messages;
//! each is one segment with two rings, and a doorbell for each sleeper. A [`SharedQueue`] is the
//! same for messages of many connections. The handshake runs over a connected Unix socket, from a
//! pair or from a listening path, which also transfers the memory.

mod barrier;
mod connection;
mod copy;
mod doorbell;
mod endpoint;
mod hello;
mod layout;
mod link;
mod messages;
mod peer;
mod queue;
pub mod segment;
mod table;

pub use connection::Connection;
pub use doorbell::Doorbell;
pub use endpoint::{Direct, Offered, OwnPlace, Place, ShmEndpoint};
pub use freeport_ring::Shared as Memory;
pub use messages::MessageConnection;
pub use queue::SharedQueue;

use crate::wait::Waiting;
use std::time::Duration;

/// Options of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Initial size of each ring, in bytes. The first side's value holds for both.
    pub capacity: usize,
    /// Size up to which each ring may grow when its sender finds it full, in bytes.
    pub capacity_max: usize,
    /// Maximum size of a ring that this side accepts, in bytes.
    pub largest: usize,
    /// Waiting policy of this side.
    pub waiting: Waiting,
    /// Maximum time to wait for the peer's hello.
    pub patience: Duration,
    /// Whether `membarrier` is used if both sides can; otherwise both use fences.
    pub membarrier: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            capacity: 64 << 10,
            capacity_max: 64 << 10,
            largest: 16 << 20,
            waiting: Waiting::default(),
            patience: Duration::from_secs(5),
            membarrier: true,
        }
    }
}

impl Options {
    /// Selects rings of this number of bytes, which do not grow.
    pub fn with_capacity(capacity: usize) -> Self {
        let options = Self::default();
        Self { capacity, capacity_max: capacity, largest: options.largest.max(capacity), ..options }
    }
}
