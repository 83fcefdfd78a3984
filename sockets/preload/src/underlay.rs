// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's own connection under the rings: doorbells through it, and what it says of the peer.

pub mod asking;
pub mod doorbells;
pub mod ends;
pub mod taking;

/// Ticks between two questions to the kernel while there is something to do: about 50
/// microseconds.
pub const ASK_TICKS: u64 = 120_000;
