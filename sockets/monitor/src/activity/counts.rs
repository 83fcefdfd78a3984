// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of one end of a connection, and sums of them.

use serde_json::{Value, json};

/// Counts of one end, or the sum of several. The programs write them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Number of operations that sent something.
    pub sends: u64,
    /// Number of operations that received something.
    pub receives: u64,
    /// Number of bytes sent.
    pub sent_bytes: u64,
    /// Number of bytes received.
    pub received_bytes: u64,
    /// Number of doorbells rung for the peer.
    pub doorbells: u64,
    /// Number of doorbells rung by the peer.
    pub peer_doorbells: u64,
    /// Number of times it slept for data.
    pub sleeps: u64,
}

impl Counts {
    /// Reads the counts from a JSON object with these names; missing ones are 0.
    pub(crate) fn from_json(reported: &Value) -> Self {
        let count = |name: &str| reported[name].as_u64().unwrap_or_default();
        Self {
            sends: count("sends"),
            receives: count("receives"),
            sent_bytes: count("sent_bytes"),
            received_bytes: count("received_bytes"),
            doorbells: count("doorbells"),
            peer_doorbells: count("peer_doorbells"),
            sleeps: count("sleeps"),
        }
    }

    /// Returns the counts as a JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "sends": self.sends,
            "receives": self.receives,
            "sent_bytes": self.sent_bytes,
            "received_bytes": self.received_bytes,
            "doorbells": self.doorbells,
            "peer_doorbells": self.peer_doorbells,
            "sleeps": self.sleeps,
        })
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns the counts since `before`. A count that decreased is invalid and gives 0.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Number of bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.sent_bytes.saturating_add(self.received_bytes)
    }

    /// Number of operations in both directions.
    pub fn messages(&self) -> u64 {
        self.sends.saturating_add(self.receives)
    }

    /// Share of the receiving operations that slept first, 0 to 1; `None` if there were none.
    pub fn slept_share(&self) -> Option<f64> {
        (self.receives > 0).then(|| (self.sleeps as f64 / self.receives as f64).min(1.0))
    }

    fn with(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            sends: both(self.sends, other.sends),
            receives: both(self.receives, other.receives),
            sent_bytes: both(self.sent_bytes, other.sent_bytes),
            received_bytes: both(self.received_bytes, other.received_bytes),
            doorbells: both(self.doorbells, other.doorbells),
            peer_doorbells: both(self.peer_doorbells, other.peer_doorbells),
            sleeps: both(self.sleeps, other.sleeps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_taken_apart_again() {
        let one = Counts { sends: 3, receives: 4, sent_bytes: 30, sleeps: 1, ..Counts::default() };
        let other = Counts { sends: 1, received_bytes: 7, doorbells: 2, ..Counts::default() };
        let both = one.plus(&other);
        assert_eq!((both.messages(), both.bytes()), (8, 37));
        assert_eq!(both.since(&other), one);
        assert_eq!(one.since(&both), Counts::default(), "nothing counts backwards");
        assert_eq!(Counts::from_json(&both.to_json()), both);
        assert_eq!((one.slept_share(), other.slept_share()), (Some(0.25), None));
        let liar = Counts { sends: u64::MAX, receives: u64::MAX, sleeps: u64::MAX, ..one };
        assert_eq!((liar.plus(&liar).sends, liar.messages()), (u64::MAX, u64::MAX));
        assert_eq!(liar.slept_share(), Some(1.0));
    }
}
