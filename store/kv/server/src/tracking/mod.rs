// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client-side caching (`CLIENT TRACKING` of Redis 7.2, `tracking.c`): clients keep copies of what
//! they have read, and are told when these become invalid.
//!
//! Way of an invalidation:
//! 1. A command reads a key for a client that tracks: the key's shard remembers the client. Clients
//!    in broadcasting mode name prefixes instead, of which every worker has a list.
//! 2. A command changes the key. Its worker sends the client's worker a notice, after all replies
//!    to commands that were executed on the shard before.
//! 3. The client's worker knows how the client tracks: it writes the message to the client, or
//!    sends it to the client that it is redirected to.
//!
//! A message never comes before a reply that it makes invalid. While replies of other workers are
//! missing, notices of a client are held back. A message may come late, after the reply to a read
//! that has seen the new value; then the client loses a good copy.

mod notice;
mod state;
mod trackers;

pub use notice::{Invalidated, Notice, Reason};
pub use state::{Mode, Tracking};
pub use trackers::{Changes, Trackers, by_worker};
