// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unions, intersections and differences of sorted sets (`ZUNION`, `ZINTER`, `ZDIFF` and the
//! commands that store or count their results).
//!
//! Inputs are visited from the smallest to the largest, as Redis does: sums of doubles depend on
//! the order.

use std::collections::HashMap;

use super::{ZSet, ZSetRef};
use crate::limits::Limits;
use crate::set::SetRef;

/// An input: a sorted set, or a set whose members all have score 1.
pub trait Source {
    /// Number of members.
    fn len(&self) -> usize;

    /// Whether there is no member.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of `member`, if it is there.
    fn score(&self, member: &[u8]) -> Option<f64>;

    /// Calls `found` with each member and its score, in any order, until it returns `false`.
    fn visit(&self, found: &mut dyn FnMut(&[u8], f64) -> bool);
}

impl Source for ZSetRef<'_> {
    fn len(&self) -> usize {
        ZSetRef::len(*self)
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        ZSetRef::score(*self, member)
    }

    fn visit(&self, found: &mut dyn FnMut(&[u8], f64) -> bool) {
        let mut elements = self.iter();
        while let Some((member, score)) = elements.next()
            && member.with_bytes(|member| found(member, score))
        {}
    }
}

impl Source for SetRef<'_> {
    fn len(&self) -> usize {
        SetRef::len(*self)
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.contains(member).then_some(1.0)
    }

    fn visit(&self, found: &mut dyn FnMut(&[u8], f64) -> bool) {
        let mut members = self.iter();
        while let Some(member) = members.next()
            && member.with_bytes(|member| found(member, 1.0))
        {}
    }
}

/// How the scores of a member in several inputs become one (`AGGREGATE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum, or 0 if that is not a number.
    #[default]
    Sum,
    /// The lowest.
    Min,
    /// The highest.
    Max,
}

/// An input and the factor of its scores (`WEIGHTS`).
#[derive(Clone, Copy)]
pub struct Weighted<'a> {
    /// The input.
    pub source: &'a dyn Source,
    /// The factor, 1 without `WEIGHTS`.
    pub weight: f64,
}

impl Weighted<'_> {
    /// The weighted score. An infinite score has no product with 0; the result is 0 then.
    fn weigh(&self, score: f64) -> f64 {
        number_or_zero(self.weight * score)
    }
}

