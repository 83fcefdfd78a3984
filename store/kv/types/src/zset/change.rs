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
        if score.is_nan() {
            return Err(NotANumber);
        }
        let Some(present) = self.view().score(member) else {
            if options.existing == Existing::OnlyExisting {
                return Ok(Outcome::Refused);
            }
            self.insert(limits, member, score);
            return Ok(Outcome::Added(score));
        };
        if options.existing == Existing::OnlyNew {
            return Ok(Outcome::Refused);
        }
        let score = if options.is_increment { present + score } else { score };
        if score.is_nan() {
            return Err(NotANumber);
        }
        let is_allowed = match options.compare {
            Compare::Any => true,
            Compare::Greater => score > present,
            Compare::Less => score < present,
        };
        if !is_allowed {
            return Ok(Outcome::Refused);
        }
        if score == present {
            return Ok(Outcome::Same(score));
        }
        match self {
            Self::Packed(bytes) => {
                remove_packed(bytes, member);
                small::insert(bytes, member, score);
            }
            Self::Large(large) => large.set(member, score),
        }
        Ok(Outcome::Updated(score))
    }

    /// Removes `member` (`ZREM`). Returns its score if it was in the set.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(bytes) => remove_packed(bytes, member),
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
            let len = small::len(Packed::new(bytes));
            if len < limits.zset_entries && member.len() <= limits.zset_value_bytes {
                return small::insert(bytes, member, score);
            }
            *self = Self::Large(Box::new(small::enlarge(limits, Packed::new(bytes))));
        }
        if let Self::Large(large) = self {
            large.set(member, score);
        }
    }
}

fn remove_packed(bytes: &mut Vec<u8>, member: &[u8]) -> Option<f64> {
    let (place, score) = small::find(Packed::new(bytes), member)?;
    packed::remove(bytes, place, 2);
    Some(score)
}
