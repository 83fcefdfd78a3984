// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of a sorted set, with the conditions of `ZADD`.

use std::ops::Range;

use thiserror::Error;

use super::{ZSet, small};
use crate::limits::Limits;
use crate::packed::{self, Packed};

/// The score would not be a number: an infinity was added to the opposite one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("resulting score is not a number (NaN)")]
pub struct NotANumber;

/// Members that are changed by [`ZSet::add`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Members are added, and those in the set are changed.
    #[default]
    Any,
    /// Members are added only (`NX`).
    OnlyNew,
    /// Members in the set are changed only (`XX`).
    OnlyExisting,
}

/// New scores that members in the set may get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// Every score.
    #[default]
    Any,
    /// Scores above the present one (`GT`).
    Greater,
    /// Scores below the present one (`LT`).
    Less,
}

/// Conditions and kind of a change. Redis refuses [`Existing::OnlyNew`] together with a comparison;
/// here the comparison has no effect then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Members that are changed.
    pub existing: Existing,
    /// New scores that members in the set may get.
    pub compare: Compare,
    /// The score is added to the present one (`INCR`).
    pub is_increment: bool,
}

/// Result of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The member was added with this score.
    Added(f64),
    /// The member was in the set and has this new score. `ZADD ... CH` also counts these.
    Updated(f64),
    /// The member was in the set and has this score already.
    Same(f64),
    /// A condition does not hold. `ZADD ... INCR` returns nil.
    Refused,
}

impl AddOptions {
    /// The result of a change to `score` of a member whose score is `present`, if it is in the set.
    fn decide(self, present: Option<f64>, score: f64) -> Result<Outcome, NotANumber> {
        if score.is_nan() {
            return Err(NotANumber);
        }
        let Some(present) = present else {
            return Ok(match self.existing {
                Existing::OnlyExisting => Outcome::Refused,
                Existing::Any | Existing::OnlyNew => Outcome::Added(score),
            });
        };
        if self.existing == Existing::OnlyNew {
            return Ok(Outcome::Refused);
        }
        let score = if self.is_increment { present + score } else { score };
        if score.is_nan() {
            return Err(NotANumber);
        }
        let is_allowed = match self.compare {
            Compare::Any => true,
            Compare::Greater => score > present,
            Compare::Less => score < present,
        };
        Ok(match is_allowed {
            false => Outcome::Refused,
            true if score == present => Outcome::Same(score),
            true => Outcome::Updated(score),
        })
    }
}

impl ZSet {
    /// Adds `member` with `score`, or changes its score (`ZADD`, `ZINCRBY`).
    ///
    /// # Errors
    /// [`NotANumber`] if the new score is not a number; the set stays as it was.
    pub fn add(
        &mut self,
        limits: &Limits,
        member: &[u8],
        score: f64,
        options: AddOptions,
    ) -> Result<Outcome, NotANumber> {
        let outcome;
        match self {
            Self::Packed(bytes) => {
                let found = small::find(Packed::new(bytes), member);
                outcome = options.decide(found.map(|(_, present)| present), score)?;
                if let (Some((place, _)), Outcome::Updated(score)) = (found, outcome) {
                    packed::remove(bytes, place, 2);
                    small::insert(bytes, place, member, score);
                }
            }
            Self::Large(large) => {
                let found = large.find(member);
                outcome = options.decide(found.map(|(_, present)| present), score)?;
                if let (Some((id, present)), Outcome::Updated(score)) = (found, outcome) {
                    large.update(id, member, present, score);
                }
            }
        }
        if let Outcome::Added(score) = outcome {
            self.insert(limits, member, score);
        }
        Ok(outcome)
    }

    /// Removes `member` (`ZREM`). Returns its score if it was in the set.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(bytes) => {
                let (place, score) = small::find(Packed::new(bytes), member)?;
                packed::remove(bytes, place, 2);
                Some(score)
            }
            Self::Large(large) => large.remove(member),
        }
    }

    /// Removes the elements of the ranks `ranks` (`ZREMRANGEBYRANK` and, with the ranks of a range,
    /// `ZREMRANGEBYSCORE` and `ZREMRANGEBYLEX`). Returns their number.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) -> usize {
        let end = ranks.end.min(self.len());
        let start = ranks.start.min(end);
        match self {
            Self::Packed(bytes) => small::remove(bytes, start, end - start),
            Self::Large(large) => (start..end).rev().for_each(|rank| large.remove_rank(rank)),
        }
        end - start
    }

    /// Removes the element with the lowest score (`ZPOPMIN`), and returns it.
    pub fn pop_min(&mut self) -> Option<(Vec<u8>, f64)> {
        self.pop(0)
    }

    /// Removes the element with the highest score (`ZPOPMAX`), and returns it.
    pub fn pop_max(&mut self) -> Option<(Vec<u8>, f64)> {
        self.pop(self.len().checked_sub(1)?)
    }

    fn pop(&mut self, rank: usize) -> Option<(Vec<u8>, f64)> {
        let (member, score) = self.view().range(rank..rank + 1).next()?;
        let member = member.to_vec();
        self.remove_ranks(rank..rank + 1);
        Some((member, score))
    }

    /// Adds a member that is not in the set.
    fn insert(&mut self, limits: &Limits, member: &[u8], score: f64) {
        if let Self::Packed(bytes) = self {
            let packed = Packed::new(bytes);
            // Scores that grow with time are common, and come last.
            let (len, end) = (small::len(packed), packed.end());
            if len < limits.zset_entries && member.len() <= limits.zset_value_bytes {
                return small::insert(bytes, end, member, score);
            }
            *self = Self::Large(Box::new(small::enlarge(limits, Packed::new(bytes))));
        }
        if let Self::Large(large) = self {
            large.insert(member, score);
        }
    }
}
