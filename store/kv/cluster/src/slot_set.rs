// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of hash slots, written as ranges: `0-5460,9000`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use freeport_kv_protocol::slots::SLOTS;
use serde::{Deserialize, Serialize};

const WORDS: usize = SLOTS as usize / 64;

/// A set of hash slots.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SlotSet(Box<[u64; WORDS]>);

/// A text is no set of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSlotsError(String);

impl fmt::Display for ParseSlotsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = SLOTS - 1;
        write!(formatter, "'{}' is no slot or range of slots from 0 to {last}", self.0)
    }
}

impl std::error::Error for ParseSlotsError {}

impl Default for SlotSet {
    /// No slot.
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl SlotSet {
    /// All slots.
    pub fn all() -> Self {
        Self(Box::new([u64::MAX; WORDS]))
    }

    /// A slot is in the set. Numbers that no slot has are in none.
    #[inline]
    pub fn has(&self, slot: u16) -> bool {
        self.0.get(usize::from(slot / 64)).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }

    /// Adds a slot.
    ///
    /// # Panics
    /// No slot has that number.
    pub fn insert(&mut self, slot: u16) {
        self.0[usize::from(slot / 64)] |= 1 << (slot % 64);
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// There is no slot.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Slots of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |mine, its| mine | its)
    }

    /// Slots that the other set does not have.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.combine(other, |mine, its| mine & !its)
    }

    /// Slots of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |mine, its| mine & its)
    }

    fn combine(&self, other: &Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self(Box::new(std::array::from_fn(|at| with(self.0[at], other.0[at]))))
    }

    /// The slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (0..SLOTS).filter(|slot| self.has(*slot))
    }

    /// Ranges of consecutive slots in ascending order, as long as possible.
    pub fn ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut ranges: Vec<RangeInclusive<u16>> = vec![];
        for slot in self.iter() {
            match ranges.last_mut() {
                Some(range) if *range.end() + 1 == slot => *range = *range.start()..=slot,
                _ => ranges.push(slot..=slot),
            }
        }
        ranges
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        let mut set = Self::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl fmt::Display for SlotSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, range) in self.ranges().into_iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(formatter, "{comma}{}", range.start())?;
            if range.start() < range.end() {
                write!(formatter, "-{}", range.end())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SlotSet({self})")
    }
}

impl FromStr for SlotSet {
    type Err = ParseSlotsError;

    fn from_str(text: &str) -> Result<Self, ParseSlotsError> {
        let mut set = Self::default();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let slot = |text: &str| text.parse::<u16>().ok().filter(|slot| *slot < SLOTS);
            match (slot(first), slot(last)) {
                (Some(first), Some(last)) if first <= last => {
                    (first..=last).for_each(|slot| set.insert(slot));
                }
                _ => return Err(ParseSlotsError(part.to_owned())),
            }
        }
        Ok(set)
    }
}

impl TryFrom<String> for SlotSet {
    type Error = ParseSlotsError;

    fn try_from(text: String) -> Result<Self, ParseSlotsError> {
        text.parse()
    }
}

impl From<SlotSet> for String {
    fn from(set: SlotSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        for text in ["", "0", "0-16383", "1,3-5,16383", "63-64,127-128"] {
            let set: SlotSet = text.parse().expect("a set");
            assert_eq!(set.to_string(), text);
            assert_eq!(set.iter().collect::<SlotSet>(), set);
            assert_eq!(set.len(), set.iter().count());
        }
        for wrong in ["-", "1-", "5-3", "16384", "0-16384", ",", "a", "1,,2"] {
            let error = wrong.parse::<SlotSet>().expect_err(wrong).to_string();
            assert!(error.contains("is no slot"), "{error}");
        }
    }

    #[test]
    fn sets_are_combined() {
        let set = |text: &str| text.parse::<SlotSet>().expect("a set");
        let (a, b) = (set("0-99,200"), set("50-150"));
        assert_eq!(a.union(&b), set("0-150,200"));
        assert_eq!(a.without(&b), set("0-49,200"));
        assert_eq!(a.intersection(&b), set("50-99"));
        assert_eq!(SlotSet::all(), set("0-16383"));
        assert!(!SlotSet::all().has(SLOTS) && set("").is_empty());
    }
}
