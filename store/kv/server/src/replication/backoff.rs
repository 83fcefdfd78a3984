// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pauses of a replica between two links to its primary.

use std::time::Duration;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Pauses that double until a link lasts, or the role changes.
#[derive(Debug, Default)]
pub struct Backoff {
    /// The change of the role to which the last link belonged, and the pause behind it.
    last: Option<(u64, Duration)>,
}

impl Backoff {
    /// The pause behind a link that was in step for a time. One that fails as soon as it is in step
    /// has not lasted: the primary would send its whole state again and again.
    pub fn next(&mut self, attempt: u64, lasted: Duration) -> Duration {
        let pause = match self.last {
            Some((before, pause)) if before == attempt && lasted <= LONGEST => {
                (pause * 2).min(LONGEST)
            }
            _ => FIRST,
        };
        self.last = Some((attempt, pause));
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_until_a_link_lasts_or_the_role_changes() {
        let mut backoff = Backoff::default();
        let mut next = |attempt, lasted| backoff.next(attempt, lasted).as_millis();
        let short = Duration::from_millis(1);
        let pauses: Vec<u128> = (0..8).map(|_| next(1, short)).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(next(1, Duration::from_secs(3)), 50);
        assert_eq!(next(1, Duration::ZERO), 100);
        assert_eq!(next(2, Duration::ZERO), 50);
    }
}
