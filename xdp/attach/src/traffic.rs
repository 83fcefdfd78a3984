// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's traffic counters of an interface.

use crate::Count;
use std::io;

/// Counters of the interfaces in a thread's namespace.
const INTERFACES: &str = "/proc/thread-self/net/dev";

/// Traffic of an interface since it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets received.
    pub received: Count,
    /// Packets sent.
    pub sent: Count,
}

impl Traffic {
    /// Reads the counters of an interface in the thread's namespace.
    ///
    /// # Errors
    /// There is no interface of that name, or the counters cannot be read.
    pub fn of(interface: &str) -> io::Result<Self> {
        let text = std::fs::read_to_string(INTERFACES)?;
        Self::find(&text, interface).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the difference to an earlier reading.
    pub fn since(self, before: Self) -> Self {
        let since = |now: Count, then: Count| Count {
            packets: now.packets.saturating_sub(then.packets),
            bytes: now.bytes.saturating_sub(then.bytes),
        };
        let received = since(self.received, before.received);
        Self { received, sent: since(self.sent, before.sent) }
    }

    /// Finds an interface in a table of names, each with eight numbers received and eight sent; the
    /// first two of each are bytes and packets.
    fn find(table: &str, interface: &str) -> Option<Self> {
        let rows = table.lines().filter_map(|line| line.split_once(':'));
        let (_, numbers) = rows.into_iter().find(|(name, _)| name.trim() == interface)?;
        let numbers = numbers.split_whitespace().map(str::parse::<u64>);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        let count = |at| Some(Count { bytes: *numbers.get(at)?, packets: *numbers.get(at + 1)? });
        Some(Self { received: count(0)?, sent: count(8)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_kernels_table_is_read() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets\n    \
            lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n  \
            v0: 840 8 0 0 0 0 0 0 700 7 0 3 0 0 0 0\n";
        let found = Traffic::find(table, "v0").unwrap();
        assert_eq!(found.received, Count { packets: 8, bytes: 840 });
        assert_eq!(found.sent, Count { packets: 7, bytes: 700 });
        assert_eq!(Traffic::find(table, "v"), None);
        let before = Traffic { received: Count { packets: 3, bytes: 40 }, ..Traffic::default() };
        assert_eq!(found.since(before).received, Count { packets: 5, bytes: 800 });
    }
}
