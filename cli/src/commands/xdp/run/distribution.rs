// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Distributions of a quantity per packet, such as cycles.

use std::collections::BTreeMap;

/// Number of packets by quantity.
#[derive(Default)]
pub struct Distribution {
    packets: BTreeMap<u64, u64>,
}

/// Summary of a distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PerPacket {
    pub mean: f64,
    pub median: u64,
    pub percentile_99: u64,
    pub most: u64,
}

impl Distribution {
    /// Counts a packet with this quantity.
    pub fn count(&mut self, each: u64) {
        *self.packets.entry(each).or_default() += 1;
    }

    /// The summary, or `None` if nothing was counted.
    pub fn per_packet(&self) -> Option<PerPacket> {
        let (&most, _) = self.packets.last_key_value()?;
        let count: u64 = self.packets.values().sum();
        let all =
            self.packets.iter().map(|(&each, &packets)| u128::from(each) * u128::from(packets));
        Some(PerPacket {
            mean: all.sum::<u128>() as f64 / count as f64,
            median: self.percentile(count, 50),
            percentile_99: self.percentile(count, 99),
            most,
        })
    }

    /// The smallest quantity that at least this percentage of packets does not exceed.
    fn percentile(&self, count: u64, percent: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let found = self.packets.iter().find(|&(_, &packets)| {
            seen += u128::from(packets);
            seen >= rank
        });
        found.map_or(0, |(&each, _)| each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_packets() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.per_packet(), None);
        (1..=200).for_each(|each| distribution.count(each));
        let expected = PerPacket { mean: 100.5, median: 100, percentile_99: 198, most: 200 };
        assert_eq!(distribution.per_packet(), Some(expected));
    }
}
