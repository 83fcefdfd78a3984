// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fabric: access of two sides to each other's memory.
//!
//! A write goes directly into the other side's memory, without the participation of any code there.
//! On top of that alone there are [rings](freeport_ring) of bytes and of messages.
//!
//! - [`endpoint`] is the trait that every transport implements, and the guarantees they may give.
//! - [`channel`] makes rings over any of them; [`mirror`] implements them where arrivals are
//!   completions.
//! - [`shm`] is the transport between two processes of one machine, with streams and messages that
//!   need nothing else.

pub mod bounds;
pub mod channel;
pub mod endpoint;
pub mod error;
pub mod key;
pub mod mirror;
pub mod shm;
pub mod socket;
pub mod wait;

pub use channel::Channel;
pub use endpoint::{Arrival, Completion, Endpoint, WriteOrder};
pub use error::{Error, HelloError};
pub use freeport_ring::shared_queue;
pub use key::Key;
