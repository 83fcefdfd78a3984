// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses of a node.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Addresses of a node, as clients and other nodes reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// Name or address of the host.
    pub host: String,
    /// Port for clients of Redis, and for replication.
    pub port: u16,
    /// Port for clients of Redis that encrypt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_port: Option<u16>,
    /// Port of the batched protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_port: Option<u16>,
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}
