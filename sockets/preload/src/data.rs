// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes through a connection, by the kernel or by rings, and its end.

pub mod files;
pub mod peeking;
pub mod receiving;
pub mod resets;
pub mod sending;
mod states;
