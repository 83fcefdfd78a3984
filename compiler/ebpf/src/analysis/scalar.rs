// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts about a 64-bit number: known bits, unsigned and signed range, and range of the lower half.
//! Each of them refines the others ([`Scalar::tightened`]).
//!
//! Known bits follow Vishwanathan, Shachnai, Narayana and Nagarakatte, "Sound, Precise, and Fast
//! Abstract Interpretation with Tristate Numbers" (2022).

mod arithmetic;
mod bits;
mod compare;

use bits::Bits;
use std::fmt;

/// A set of 64-bit numbers, never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scalar {
    bits: Bits,
    unsigned: (u64, u64),
    signed: (i64, i64),
    /// Unsigned range of the lower half.
    low: (u32, u32),
}

impl Scalar {
    /// All numbers.
    pub const ANY: Self = Self {
        bits: Bits::UNKNOWN,
        unsigned: (0, u64::MAX),
        signed: (i64::MIN, i64::MAX),
        low: (0, u32::MAX),
    };

    /// Returns the set of one number.
    pub fn constant(value: u64) -> Self {
        let low = value as u32;
        Self {
            bits: Bits::constant(value),
            unsigned: (value, value),
            signed: (value as i64, value as i64),
            low: (low, low),
        }
    }

    /// Returns the numbers from `least` to `most`, unsigned.
    pub fn between(least: u64, most: u64) -> Self {
        Self { unsigned: (least, most), ..Self::ANY }.tightened().unwrap_or(Self::ANY)
    }

    /// Returns the numbers from `least` to `most`, signed.
    pub fn between_signed(least: i64, most: i64) -> Self {
        Self { signed: (least, most), ..Self::ANY }.tightened().unwrap_or(Self::ANY)
    }

    /// Returns the numbers with these bits; those in `unknown` may be set or not.
    pub fn with_bits(value: u64, unknown: u64) -> Self {
        let bits = Bits { value: value & !unknown, unknown };
        Self { bits, ..Self::ANY }.tightened().unwrap_or(Self::ANY)
    }

    /// Returns the numbers of at most this many bits.
    pub fn of_bits(bits: u32) -> Self {
        Self::between(0, u64::MAX.checked_shr(64 - bits).unwrap_or(0))
    }

    /// Returns the number, if there is only one.
    pub fn value(&self) -> Option<u64> {
        (self.unsigned.0 == self.unsigned.1).then_some(self.unsigned.0)
    }

    /// Returns the least and greatest number, unsigned.
    pub fn unsigned(&self) -> (u64, u64) {
        self.unsigned
    }

    /// Returns the least and greatest number, signed.
    pub fn signed(&self) -> (i64, i64) {
        self.signed
    }

    /// Returns the bits that are set in all numbers, and the unknown bits.
    pub fn bits(&self) -> (u64, u64) {
        (self.bits.value, self.bits.unknown)
    }

    /// Returns whether the set contains a number.
    pub fn contains(&self, value: u64) -> bool {
        let (signed, low) = (value as i64, value as u32);
        (value ^ self.bits.value) & !self.bits.unknown == 0
            && self.unsigned.0 <= value
            && value <= self.unsigned.1
            && self.signed.0 <= signed
            && signed <= self.signed.1
            && self.low.0 <= low
            && low <= self.low.1
    }

    /// Returns whether the set contains all numbers of `other`, as far as each bound shows on its
    /// own.
    pub fn covers(&self, other: &Self) -> bool {
        self.bits.join(other.bits) == self.bits
            && hull(self.unsigned, other.unsigned) == self.unsigned
            && hull(self.signed, other.signed) == self.signed
            && hull(self.low, other.low) == self.low
    }

    /// Returns a set with the numbers of both.
    pub fn join(&self, other: &Self) -> Self {
        if self.covers(other) {
            return *self;
        }
        let joined = Self {
            bits: self.bits.join(other.bits),
            unsigned: hull(self.unsigned, other.unsigned),
            signed: hull(self.signed, other.signed),
            low: hull(self.low, other.low),
        };
        joined.tightened().unwrap_or(joined)
    }

