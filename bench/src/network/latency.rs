// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long things took.

use std::time::Duration;

/// Times, from the shortest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    sorted: Vec<Duration>,
}

impl Latencies {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The time that `part` (0 to 1) of them do not exceed; 0 if there are none.
    pub fn quantile(&self, part: f64) -> Duration {
        let place = (part * self.sorted.len() as f64).ceil() as usize;
        let at = place.saturating_sub(1).min(self.sorted.len().saturating_sub(1));
        self.sorted.get(at).copied().unwrap_or_default()
    }
}

impl FromIterator<Duration> for Latencies {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut sorted: Vec<Duration> = times.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let all: Latencies = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(all.quantile(0.5), Duration::from_millis(100));
        assert_eq!(all.quantile(0.99), Duration::from_millis(198));
        assert_eq!(all.quantile(1.0), Duration::from_millis(200));
        assert_eq!(all.quantile(0.0), Duration::from_millis(1));
        assert_eq!(Latencies::default().quantile(0.5), Duration::ZERO);
    }
}