impl Aggregate {
    fn combine(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number_or_zero(one + other),
            // If `other` is not a number, `one` stays.
            Self::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Self::Max => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The members that are in some input, with their aggregated scores.
pub fn union(limits: &Limits, inputs: &[Weighted<'_>], aggregate: Aggregate) -> ZSet {
    let mut scores: HashMap<Vec<u8>, f64> = HashMap::new();
    for input in smallest_first(inputs) {
        input.source.visit(&mut |member, score| {
            let score = input.weigh(score);
            match scores.get_mut(member) {
                Some(present) => *present = aggregate.combine(*present, score),
                None => _ = scores.insert(member.to_vec(), score),
            }
            true
        });
    }
    sorted(limits, scores.into_iter().collect())
}

/// The members that are in all inputs, with their aggregated scores. Empty without inputs.
pub fn intersection(limits: &Limits, inputs: &[Weighted<'_>], aggregate: Aggregate) -> ZSet {
    let inputs = smallest_first(inputs);
    let mut elements = vec![];
    if let Some((first, others)) = inputs.split_first() {
        first.source.visit(&mut |member, score| {
            let score = others.iter().try_fold(first.weigh(score), |score, other| {
                // Redis replaces a product that is not a number for the first input only.
                let other_score = other.weight * other.source.score(member)?;
                Some(aggregate.combine(score, other_score))
            });
            elements.extend(score.map(|score| (member.to_vec(), score)));
            true
        });
    }
    sorted(limits, elements)
}

/// Number of members that are in all inputs, at most `limit` (`ZINTERCARD`). A limit of 0 is none.
pub fn intersection_len(inputs: &[&dyn Source], limit: usize) -> usize {
    let mut inputs = inputs.to_vec();
    inputs.sort_by_key(|input| input.len());
    let mut count = 0;
    if let Some((first, others)) = inputs.split_first() {
        first.visit(&mut |member, _| {
            count += usize::from(others.iter().all(|other| other.score(member).is_some()));
            limit == 0 || count < limit
        });
    }
    count
}

/// The members of the first input that are in no other, with their scores. Empty without inputs.
pub fn difference(limits: &Limits, inputs: &[&dyn Source]) -> ZSet {
    let mut elements = vec![];
    if let Some((first, others)) = inputs.split_first() {
        let mut others = others.to_vec();
        // A member is most likely in the largest input.
        others.sort_by_key(|input| std::cmp::Reverse(input.len()));
        first.visit(&mut |member, score| {
            if others.iter().all(|other| other.score(member).is_none()) {
                elements.push((member.to_vec(), score));
            }
            true
        });
    }
    sorted(limits, elements)
}

fn smallest_first<'a>(inputs: &[Weighted<'a>]) -> Vec<Weighted<'a>> {
    let mut inputs = inputs.to_vec();
    inputs.sort_by_key(|input| input.source.len());
    inputs
}

/// The set of `elements`, which have each member once.
fn sorted(limits: &Limits, mut elements: Vec<(Vec<u8>, f64)>) -> ZSet {
    elements.sort_unstable_by(|(member, score), (other, other_score)| {
        let order = score.partial_cmp(other_score).expect("no score is NaN");
        order.then_with(|| member.cmp(other))
    });
    let elements: Vec<_> =
        elements.iter().map(|(member, score)| (member.as_slice(), *score)).collect();
    ZSet::from_sorted(limits, &elements)
        .expect("elements are sorted, and each member is there once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Set;
    use crate::zset::AddOptions;

    fn set(elements: &[(&str, f64)]) -> ZSet {
        let (mut set, limits) = (ZSet::default(), Limits::default());
        for (member, score) in elements {
            set.add(&limits, member.as_bytes(), *score, AddOptions::default()).unwrap();
        }
        set
    }

    fn elements(set: &ZSet) -> Vec<(String, f64)> {
        let text = |member: crate::Entry<'_>| String::from_utf8(member.to_vec()).unwrap();
        set.view().iter().map(|(member, score)| (text(member), score)).collect()
    }

    fn weighted<'a>(inputs: &'a [(ZSetRef<'a>, f64)]) -> Vec<Weighted<'a>> {
        inputs.iter().map(|(source, weight)| Weighted { source, weight: *weight }).collect()
    }

    #[test]
    fn scores_are_weighted_and_aggregated() {
        let (one, two) = (set(&[("a", 1.0), ("b", 2.0)]), set(&[("b", 5.0), ("3", 0.0)]));
        let inputs = [(one.view(), 2.0), (two.view(), 10.0)];
        let (inputs, limits) = (weighted(&inputs), Limits::default());
        let found = elements(&union(&limits, &inputs, Aggregate::Sum));
        assert_eq!(found, [("3".into(), 0.0), ("a".into(), 2.0), ("b".into(), 54.0)]);
        let found = elements(&intersection(&limits, &inputs, Aggregate::Min));
        assert_eq!(found, [("b".into(), 4.0)]);
        let found = elements(&intersection(&limits, &inputs, Aggregate::Max));
        assert_eq!(found, [("b".into(), 50.0)]);
        assert!(intersection(&limits, &[], Aggregate::Sum).is_empty());
    }

    #[test]
    fn what_is_not_a_number_becomes_zero() {
        let one = set(&[("a", f64::INFINITY)]);
        let two = set(&[("a", f64::NEG_INFINITY)]);
        let inputs = [(one.view(), 1.0), (two.view(), 1.0)];
        let found = union(&Limits::default(), &weighted(&inputs), Aggregate::Sum);
        assert_eq!(elements(&found), [("a".into(), 0.0)]);
        let three = set(&[("a", -2.0)]);
        let inputs = [(three.view(), 1.0), (one.view(), 0.0)];
        let found = intersection(&Limits::default(), &weighted(&inputs), Aggregate::Max);
        assert_eq!(elements(&found), [("a".into(), -2.0)]);
        let found = union(&Limits::default(), &weighted(&inputs), Aggregate::Max);
        assert_eq!(elements(&found), [("a".into(), 0.0)]);
        let inputs = [(one.view(), 0.0)];
        let found = union(&Limits::default(), &weighted(&inputs), Aggregate::Sum);
        assert_eq!(elements(&found), [("a".into(), 0.0)]);
    }

    #[test]
    fn differences_and_counts_follow_membership() {
        let (one, two) = (set(&[("a", 1.0), ("b", 2.0), ("c", 3.0)]), set(&[("b", 9.0)]));
        let (one, two) = (one.view(), two.view());
        let limits = Limits::default();
        let found = elements(&difference(&limits, &[&one, &two]));
        assert_eq!(found, [("a".into(), 1.0), ("c".into(), 3.0)]);
        assert_eq!(intersection_len(&[&one, &two], 0), 1);
        assert_eq!(intersection_len(&[&one, &one], 0), 3);
        assert_eq!(intersection_len(&[&one, &one], 2), 2);
        assert_eq!(intersection_len(&[], 0), 0);
        let mut plain = Set::default();
        assert!(plain.add(&limits, b"c".as_slice()) && plain.add(&limits, b"d".as_slice()));
        let plain = plain.view();
        let found = elements(&difference(&limits, &[&plain, &one]));
        assert_eq!(found, [("d".into(), 1.0)]);
        assert_eq!(intersection_len(&[&one, &plain], 0), 1);
    }
}
