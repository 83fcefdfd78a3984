// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions that programs call instead of those of the C library.
//!
//! Each checks whether the library tracks the descriptor, and calls the replaced function if not.
//! No value with a destructor is alive while that runs: a thread that is cancelled in it unwinds
//! through here.

#![expect(clippy::missing_safety_doc, reason = "it is that of the functions they stand for")]

pub mod calls;
pub mod data;
pub mod descriptors;
pub mod events;
pub mod forking;
pub mod identity;
pub mod own;
pub mod programs;
pub mod sockets;
pub mod spawning;
pub mod streams;
pub mod uring;
mod variadic;
