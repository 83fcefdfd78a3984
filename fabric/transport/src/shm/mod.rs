// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transport between two processes of one machine: memory that both have mapped.
//!
//! A [`Connection`] is a stream of bytes each way, a [`MessageConnection`] whole messages; each is
//! one segment with two rings, and a doorbell for whoever sleeps. A [`SharedQueue`] is the same for
//! messages of many connections. They begin over a connected Unix
//! socket, from a pair or from a listening path, over which the memory is handed over.

mod barrier;
mod connection;
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
pub use endpoint::{Direct, OwnPlace, Place, ShmEndpoint};
pub use freeport_ring::Shared as Memory;
pub use messages::MessageConnection;
pub use queue::SharedQueue;

use crate::wait::Waiting;
use std::time::Duration;

/// How a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Bytes of each ring at the start. What the first side says holds for both.
    pub capacity: usize,
    /// Bytes up to which each ring may grow when its sender finds it full.
    pub capacity_max: usize,
    /// The largest ring that this side agrees to.
    pub largest: usize,
    /// How this side waits.
    pub waiting: Waiting,
    /// How long it waits for the peer's hello.
    pub patience: Duration,
    /// Whether `membarrier` is used where both sides can; else both use fences.
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
    /// Rings of that many bytes, which do not grow.
    pub fn with_capacity(capacity: usize) -> Self {
        let options = Self::default();
        Self { capacity, capacity_max: capacity, largest: options.largest.max(capacity), ..options }
    }
}
