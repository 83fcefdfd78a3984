// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sums of members' counts in connections that have ended.
//!
//! Both members can write arbitrary values into the words of a connection. So a value is added only
//! if a process can have done that much in the lifetime of the connection, and the totals never
//! exceed what all processors can have done since the monitor started. Values beyond the first
//! bound are left out, and counted.

use crate::activity::Counts;
use crate::slab::{Words, reused};
use freeport_sockets_proto::slab::word;
use std::time::{Duration, Instant};

/// Upper bounds on a processor's speed: several times that of present ones.
const BYTES_A_NANOSECOND: u64 = 64;
const NANOSECONDS_A_SEND: u64 = 8;
const NANOSECONDS_A_CONNECTION: u64 = 1000;

/// Tolerance on a connection's lifetime: the monitor reads the clock once per turn.
const INEXACT: Duration = Duration::from_millis(100);

/// Upper bounds on what can be done in some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bound {
    bytes: u64,
    sends: u64,
    reused: u64,
}

impl Bound {
    fn of(time: Duration, processors: u64) -> Self {
        let time = u64::try_from((time + INEXACT).as_nanos()).unwrap_or(u64::MAX);
        let time = time.saturating_mul(processors);
        Self {
            bytes: time.saturating_mul(BYTES_A_NANOSECOND),
            sends: time / NANOSECONDS_A_SEND,
            reused: time / NANOSECONDS_A_CONNECTION,
        }
    }
}

/// Sums over all ended connections.
pub struct Sums {
    begun: Instant,
    processors: u64,
    pub bytes: u64,
    pub operations: u64,
    /// Connections made over an existing stream.
    pub reused: u64,
    /// Number of sides whose values were left out.
    pub left_out: u64,
}

impl Sums {
    /// Creates the sums of a monitor that starts now.
    pub fn new(now: Instant) -> Self {
        // SAFETY: only numbers are passed.
        let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let processors = u64::try_from(processors).unwrap_or(1).max(1);
        Self { begun: now, processors, bytes: 0, operations: 0, reused: 0, left_out: 0 }
    }

    /// Adds the words of both sides of a connection.
    pub fn add(&mut self, words: &[Words; 2], since: Instant, now: Instant) {
        let one = Bound::of(now.saturating_duration_since(since), 1);
        let all = Bound::of(now.saturating_duration_since(self.begun), self.processors);
        for side in words {
            let (bytes, sends) = (side.at(word::SENT_BYTES), side.sends());
            if bytes > one.bytes || sends > one.sends {
                self.left_out += 1;
                continue;
            }
            self.bytes = self.bytes.saturating_add(bytes).min(all.bytes);
            self.operations = self.operations.saturating_add(sends).min(all.sends);
        }
        let reused = believed(reused(words), since, now);
        self.reused = self.reused.saturating_add(reused).min(all.reused);
    }
}

/// Returns the counts of a side in a connection if they are possible, otherwise zeros.
pub fn believed_counts(counts: Counts, since: Instant, now: Instant) -> Counts {
    let most = Bound::of(now.saturating_duration_since(since), 1);
    let operations = [counts.sends, counts.receives, counts.sleeps]
        .into_iter()
        .chain([counts.doorbells, counts.peer_doorbells]);
    let is_possible = operations.max() <= Some(most.sends)
        && counts.sent_bytes.max(counts.received_bytes) <= most.bytes;
    if is_possible { counts } else { Counts::default() }
}

/// Returns the number of connections made over a stream, not counting the first, if it is possible,
/// otherwise 0.
pub fn believed(reused: u64, since: Instant, now: Instant) -> u64 {
    let most = Bound::of(now.saturating_duration_since(since), 1).reused;
    if reused > most { 0 } else { reused }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_nobody_can_have_done_is_left_out() {
        let begun = Instant::now();
        let mut sums = Sums::new(begun);
        let now = begun + SECOND;
        let honest = Words::default().with(word::SENT_BYTES, 1000).with(word::WRITING, 14);
        for bytes in [u64::MAX, u64::MAX / 2, 1 << 40] {
            sums.add(&[honest, Words::default().with(word::SENT_BYTES, bytes)], begun, now);
        }
        sums.add(&[honest, Words::default().with(word::WRITING, u64::MAX)], begun, now);
        assert_eq!((sums.bytes, sums.operations, sums.left_out), (4000, 28, 4));
        // A value that a fast processor can reach is counted.
        let fast = Words::default().with(word::SENT_BYTES, 20_000_000_000);
        sums.add(&[fast, honest], begun, now);
        assert_eq!((sums.bytes, sums.left_out), (20_000_005_000, 4));
    }

    #[test]
    fn many_that_lie_within_bounds_stay_below_what_all_can_do() {
        let begun = Instant::now();
        let mut sums = Sums::new(begun);
        let now = begun + SECOND;
        let most = Words::default().with(word::SENT_BYTES, 64_000_000_000);
        (0..1_000_000).for_each(|_| sums.add(&[most, most], begun, now));
        assert_eq!(sums.bytes, Bound::of(SECOND, sums.processors).bytes);
        // So later values are counted again soon.
        let later = now + SECOND;
        sums.add(&[Words::default().with(word::SENT_BYTES, 7), Words::default()], now, later);
        assert_eq!(sums.bytes, Bound::of(SECOND, sums.processors).bytes + 7);
    }

    #[test]
    fn counts_that_are_not_possible_are_none() {
        let begun = Instant::now();
        let honest = Counts { sends: 5, receives: 7, sent_bytes: 9, ..Counts::default() };
        assert_eq!(believed_counts(honest, begun, begun + SECOND), honest);
        for liar in [
            Counts { sent_bytes: u64::MAX, ..honest },
            Counts { received_bytes: u64::MAX, ..honest },
            Counts { peer_doorbells: u64::MAX, ..honest },
        ] {
            assert_eq!(believed_counts(liar, begun, begun + SECOND), Counts::default());
        }
    }

    #[test]
    fn connections_over_a_stream_take_time() {
        let begun = Instant::now();
        let mut sums = Sums::new(begun);
        let said = |count| [Words::default().with(word::REUSED, count); 2];
        sums.add(&said(u64::MAX), begun, begun + SECOND);
        sums.add(&said(50_000), begun, begun + SECOND);
        assert_eq!(sums.reused, 50_000);
    }
}
