// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending and receiving, through the kernel or through rings, and the errors of a connection's
//! end.

pub mod files;
pub mod peeking;
pub mod receiving;
pub mod resets;
pub mod sending;
mod states;
