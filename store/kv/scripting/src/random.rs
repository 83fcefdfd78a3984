// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers of scripts: the generator of `lrand48`, which POSIX defines. All servers start
//! with the same state.

/// Multiplier and increment of the sequence.
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
/// Low bits of the state after a seed.
const SEED_LOW: u64 = 0x330E;
const STATE_BITS: u32 = 48;
/// Numbers are below this one.
pub(crate) const RANGE: u32 = i32::MAX as u32;

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Default for Random {
    /// The state of a process that has set no seed.
    fn default() -> Self {
        Self(0x1234_ABCD_330E)
    }
}

impl Random {
    /// The sequence of a seed.
    pub(crate) fn new(seed: i32) -> Self {
        Self(u64::from(seed as u32) << 16 | SEED_LOW)
    }

    /// The next number, at most [`RANGE`].
    pub(crate) fn draw(&mut self) -> u32 {
        let state = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        self.0 = state & ((1 << STATE_BITS) - 1);
        (self.0 >> (STATE_BITS - 31)) as u32
    }

    /// The next number from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from(self.draw() % RANGE) / f64::from(RANGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_standard() {
        let mut random = Random::new(0);
        assert_eq!([(); 3].map(|()| random.draw()), [366_850_414, 1_610_402_240, 206_956_554]);
        let mut random = Random::new(-1);
        assert!(random.draw() <= RANGE);
        assert!((0.0..1.0).contains(&random.fraction()));
    }
}
