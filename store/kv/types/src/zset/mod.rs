// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets: members with scores, ordered by score and then by the bytes of the member.
//!
//! Every query is one of ranks. A range of scores, members or indexes is first turned into a range
//! of ranks, in O(log n) steps; [`ZSetRef::range`] then reads it from either end. A `LIMIT` is
//! arithmetic on ranks, so that a large offset costs nothing, and a count needs no elements.
//!
//! | | packed | large |
//! |---|---|---|
//! | form | members and scores in turn | table of members, and a counted B+tree |
//! | score of a member | scan of up to 128 members | O(1) |
//! | rank, bound of a range | scan | O(log n) |
//! | insert, remove | moves what follows | O(log n) |
//!
//! [`ZSetRef`] reads either form where it is. [`ZSet`] changes one; a packed set that passes one of
//! its [`Limits`] becomes large.
//!
//! ```
//! use freeport_kv_types::zset::{AddOptions, ScoreRange, ZSet, limit};
//! use freeport_kv_types::Limits;
//!
//! let (limits, options) = (Limits::default(), AddOptions::default());
//! let mut set = ZSet::default();
//! for (member, score) in [("ann", 31.0), ("bob", 7.5), ("cid", 12.0)] {
//!     set.add(&limits, member.as_bytes(), score, options).expect("no score is NaN");
//! }
//! // ZRANGE key 10 +inf BYSCORE LIMIT 1 1
//! let range = ScoreRange::parse(b"10", b"+inf").expect("both are numbers");
//! let ranks = limit(set.view().ranks_by_score(&range), 1, 1, false);
//! let found: Vec<_> = set.view().range(ranks).map(|(member, _)| member.to_vec()).collect();
//! assert_eq!(found, [b"ann"]);
//! ```

mod algebra;
mod bound;
mod change;
mod large;
mod members;
mod sample;
mod score;
mod small;
mod snapshot;
mod tree;

use std::collections::HashSet;
use std::ops::Range;

use crate::entry::Entry;
use crate::indexes;
use crate::limits::Limits;
use crate::packed::Packed;

pub use algebra::{Aggregate, Source, Weighted, difference, intersection, intersection_len, union};
pub use bound::{BoundError, LexBound, LexRange, ScoreBound, ScoreRange};
pub use change::{AddOptions, Compare, Existing, NotANumber, Outcome};
pub use large::Large;
pub use score::{parse_score, push_score};

/// A sorted set that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub enum ZSetRef<'a> {
    /// A small set, in bytes.
    Packed(Packed<'a>),
    /// A set that passed one of its limits.
    Large(&'a Large),
}

/// A sorted set that can be changed.
#[derive(Clone, Debug)]
pub enum ZSet {
    /// A small set, in bytes: a copy of the value, which is put back after the change.
    Packed(Vec<u8>),
    /// A set that passed one of its limits.
    Large(Box<Large>),
}

impl Default for ZSet {
    /// The empty set.
    fn default() -> Self {
        Self::Packed(vec![])
    }
}

impl<'a> ZSetRef<'a> {
    /// Reads the packed set in `bytes`.
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        Self::Packed(Packed::new(bytes))
    }

    /// Number of members.
    pub fn len(self) -> usize {
        match self {
            Self::Packed(packed) => small::len(packed),
            Self::Large(large) => large.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The score of `member` (`ZSCORE`).
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(packed) => small::find(packed, member).map(|(_, score)| score),
            Self::Large(large) => large.score(member),
        }
    }

    /// Number of elements before `member`, and its score (`ZRANK ... WITHSCORE`). The rank of
    /// `ZREVRANK` is the number of members, less 1, less this.
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            Self::Packed(packed) => small::rank(packed, member),
            Self::Large(large) => large.rank(member),
        }
    }

    /// The ranks of the elements whose scores lie in `range`. Their number is the result of
    /// `ZCOUNT`.
    pub fn ranks_by_score(self, range: &ScoreRange) -> Range<usize> {
        let (start, end) = match self {
            Self::Packed(packed) => (
                small::partition(packed, |score, _| range.starts_after(score)),
                small::partition(packed, |score, _| range.ends_after(score)),
            ),
            Self::Large(large) => (
                large.partition_scores(|score| range.starts_after(score)),
                large.partition_scores(|score| range.ends_after(score)),
            ),
        };
        start..end.max(start)
    }

    /// The ranks of the elements whose members lie in `range`, if all scores are equal. Their
    /// number is the result of `ZLEXCOUNT`. If scores differ, the result is some range.
    pub fn ranks_by_lex(self, range: &LexRange<'_>) -> Range<usize> {
        let (start, end) = match self {
            Self::Packed(packed) => {
                let count = |is_before: &dyn Fn(&[u8]) -> bool| {
                    small::partition(packed, |_, member| member.with_bytes(is_before))
                };
                (
                    count(&|member| range.starts_after(member)),
                    count(&|member| range.ends_after(member)),
                )
            }
            Self::Large(large) => (
                large.partition(|_, member| range.starts_after(member)),
                large.partition(|_, member| range.ends_after(member)),
            ),
        };
        start..end.max(start)
    }

    /// The ranks from index `start` to index `stop`, which is included. Negative indexes count from
    /// the end, and those beyond either end are cut off (`ZRANGE`). With `is_reverse`, indexes
    /// count from the element with the highest score (`ZREVRANGE`); the ranks do not.
    pub fn ranks_by_index(self, start: i64, stop: i64, is_reverse: bool) -> Range<usize> {
        let len = self.len();
        let Range { start, end } = indexes::range(len, start, stop);
        if is_reverse && start < end { len - end..len - start } else { start..end }
    }

    /// The elements of the ranks `ranks`, in order. The part of `ranks` beyond the last element is
    /// left out.
    pub fn range(self, ranks: Range<usize>) -> Iter<'a> {
        let end = ranks.end.min(self.len());
        let ranks = ranks.start.min(end)..end;
        match self {
            Self::Packed(packed) => Iter(Form::Packed(small::SmallIter::new(packed, ranks))),
            Self::Large(large) => Iter(Form::Large(large.range(ranks))),
        }
    }

    /// All elements, in order.
    pub fn iter(self) -> Iter<'a> {
        self.range(0..self.len())
    }

    /// Name of the form, as OBJECT ENCODING gives it.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Packed(_) => "listpack",
            Self::Large(_) => "skiplist",
        }
    }

    /// Memory of the set in bytes, in O(1): of a packed one its length, of a large one as
    /// allocated.
    pub fn memory_bytes(self) -> usize {
        match self {
            Self::Packed(packed) => packed.size_bytes(),
            Self::Large(large) => large.memory_bytes(),
        }
    }
}

