// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracks each user's share of the monitor's resources, so that no user can exhaust them.
//!
//! A slab has two ends and counts for the pair of their users. A user who connects to many others
//! therefore takes nothing from what those share with each other.

use super::{Monitor, Slab};
use crate::member::MemberId;
use std::collections::HashMap;

/// Users of the two ends of a slab, smaller number first.
type Users = (u32, u32);

/// Resources in use, by user.
#[derive(Default)]
pub(super) struct Shares {
    of_slab: HashMap<u32, Users>,
    slabs: HashMap<Users, usize>,
    waiting: HashMap<u32, usize>,
}

impl Shares {
    /// Number of slabs that two users share.
    pub fn slabs(&self, users: Users) -> usize {
        self.slabs.get(&users).copied().unwrap_or_default()
    }

    /// Number of a user's waiting claims.
    pub fn waiting(&self, user: u32) -> usize {
        self.waiting.get(&user).copied().unwrap_or_default()
    }

    pub fn add_slab(&mut self, number: u32, users: Users) {
        self.of_slab.insert(number, users);
        *self.slabs.entry(users).or_default() += 1;
    }

    pub fn remove_slab(&mut self, number: u32) {
        if let Some(users) = self.of_slab.remove(&number) {
            take(&mut self.slabs, users, 1);
        }
    }

    pub fn add_waiting(&mut self, user: u32) {
        *self.waiting.entry(user).or_default() += 1;
    }

    pub fn remove_waiting(&mut self, user: u32, count: usize) {
        take(&mut self.waiting, user, count);
    }
}

/// Subtracts `count`, and removes the entry at zero.
fn take<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, of: K, count: usize) {
    if let Some(left) = counts.get_mut(&of) {
        *left = left.saturating_sub(count);
        if *left == 0 {
            counts.remove(&of);
        }
    }
}

impl Monitor {
    /// Returns the users of two members.
    pub(super) fn users(&self, ids: [MemberId; 2]) -> Users {
        let [one, other] =
            ids.map(|id| self.members.get(&id).map_or(u32::MAX, |it| it.process.user));
        (one.min(other), one.max(other))
    }

    /// Removes a slab that will not be used again.
    pub(super) fn take_slab(&mut self, number: u32) -> Option<Slab<super::Connection>> {
        self.shares.remove_slab(number);
        self.slabs.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_counts_no_more() {
        let mut shares = Shares::default();
        shares.add_slab(7, (0, 5));
        shares.add_slab(8, (0, 5));
        shares.add_slab(9, (5, 5));
        assert_eq!([(0, 5), (5, 5), (0, 0)].map(|users| shares.slabs(users)), [2, 1, 0]);
        shares.remove_slab(8);
        shares.remove_slab(8);
        assert_eq!(shares.slabs((0, 5)), 1);
        shares.remove_slab(7);
        assert!(!shares.slabs.contains_key(&(0, 5)));
        (0..3).for_each(|_| shares.add_waiting(5));
        shares.remove_waiting(5, 2);
        assert_eq!((shares.waiting(5), shares.waiting(0)), (1, 0));
        shares.remove_waiting(5, 9);
        assert!(shares.waiting.is_empty());
    }
}