    /// Returns the numbers in both sets, or `None` if there are certainly none.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        Self {
            bits: self.bits.meet(other.bits)?,
            unsigned: common(self.unsigned, other.unsigned),
            signed: common(self.signed, other.signed),
            low: common(self.low, other.low),
        }
        .tightened()
    }

    /// Returns a superset of both, such that every chain of such sets is finite: a bound that moves
    /// goes directly to the next of the sorted `steps`.
    pub fn widened(&self, other: &Self, steps: &[u64]) -> Self {
        if self.covers(other) {
            return *self;
        }
        let up = |old: u64, new: u64| if new <= old { old } else { step_above(steps, new) };
        let down = |old: u64, new: u64| if new >= old { old } else { step_below(steps, new) };
        let signed_up = |old: i64, new: i64| match new {
            new if new <= old => old,
            new if new >= 0 => step_above(steps, new as u64).min(i64::MAX as u64) as i64,
            _ => -1,
        };
        let signed_down = |old: i64, new: i64| match new {
            new if new >= old => old,
            new if new >= 0 => step_below(steps, new as u64) as i64,
            new => (step_above(steps, new.unsigned_abs()).min(1 << 63) as i64).wrapping_neg(),
        };
        let unsigned =
            (down(self.unsigned.0, other.unsigned.0), up(self.unsigned.1, other.unsigned.1));
        let signed =
            (signed_down(self.signed.0, other.signed.0), signed_up(self.signed.1, other.signed.1));
        let low = (
            down(self.low.0.into(), other.low.0.into()) as u32,
            up(self.low.1.into(), other.low.1.into()).min(u32::MAX.into()) as u32,
        );
        let widened = Self { bits: self.bits.join(other.bits), unsigned, signed, low };
        widened.tightened().unwrap_or(Self::ANY)
    }

    /// Narrows each bound by the others, or returns `None` if the set is empty.
    fn tightened(mut self) -> Option<Self> {
        // The second round uses the results of the first.
        for _ in 0..2 {
            self = self.bounded_by_bits().bounded_by_sign().bounded_by_halves();
            self.bits = self.bits.meet(Bits::between(self.unsigned.0, self.unsigned.1))?;
            let low = Bits::between(self.low.0.into(), self.low.1.into());
            self.bits = self.bits.meet(low.with_upper_half_unknown())?;
            let is_empty = self.unsigned.0 > self.unsigned.1
                || self.signed.0 > self.signed.1
                || self.low.0 > self.low.1;
            if is_empty {
                return None;
            }
        }
        Some(self)
    }

    fn bounded_by_bits(mut self) -> Self {
        let Bits { value, unknown } = self.bits;
        self.unsigned = common(self.unsigned, (value, value | unknown));
        self.low = common(self.low, (value as u32, (value | unknown) as u32));
        self
    }

    /// Narrows the ranges where all numbers have the same sign: unsigned and signed range are then
    /// equal.
    fn bounded_by_sign(mut self) -> Self {
        let (least, most) = self.unsigned;
        if least as i64 <= most as i64 {
            self.signed = common(self.signed, (least as i64, most as i64));
        }
        let (least, most) = self.signed;
        if least as u64 <= most as u64 {
            self.unsigned = common(self.unsigned, (least as u64, most as u64));
        }
        self
    }

    /// Narrows the range where all numbers have the same upper half, from the range of the lower
    /// half.
    fn bounded_by_halves(mut self) -> Self {
        let (least, most) = self.unsigned;
        if least >> 32 == most >> 32 {
            self.low = common(self.low, (least as u32, most as u32));
            let upper = least >> 32 << 32;
            let low = (upper | u64::from(self.low.0), upper | u64::from(self.low.1));
            self.unsigned = common(self.unsigned, low);
        }
        self
    }
}

/// Returns the least range that contains two ranges.
fn hull<T: Ord + Copy>(one: (T, T), other: (T, T)) -> (T, T) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// Returns the intersection of two ranges; its bounds cross if it is empty.
fn common<T: Ord + Copy>(one: (T, T), other: (T, T)) -> (T, T) {
    (one.0.max(other.0), one.1.min(other.1))
}

