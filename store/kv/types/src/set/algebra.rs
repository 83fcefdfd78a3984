// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Union, intersection and difference of sets, with the algorithms that Redis chooses by the sizes
//! of the sets. A key that does not exist is an empty set.

use super::{Set, SetRef};
use crate::entry::Entry;
use crate::limits::Limits;
use std::cmp::Reverse;

/// Calls `emit` with the members that are in all sets, and with at most `limit` of them if it is
/// not 0 (SINTERCARD). Takes time in proportion to the smallest set.
pub fn intersection<'a>(sets: &[SetRef<'a>], limit: usize, emit: impl FnMut(Entry<'a>)) {
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    let limit = if limit == 0 { usize::MAX } else { limit };
    let is_in_all = |member: &Entry<'_>| others.iter().all(|other| other.contains(*member));
    smallest.iter().filter(is_in_all).take(limit).for_each(emit);
}

/// Returns the members that are in one of the sets.
pub fn union(sets: &[SetRef<'_>], limits: &Limits) -> Set {
    let mut result = Set::default();
    for member in sets.iter().flat_map(|set| set.iter()) {
        result.add(limits, member);
    }
    result
}

/// Returns the members of the first set that are in no other one.
///
/// Either every member of the first set is searched in the others, or the members of the others
/// are removed from a copy of the first. The first way usually ends earlier, so it is taken up to
/// twice the work.
pub fn difference(sets: &[SetRef<'_>], limits: &Limits) -> Set {
    let Some((first, others)) = sets.split_first() else { return Set::default() };
    let searches = first.len().saturating_mul(sets.len());
    let removals: usize = sets.iter().map(|set| set.len()).sum();
    let mut result = Set::default();
    if searches / 2 <= removals {
        let mut others = others.to_vec();
        // A large set more probably has the member.
        others.sort_by_key(|set| Reverse(set.len()));
        for member in first.iter() {
            if !others.iter().any(|other| other.contains(member)) {
                result.add(limits, member);
            }
        }
        return result;
    }
    for member in first.iter() {
        result.add(limits, member);
    }
    for member in others.iter().flat_map(|set| set.iter()) {
        if result.view().is_empty() {
            break;
        }
        result.remove(member);
    }
    result
}