impl<'a> IntoIterator for ZSetRef<'a> {
    type Item = (Entry<'a>, f64);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl ZSet {
    /// A set of elements that are in order, each member once, in O(n). Large if it has to be by
    /// `limits`.
    ///
    /// # Errors
    /// The index of the first element that is not after the one before it, whose member is
    /// repeated, or whose score is not a number.
    pub fn from_sorted(limits: &Limits, elements: &[(&[u8], f64)]) -> Result<Self, usize> {
        let is_small = elements.len() <= limits.zset_entries
            && elements.iter().all(|(member, _)| member.len() <= limits.zset_value_bytes);
        if !is_small {
            let large = Large::from_sorted(limits.hash_seed, elements.iter().copied())?;
            return Ok(Self::Large(Box::new(large)));
        }
        let mut members = HashSet::with_capacity(elements.len());
        let mut bytes = vec![];
        for (at, (member, score)) in elements.iter().enumerate() {
            let is_after =
                |(before, low): &(&[u8], f64)| low < score || low == score && before < member;
            let last = at.checked_sub(1).map(|last| &elements[last]);
            if score.is_nan() || !last.is_none_or(is_after) || !members.insert(*member) {
                return Err(at);
            }
            small::push(&mut bytes, member, *score);
        }
        Ok(Self::Packed(bytes))
    }

    /// The set, to read it.
    pub fn view(&self) -> ZSetRef<'_> {
        match self {
            Self::Packed(bytes) => ZSetRef::from_packed(bytes),
            Self::Large(large) => ZSetRef::Large(large),
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is no member. Redis removes the key of an empty set.
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }
}

/// The part of `ranks` that `LIMIT offset count` leaves. Offsets count from the end of `ranks` if
/// `is_reverse`. A negative count is none, and a negative offset leaves nothing.
pub fn limit(ranks: Range<usize>, offset: i64, count: i64, is_reverse: bool) -> Range<usize> {
    let len = ranks.len();
    let skipped = usize::try_from(offset).unwrap_or(len).min(len);
    let count = usize::try_from(count).unwrap_or(len).min(len - skipped);
    if is_reverse {
        let end = ranks.start + len - skipped;
        return end - count..end;
    }
    let start = ranks.start + skipped;
    start..start + count
}

/// Elements of a sorted set in order, from both ends.
#[derive(Clone, Debug)]
pub struct Iter<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    Packed(small::SmallIter<'a>),
    Large(large::LargeIter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (Entry<'a>, f64);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Form::Packed(elements) => elements.next(),
            Form::Large(elements) => {
                elements.next().map(|(member, score)| (Entry::new(member), score))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Form::Packed(elements) => elements.size_hint(),
            Form::Large(elements) => elements.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Form::Packed(elements) => elements.next_back(),
            Form::Large(elements) => {
                elements.next_back().map(|(member, score)| (Entry::new(member), score))
            }
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}