/// Returns the first step that is not below `value`.
pub(super) fn step_above(steps: &[u64], value: u64) -> u64 {
    steps.get(steps.partition_point(|step| *step < value)).copied().unwrap_or(u64::MAX)
}

/// Returns the last step that is not above `value`.
pub(super) fn step_below(steps: &[u64], value: u64) -> u64 {
    let behind = steps.partition_point(|step| *step <= value);
    behind.checked_sub(1).map_or(0, |at| steps[at])
}

impl fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.value() {
            return write!(formatter, "{value:#x}");
        }
        let (least, most) = self.unsigned;
        match self.signed {
            _ if (least, most) != (0, u64::MAX) => write!(formatter, "{least:#x}..={most:#x}"),
            (i64::MIN, i64::MAX) => formatter.write_str("any number"),
            (least, most) => write!(formatter, "{least}..={most}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a few numbers, often close together or at boundaries, and a set that contains them.
    pub(crate) fn random_set(random: &mut fastrand::Rng) -> (Vec<u64>, Scalar) {
        const EDGES: [u64; 8] =
            [0, 1, 63, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, i64::MIN as u64, u64::MAX];
        let start = match random.u32(..3) {
            0 => EDGES[random.usize(..EDGES.len())],
            1 => random.u64(..300),
            _ => random.u64(..),
        };
        let spread = [1, 2, 9, 1 << 20, 1 << 40][random.usize(..5)];
        let count = random.usize(1..5);
        let values: Vec<u64> =
            (0..count).map(|_| start.wrapping_add(random.u64(..spread))).collect();
        let constants = values.iter().map(|value| Scalar::constant(*value));
        let all = constants.reduce(|one, other| one.join(&other)).expect("there is one");
        assert!(values.iter().all(|value| all.contains(*value)), "{values:x?} {all:?}");
        (values, all)
    }

    #[test]
    fn joining_and_widening_keep_all_numbers() {
        let mut random = fastrand::Rng::with_seed(1);
        let steps = [0, 1, 9, 255, 0xffff, 0xffff_ffff];
        for _ in 0..50_000 {
            let (left, one) = random_set(&mut random);
            let (right, other) = random_set(&mut random);
            let (joined, widened) = (one.join(&other), one.widened(&other, &steps));
            for value in left.iter().chain(&right) {
                assert!(joined.contains(*value) && widened.contains(*value), "{one:?} {other:?}");
            }
            match one.meet(&other) {
                Some(met) => {
                    let both = left.iter().filter(|value| other.contains(**value));
                    assert!(both.into_iter().all(|value| met.contains(*value)));
                }
                None => assert!(left.iter().all(|value| !other.contains(*value))),
            }
        }
    }

    #[test]
    fn widening_comes_to_an_end() {
        let mut random = fastrand::Rng::with_seed(2);
        let steps = [0, 1, 9, 255, 0xffff, 0xffff_ffff];
        for _ in 0..500 {
            let (_, mut all) = random_set(&mut random);
            let mut changes = 0;
            for _ in 0..2_000 {
                let next = all.widened(&random_set(&mut random).1, &steps);
                changes += u32::from(next != all);
                all = next;
            }
            assert!(changes < 100, "{changes}");
        }
    }

    #[test]
    fn each_bound_follows_from_the_others() {
        let byte = Scalar::of_bits(8);
        assert_eq!((byte.unsigned(), byte.signed()), ((0, 255), (0, 255)));
        assert_eq!(byte.bits(), (0, 255));
        assert_eq!(Scalar::between_signed(-4, -1).unsigned(), (u64::MAX - 3, u64::MAX));
        assert_eq!(Scalar::of_bits(64), Scalar::ANY);
        assert_eq!(Scalar::between(16, 16).value(), Some(16));
        assert_eq!(Scalar::between(1, 5).meet(&Scalar::between(6, 9)), None);
        assert_eq!(Scalar::constant(0).join(&Scalar::constant(8)).bits(), (0, 8));
    }
}
