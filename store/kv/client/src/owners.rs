// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which node serves each slot, as far as the nodes have said.

use freeport_kv_protocol::slots::SLOTS;

/// No node has said it yet, or it may have changed.
const UNKNOWN: u16 = u16::MAX;

/// The number of a node for each slot.
#[derive(Debug)]
pub(crate) struct Owners(Box<[u16]>);

impl Default for Owners {
    /// Nothing is known.
    fn default() -> Self {
        Self(vec![UNKNOWN; usize::from(SLOTS)].into())
    }
}

impl Owners {
    /// The node that serves a slot, if that is known.
    pub(crate) fn of(&self, slot: u16) -> Option<usize> {
        let node = self.0[usize::from(slot)];
        (node != UNKNOWN).then_some(usize::from(node))
    }

    /// Notes that a node serves a slot.
    pub(crate) fn set(&mut self, slot: u16, node: usize) {
        self.0[usize::from(slot)] = u16::try_from(node).unwrap_or(UNKNOWN);
    }

    /// Forgets the slots of a node.
    pub(crate) fn forget(&mut self, node: usize) {
        let owned = self.0.iter_mut().filter(|owner| usize::from(**owner) == node);
        owned.for_each(|owner| *owner = UNKNOWN);
    }
}

/// Slot and address of the text by which a node says that another one serves a key.
pub(crate) fn read_moved(text: &[u8]) -> Option<(u16, &str)> {
    let (slot, host) = str::from_utf8(text).ok()?.split_once(' ')?;
    let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
    Some((slot, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_learnt_and_forgotten() {
        let mut owners = Owners::default();
        owners.set(0, 1);
        owners.set(16_383, 2);
        assert_eq!([owners.of(0), owners.of(1), owners.of(16_383)], [Some(1), None, Some(2)]);
        owners.forget(1);
        assert_eq!([owners.of(0), owners.of(16_383)], [None, Some(2)]);
    }

    #[test]
    fn texts_about_other_nodes_are_read() {
        assert_eq!(read_moved(b"866 10.0.0.1:7000"), Some((866, "10.0.0.1:7000")));
        assert_eq!(read_moved(b"866 "), Some((866, "")));
        for wrong in [&b""[..], b"866", b"16384 a:1", b"-1 a:1", b"\xff a:1"] {
            assert_eq!(read_moved(wrong), None);
        }
    }
}
