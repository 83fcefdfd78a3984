// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of a registry in etcd, and what their values say.

use super::messages::KeyValue;
use crate::id::NodeId;
use crate::registry::{RegistryError, Revision, State, Versioned};
use crate::stored::{checked, decode};

/// Names of the keys.
pub(super) struct Keys {
    /// Begin of all keys.
    pub(super) prefix: String,
    /// The slot map.
    pub(super) topology: String,
    /// Begin of the keys of nodes, whose names follow.
    pub(super) nodes: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        let prefix = format!("/{prefix}/");
        Self { topology: format!("{prefix}topology"), nodes: format!("{prefix}nodes/"), prefix }
    }

    pub(super) fn node(&self, node: NodeId) -> String {
        format!("{}{node}", self.nodes)
    }

    /// Puts a key with its value into the state.
    pub(super) fn insert(&self, state: &mut State, pair: &KeyValue) -> Result<(), RegistryError> {
        let place = String::from_utf8_lossy(&pair.key);
        if place == self.topology {
            let topology = checked(&place, decode(&place, &pair.value)?)?;
            state.topology = Some(Versioned { revision: Revision(pair.mod_revision), topology });
        } else if let Some(node) = place.strip_prefix(&self.nodes) {
            let node = node
                .parse::<NodeId>()
                .map_err(|error| RegistryError::Contents(format!("{place}: {error}")))?;
            state.nodes.insert(node, decode(&place, &pair.value)?);
        }
        // Other keys belong to somebody else.
        Ok(())
    }

    /// Takes a removed key out of the state.
    pub(super) fn remove(&self, state: &mut State, key: &[u8]) {
        let key = String::from_utf8_lossy(key);
        if key == self.topology {
            state.topology = None;
        } else if let Some(Ok(node)) = key.strip_prefix(&self.nodes).map(str::parse) {
            state.nodes.remove(&node);
        }
    }
}
