// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When and how often keys are used, without a field in any pair: a table of cells of 16 bits that
//! the hash of a key indexes.
//!
//! A cell holds either the time of the last use in seconds, or, as in Redis, a logarithmic counter
//! of uses (8 bits) with the time at which it last decayed (8 bits). Both times wrap, so a sweep
//! renews old cells long before they would look young.
//!
//! Two keys may have one cell: both then look as young, or as often used, as the one that is used
//! more. There are two to four cells for each key, so at least 60 % of all keys have a cell of
//! their own. An unused key that shares a cell stays longer than it should; a key in use is never
//! taken for an idle one.

/// Cells of the smallest table.
const LEAST_CELLS: usize = 1 << 10;
/// Cells for each key, below which the table is doubled.
const CELLS_PER_KEY: usize = 2;
/// Parts of the table, one of which is swept at each step: ten steps a second visit each cell
/// once in 27 minutes.
const SWEEP_STEPS: usize = 1 << 14;
/// Longest idle time that is kept, in seconds: 13 hours. The rest of the 16 bits is what a cell
/// may grow older before the sweep visits it again.
const IDLE_MAX_S: u16 = 48 << 10;
/// Units of time of a counter's cell in one interval of decay, at most.
const UNITS_PER_DECAY: u32 = 64;
/// Counter of a key that has just been made, so that it is not evicted at once. The cell of a key
/// to come has one less: the write that makes the key is its first use.
const FIRST_COUNT: u8 = 5;
/// Largest probability of a step of the counter, as a number of 32 bits.
const CERTAIN: f64 = u32::MAX as f64;

/// Facts that are kept of the uses of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// Nothing.
    #[default]
    Off,
    /// Times of the last use.
    Recency,
    /// Frequencies of use.
    Frequency {
        /// The larger, the more uses it takes to reach the largest counter; 10 takes about a
        /// million.
        log_factor: u32,
        /// Minutes without use after which a counter is less by one; 0: never.
        decay_minutes: u32,
    },
}

impl Tracking {
    /// Frequencies are tracked.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Frequency { .. })
    }
}

/// The table of cells.
#[derive(Debug)]
pub(crate) struct AccessTable {
    tracking: Tracking,
    /// A power of two of them.
    cells: Vec<u16>,
    swept: usize,
}

impl AccessTable {
    /// A table for a number of keys, which all count as just used.
    pub fn new(tracking: Tracking, keys: usize, now_ms: u64) -> Self {
        let mut table = Self { tracking, cells: vec![], swept: 0 };
        table.cells = vec![table.new_cell(now_ms); cells_for(keys)];
        table
    }

    /// The facts that are tracked.
    pub fn tracking(&self) -> Tracking {
        self.tracking
    }

    /// Other parameters of the same kind of tracking keep what is known. Returns whether they are
    /// of the same kind.
    pub fn retune(&mut self, tracking: Tracking) -> bool {
        let is_same = std::mem::discriminant(&self.tracking) == std::mem::discriminant(&tracking);
        if is_same {
            self.tracking = tracking;
        }
        is_same
    }

