// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules by which a stream is shortened from its front (`XTRIM`, and `XADD` with the same options).

use super::StreamId;
use super::node::{self, Node};
use crate::limits::Limits;

/// Which entries leave the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    rule: Rule,
    /// Whether only whole nodes are removed.
    is_approximate: bool,
    /// Most entries to remove.
    most: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Keep this number of entries (`MAXLEN`).
    Length(u64),
    /// Keep entries from this id (`MINID`).
    From(StreamId),
}

/// Part of the first node that a trim removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// None: the stream is short enough.
    Nothing,
    /// The whole node.
    Node,
    /// Entries at its front.
    Front,
}

impl Trim {
    /// Keeps the last `length` entries.
    pub fn to_length(length: u64) -> Trim {
        Trim { rule: Rule::Length(length), is_approximate: false, most: None }
    }

    /// Keeps the entries from `id`.
    pub fn to_id(id: StreamId) -> Trim {
        Trim { rule: Rule::From(id), is_approximate: false, most: None }
    }

    /// Removes whole nodes only (`~`), and at most `most` entries (`LIMIT`); 0 is no limit. Without
    /// a given limit, Redis takes [`default_limit`](Self::default_limit).
    #[must_use]
    pub fn approximately(self, most: u64) -> Trim {
        Trim { is_approximate: true, most: (most > 0).then_some(most), ..self }
    }

    /// Most entries that an approximate trim removes if the client gives no limit: a hundred
    /// nodes.
    pub fn default_limit(limits: &Limits) -> u64 {
        match 100u64.saturating_mul(limits.stream_node_entries as u64) {
            0 => 10_000,
            entries => entries.min(1_000_000),
        }
    }

    /// Returns what to remove of the first node of a stream with `length` entries, of which
    /// `removed` are removed already.
    pub(super) fn cut(&self, node: &Node<'_>, length: u64, removed: u64) -> Cut {
        let live = u64::from(node.live);
        if self.most.is_some_and(|most| removed + live > most) {
            return Cut::Nothing;
        }
        let is_whole = match self.rule {
            Rule::Length(kept) if length <= kept => return Cut::Nothing,
            Rule::Length(kept) => length - live >= kept,
            Rule::From(id) => node.last().is_none_or(|last| last < id),
        };
        match (is_whole, self.is_approximate) {
            (true, _) => Cut::Node,
            (false, true) => Cut::Nothing,
            (false, false) => Cut::Front,
        }
    }

    /// Marks entries at the front of a node as deleted. Returns how many were live.
    pub(super) fn delete_front(&self, node: &mut [u8], length: u64) -> u64 {
        match self.rule {
            Rule::Length(kept) => node::delete_front(node, |_, marked| length - marked <= kept),
            Rule::From(first) => node::delete_front(node, |id, _| id >= first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of entries with times from 1 to 4, of which the last is deleted.
    fn node() -> Vec<u8> {
        let mut bytes = vec![];
        node::start(&mut bytes, StreamId::new(1, 0), &[b"f", b"v"]);
        (1..=4).for_each(|ms| node::append(&mut bytes, 0, StreamId::new(ms, 0), &[b"f", b"v"]));
        node::delete(&mut bytes, StreamId::new(4, 0));
        bytes
    }

    #[test]
    fn the_first_node_is_removed_whole_in_part_or_not() {
        let bytes = node();
        let cut = |trim: Trim| trim.cut(&Node::read(&bytes).unwrap(), 10, 0);
        assert_eq!(cut(Trim::to_length(10)), Cut::Nothing);
        assert_eq!(cut(Trim::to_length(8)), Cut::Front);
        assert_eq!(cut(Trim::to_length(7)), Cut::Node);
        assert_eq!(cut(Trim::to_length(8).approximately(0)), Cut::Nothing);
        assert_eq!(cut(Trim::to_length(7).approximately(0)), Cut::Node);
        assert_eq!(cut(Trim::to_length(7).approximately(2)), Cut::Nothing);
        // Deleted entries count for the end of a node, as in Redis.
        assert_eq!(cut(Trim::to_id(StreamId::new(4, 0))), Cut::Front);
        assert_eq!(cut(Trim::to_id(StreamId::new(4, 1))), Cut::Node);
    }

    #[test]
    fn the_default_limit_is_a_hundred_nodes() {
        let limit = |stream_node_entries| {
            Trim::default_limit(&Limits { stream_node_entries, ..Limits::default() })
        };
        assert_eq!([limit(0), limit(100), limit(1 << 40)], [10_000, 10_000, 1_000_000]);
        assert_eq!(limit(usize::MAX), 1_000_000);
    }
}
