// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part that a node has in its shard.

use super::agent::Leader;

/// The part that a node has in its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// None: it was just started, or is in no shard.
    None,
    /// The primary.
    Leads {
        /// Its term.
        term: u64,
        /// Number of its lease.
        series: u64,
    },
    /// A replica of a primary.
    Follows(Leader),
    /// A replica that takes no more changes of a term.
    Sealed {
        /// The term.
        term: u64,
    },
}