    /// Bytes of the table.
    pub fn memory_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u16>()
    }

    /// A key is used. `random` is any number of 32 bits.
    #[inline]
    pub fn touch(&mut self, hash: u64, now_ms: u64, random: u32) {
        let at = self.place(hash);
        self.cells[at] = match self.tracking {
            Tracking::Frequency { log_factor, .. } => {
                let (count, unit) = self.count_at(at, now_ms);
                pack(increment(count, log_factor, random), unit)
            }
            _ => seconds(now_ms),
        };
    }

    /// A key was removed: one of the same name begins anew.
    pub fn forget(&mut self, hash: u64, now_ms: u64) {
        if self.tracking.counts() {
            let at = self.place(hash);
            self.cells[at] = self.new_cell(now_ms);
        }
    }

    /// Seconds since the last use of a key.
    pub fn idle_s(&self, hash: u64, now_ms: u64) -> u64 {
        u64::from(seconds(now_ms).wrapping_sub(self.cells[self.place(hash)]))
    }

    /// Sets the seconds since the last use.
    pub fn set_idle_s(&mut self, hash: u64, idle_s: u64, now_ms: u64) {
        let at = self.place(hash);
        let idle_s = u16::try_from(idle_s).unwrap_or(IDLE_MAX_S).min(IDLE_MAX_S);
        self.cells[at] = seconds(now_ms).wrapping_sub(idle_s);
    }

    /// Counter of the uses of a key.
    pub fn frequency(&self, hash: u64, now_ms: u64) -> u8 {
        self.count_at(self.place(hash), now_ms).0
    }

    /// Sets the counter of the uses of a key.
    pub fn set_frequency(&mut self, hash: u64, count: u8, now_ms: u64) {
        let at = self.place(hash);
        self.cells[at] = pack(count, self.unit_at(now_ms));
    }

    /// How suitable a key is as a victim; the most suitable one has the largest number.
    pub fn idleness(&self, hash: u64, now_ms: u64) -> u64 {
        match self.tracking {
            Tracking::Frequency { .. } => u64::from(u8::MAX - self.frequency(hash, now_ms)),
            _ => self.idle_s(hash, now_ms),
        }
    }

    /// Keeps the table large enough for a number of keys, and renews some old cells. To be called
    /// about ten times a second.
    pub fn tend(&mut self, keys: usize, now_ms: u64) {
        while self.cells.len() < cells_for(keys) {
            // One more bit of the hash counts: the upper half is for keys of the lower half.
            self.cells.extend_from_within(..);
        }
        let end = (self.swept + self.cells.len() / SWEEP_STEPS + 1).min(self.cells.len());
        for at in self.swept..end {
            self.renew(at, now_ms);
        }
        self.swept = end % self.cells.len();
    }

    fn renew(&mut self, at: usize, now_ms: u64) {
        self.cells[at] = match self.tracking {
            Tracking::Frequency { .. } => {
                let (count, unit) = self.count_at(at, now_ms);
                pack(count, unit)
            }
            _ => {
                let now_s = seconds(now_ms);
                now_s.wrapping_sub(now_s.wrapping_sub(self.cells[at]).min(IDLE_MAX_S))
            }
        };
    }

    /// Buckets of the index are chosen by low bits, and keys of one chain have them in common.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash.rotate_right(24) as usize & (self.cells.len() - 1)
    }

    fn new_cell(&self, now_ms: u64) -> u16 {
        match self.tracking {
            Tracking::Frequency { .. } => pack(FIRST_COUNT - 1, self.unit_at(now_ms)),
            _ => seconds(now_ms),
        }
    }

    /// Counter of a cell now, and the unit of time up to which it has decayed.
    fn count_at(&self, at: usize, now_ms: u64) -> (u8, u8) {
        let [count, unit] = self.cells[at].to_le_bytes();
        let (now, unit_minutes) = (self.unit_at(now_ms), self.unit_minutes());
        let Tracking::Frequency { decay_minutes: decay @ 1.., .. } = self.tracking else {
            return (count, now);
        };
        let elapsed_minutes = u32::from(now.wrapping_sub(unit)) * unit_minutes;
        let steps = elapsed_minutes / decay;
        let decayed = count.saturating_sub(u8::try_from(steps).unwrap_or(u8::MAX));
        // The part of the next interval that has passed stays.
        let units_left = (elapsed_minutes % decay) / unit_minutes;
        (decayed, now.wrapping_sub(units_left as u8))
    }

    /// Minutes of a unit of time, so that 8 bits hold several intervals of decay.
    fn unit_minutes(&self) -> u32 {
        match self.tracking {
            Tracking::Frequency { decay_minutes, .. } => {
                decay_minutes.div_ceil(UNITS_PER_DECAY).max(1)
            }
            _ => 1,
        }
    }

    fn unit_at(&self, now_ms: u64) -> u8 {
        (now_ms / 60_000 / u64::from(self.unit_minutes())) as u8
    }
}

/// Cells of a table for a number of keys.
fn cells_for(keys: usize) -> usize {
    (keys * CELLS_PER_KEY).next_power_of_two().max(LEAST_CELLS)
}

fn seconds(now_ms: u64) -> u16 {
    (now_ms / 1_000) as u16
}

fn pack(count: u8, unit: u8) -> u16 {
    u16::from_le_bytes([count, unit])
}

