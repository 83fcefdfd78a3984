// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chunks of clients that are not complete.

use crate::entry::{Entry, overhead};
use crate::gate::Permit;
use crate::options::Policy;
use std::collections::BTreeSet;

/// A chunk that is not complete.
pub(super) struct Open {
    pub(super) body: Vec<u8>,
    pub(super) paths: BTreeSet<String>,
    pub(super) slot: Permit,
    pub(super) policy: Policy,
}

impl Open {
    pub(super) fn new(slot: Permit, policy: Policy) -> Self {
        Self { body: Vec::new(), paths: BTreeSet::new(), slot, policy }
    }

    /// Returns whether a write fits.
    pub(super) fn fits(&self, entry: &Entry<'_>, chunk_bytes: usize) -> bool {
        self.body.len() + overhead(entry.path) + entry.data.len() <= chunk_bytes
    }

    pub(super) fn push(&mut self, entry: &Entry<'_>) {
        entry.put(&mut self.body);
        if !self.paths.contains(entry.path) {
            self.paths.insert(entry.path.into());
        }
    }
}
