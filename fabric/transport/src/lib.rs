// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fabric: how two sides reach each other's memory.
//!
//! What is written lies in the other side's memory when it arrives; nobody there takes part. On
//! top of that alone there are [rings](freeport_ring) of bytes and of messages. [`shm`] is the
//! transport between two processes of one machine.

pub mod error;
pub mod shm;
pub mod wait;

pub use error::{Error, HelloError};