/// The counter after one more use: the larger it is, the less likely is a step (Redis, LFU).
fn increment(count: u8, log_factor: u32, random: u32) -> u8 {
    let base = f64::from(count.saturating_sub(FIRST_COUNT));
    let probability = 1.0 / (base * f64::from(log_factor) + 1.0);
    match f64::from(random) <= probability * CERTAIN {
        true => count.saturating_add(1),
        false => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;
    const FREQUENCY: Tracking = Tracking::Frequency { log_factor: 10, decay_minutes: 1 };

    #[test]
    fn idle_times_stop_at_the_longest_and_never_wrap() {
        let mut table = AccessTable::new(Tracking::Recency, 10, 0);
        assert_eq!(table.idle_s(7, 5_500), 5);
        table.touch(7, 6_000, 0);
        assert_eq!((table.idle_s(7, 9_000), table.idle_s(8, 9_000)), (3, 3));
        let mut now_ms = 6_000;
        for _ in 0..40 {
            now_ms += 10_000_000;
            // More steps than sweep the whole table.
            (0..table.cells.len() + 1).for_each(|_| table.tend(10, now_ms));
        }
        assert_eq!(table.idle_s(7, now_ms), u64::from(IDLE_MAX_S));
        table.set_idle_s(7, u64::MAX, now_ms);
        assert_eq!(table.idle_s(7, now_ms), u64::from(IDLE_MAX_S));
        table.set_idle_s(7, 1_000, now_ms);
        assert_eq!(table.idle_s(7, now_ms + 1_000), 1_001);
    }

    #[test]
    fn counters_grow_by_logarithm_and_decay_by_time() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut table = AccessTable::new(FREQUENCY, 10, 0);
        table.touch(1, 0, u32::MAX);
        assert_eq!(table.frequency(1, 0), FIRST_COUNT);
        let mut counts = vec![];
        for uses in [100, 900, 9_000, 90_000] {
            (0..uses).for_each(|_| table.touch(1, 0, random.u32(..)));
            counts.push(table.frequency(1, 0));
        }
        // Redis documents 10, 18, 49 and 142 or so for this factor; the steps are random.
        for (count, expected) in counts.iter().zip([10_u8, 18, 49, 142]) {
            assert!(count.abs_diff(expected) <= expected / 3, "{counts:?}");
        }
        let count = table.frequency(1, 0);
        assert_eq!(table.frequency(1, 10 * MINUTE_MS), count - 10);
        table.tend(10, 0);
        assert_eq!(table.frequency(1, 200 * MINUTE_MS), count.saturating_sub(200));
        table.forget(1, 0);
        table.touch(1, 0, u32::MAX);
        assert_eq!(table.frequency(1, 0), FIRST_COUNT);
    }

    #[test]
    fn slow_decay_keeps_what_has_passed_of_an_interval() {
        let tracking = Tracking::Frequency { log_factor: 0, decay_minutes: 1_000 };
        let mut table = AccessTable::new(tracking, 10, 0);
        table.set_frequency(1, 100, 0);
        for minute in 0..10_100 {
            let steps = table.cells.len() / 200;
            (0..steps).for_each(|_| table.tend(10, minute * MINUTE_MS));
        }
        assert!((89..=91).contains(&table.frequency(1, 10_100 * MINUTE_MS)));
        let never = Tracking::Frequency { log_factor: 0, decay_minutes: 0 };
        assert!(table.retune(never) && !table.retune(Tracking::Recency));
        assert!((89..=91).contains(&table.frequency(1, 90_000 * MINUTE_MS)));
    }

    #[test]
    fn a_larger_table_knows_what_the_smaller_one_knew() {
        let mut table = AccessTable::new(Tracking::Recency, 10, 0);
        let hashes: Vec<u64> = (0..2_000).map(|number: u64| number << 24).collect();
        for hash in hashes.iter().filter(|hash| *hash >> 24 < 500) {
            table.touch(*hash, 50_000, 0);
        }
        table.tend(10_000, 60_000);
        assert_eq!(table.cells.len(), 32 << 10);
        assert!(table.memory_bytes() >= 64 << 10);
        for hash in hashes.iter().filter(|hash| *hash >> 24 < 500) {
            assert_eq!(table.idle_s(*hash, 60_000), 10);
        }
        assert_eq!(table.idle_s(600 << 24, 60_000), 60);
    }
}
