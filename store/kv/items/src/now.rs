// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time as items have it: whole seconds since 1970, as in the original.

use freeport_kv_protocol::memcached::Expiry;

/// The present time in seconds since 1970. The caller lets it never go back: it adds the time of
/// a monotonic clock to the time at which the server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub u32);

/// Time of an item that has expired from the beginning. 0 means that an item does not expire.
const LONG_AGO_S: u32 = 1;

impl Now {
    /// The time at which an expiry passes; none if never.
    #[inline]
    pub(crate) fn time_of(self, expiry: Expiry) -> Option<u32> {
        match expiry {
            Expiry::Never => None,
            Expiry::Now => Some(LONG_AGO_S),
            Expiry::InSeconds(seconds) => Some(self.0.saturating_add(seconds)),
            Expiry::AtUnixTime(time) => Some(time.max(LONG_AGO_S)),
        }
    }

    /// A time has come.
    #[inline]
    pub(crate) fn has_reached(self, time_s: Option<u32>) -> bool {
        time_s.is_some_and(|time| time <= self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_expires_in_the_second_of_its_time() {
        let now = Now(1_000);
        for (expiry, first_after) in [
            (Expiry::Now, Some(1)),
            (Expiry::InSeconds(1), Some(1_001)),
            (Expiry::InSeconds(u32::MAX), Some(u32::MAX)),
            (Expiry::AtUnixTime(5_000), Some(5_000)),
            (Expiry::Never, None),
        ] {
            let time = now.time_of(expiry);
            assert_eq!(time, first_after);
            if let Some(time) = time {
                assert!(!Now(time - 1).has_reached(Some(time)));
                assert!(Now(time).has_reached(Some(time)));
            }
        }
        assert!(!Now(u32::MAX).has_reached(None));
    }
}
