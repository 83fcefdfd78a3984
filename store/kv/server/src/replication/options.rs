// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of replication.

use std::time::Duration;

use freeport_kv_cluster::Address;

/// How a server replicates, outside of a cluster and in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationOptions {
    /// The primary that the server follows from its start; none: it is one, or its cluster says it.
    pub follows: Option<Address>,
    /// The user as whom it logs in to a primary (`masteruser`); empty: the default user.
    pub user: String,
    /// The password for that (`masterauth`); empty: it does not log in.
    pub password: String,
    /// Number of replicas without which a primary takes no writes (`min-replicas-to-write`).
    pub min_replicas: u32,
    /// Time since its last answer after which a replica does not count for that
    /// (`min-replicas-max-lag`). 0: writes are taken without replicas.
    pub max_lag: Duration,
    /// Time without a sign of the other side after which a link has failed (`repl-timeout`).
    pub timeout: Duration,
    /// Bytes of the log that are kept for a replica beyond what the folder has anyway. One that
    /// needs more is disconnected, and takes the whole state.
    pub behind_bytes_max: u64,
}

impl Default for ReplicationOptions {
    /// No primary, no password, no least number of replicas, 60 s, and 1 GiB.
    fn default() -> Self {
        Self {
            follows: None,
            user: String::new(),
            password: String::new(),
            min_replicas: 0,
            max_lag: Duration::from_secs(10),
            timeout: Duration::from_secs(60),
            behind_bytes_max: 1 << 30,
        }
    }
}
