// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of datagrams.

use crate::statistics::Counter;

/// Counts of a worker's datagrams.
#[derive(Debug, Default)]
pub struct DatagramCounters {
    /// Datagrams from clients.
    pub received: Counter,
    /// Datagrams that are no packet, or whose operations break a rule.
    pub malformed: Counter,
    /// Datagrams without the token of their sender.
    pub refused: Counter,
    /// Datagrams with replies that the system has taken.
    pub replies: Counter,
    /// Datagrams that were dropped, nearly always with replies, because the system's buffer or the
    /// room for replies that wait for the log was full.
    pub dropped: Counter,
    /// Clients, as of a moment ago.
    pub sessions: Counter,
}

/// A count and what it means.
pub struct DatagramCount {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Its place.
    pub of: fn(&DatagramCounters) -> &Counter,
}

impl DatagramCounters {
    /// All counts that only grow.
    pub const TOTALS: [DatagramCount; 5] = [
        DatagramCount {
            name: "udp_datagrams_received",
            help: "Datagrams from clients.",
            of: |counters| &counters.received,
        },
        DatagramCount {
            name: "udp_datagrams_malformed",
            help: "Datagrams that break a rule of the batched protocol.",
            of: |counters| &counters.malformed,
        },
        DatagramCount {
            name: "udp_datagrams_refused",
            help: "Datagrams without the token of their sender.",
            of: |counters| &counters.refused,
        },
        DatagramCount {
            name: "udp_datagrams_sent",
            help: "Datagrams to clients.",
            of: |counters| &counters.replies,
        },
        DatagramCount {
            name: "udp_datagrams_dropped",
            help: "Datagrams that there was no room for.",
            of: |counters| &counters.dropped,
        },
    ];

    /// Forgets everything but the present state.
    pub fn reset(&self) {
        Self::TOTALS.iter().for_each(|count| (count.of)(self).set(0));
    }
}
