// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracks sockets that members have passed to other processes, and which processes may hold them.
//!
//! A socket may be claimed only by its sole holder. Members track copies that arise from their own
//! forks. A process that received or inherited a socket cannot know whether the sender kept it. So
//! members report here when they pass a socket, and when they no longer hold it. If a sole holder
//! passes a socket once and then no longer holds it, exactly one holder remains.
//!
//! Sockets are identified by their cookies, which the kernel never reuses.

use super::{IDLE, Monitor};
use crate::disposal::Shown;
use crate::member::{Departure, MemberId};
use freeport_sockets_proto::Reason;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::AsFd;
use std::time::Instant;

/// A member's report that it passes a socket.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub by: MemberId,
    pub token: u64,
    pub alone: bool,
    pub inherited: bool,
}

/// Processes that may hold a passed socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holders {
    /// The member that passed it, and one other process.
    Two { passer: MemberId, token: u64 },
    /// One process, which has not claimed it yet.
    One,
    /// This member.
    Known(MemberId),
    /// Unknown, for good.
    Many,
}

/// Passed sockets, up to a maximum; beyond it, the oldest socket of the user with most of them is
/// evicted.
pub(super) struct Passed {
    holders: HashMap<u64, Holders>,
    /// Sockets with [`Holders::Two`], by the passing member and its token.
    by_token: BTreeMap<(MemberId, u64), u64>,
    /// All sockets by the user that first passed them, oldest first.
    of_user: BTreeMap<u32, VecDeque<u64>>,
    most: usize,
    /// Number of passes.
    pub times: u64,
    pub forgotten: u64,
}

impl Passed {
    pub fn new(most: usize) -> Self {
        Self {
            holders: HashMap::new(),
            by_token: BTreeMap::new(),
            of_user: BTreeMap::new(),
            most,
            times: 0,
            forgotten: 0,
        }
    }

    /// Number of sockets in the table.
    pub fn count(&self) -> usize {
        self.holders.len()
    }

    /// Records that one more process may hold a socket. Returns whether that changed anything.
    fn pass(&mut self, cookie: u64, user: u32, pass: Pass) -> bool {
        let Pass { by, token, alone, inherited } = pass;
        let before = self.holders.get(&cookie).copied();
        let was_alone = match before {
            None => !inherited,
            Some(Holders::One) => inherited,
            Some(Holders::Known(holder)) => inherited && holder == by,
            Some(Holders::Two { .. } | Holders::Many) => false,
        };
        if before.is_none() {
            self.make_room();
            self.of_user.entry(user).or_default().push_back(cookie);
        }
        self.times += 1;
        let two = alone && was_alone;
        let holders = if two { Holders::Two { passer: by, token } } else { Holders::Many };
        self.set(cookie, holders);
        before != Some(Holders::Many)
    }

    /// Records that the member that passed a socket no longer holds it. Returns false if it has
    /// passed no socket with this token.
    pub fn part(&mut self, id: MemberId, token: u64) -> bool {
        let cookie = self.by_token.get(&(id, token)).copied();
        cookie.inspect(|cookie| self.set(*cookie, Holders::One)).is_some()
    }

    /// Records that a member's process has exited or executes another program.
    pub fn leave(&mut self, id: MemberId) {
        let its = self.by_token.range((id, 0)..=(id, u64::MAX));
        self.set_all(its.map(|(_, cookie)| *cookie).collect(), Holders::One);
    }

    /// Records that a member will no longer report about its sockets.
    pub fn abandon(&mut self, id: MemberId) {
        let is_its = |holders: &Holders| match holders {
            Holders::Two { passer: holder, .. } | Holders::Known(holder) => *holder == id,
            Holders::One | Holders::Many => false,
        };
        let its = self.holders.iter().filter(|(_, holders)| is_its(holders));
        self.set_all(its.map(|(cookie, _)| *cookie).collect(), Holders::Many);
    }

    /// Returns whether the member that shows a socket is its only holder, as far as this table
    /// knows.
    pub fn may_claim(&mut self, cookie: u64, id: MemberId, inherited: bool) -> bool {
        match self.holders.get(&cookie) {
            None => !inherited,
            Some(Holders::Known(holder)) => *holder == id,
            Some(Holders::One) if inherited => {
                self.set(cookie, Holders::Known(id));
                true
            }
            Some(Holders::One | Holders::Two { .. } | Holders::Many) => false,
        }
    }

    fn set(&mut self, cookie: u64, holders: Holders) {
        let before = self.holders.insert(cookie, holders);
        self.forget_token(before);
        let Holders::Two { passer, token } = holders else { return };
        // Two sockets with the same token cannot be distinguished when the member parts with one.
        if let Some(other) = self.by_token.insert((passer, token), cookie) {
            self.holders.insert(other, Holders::Many);
        }
    }

    fn set_all(&mut self, cookies: Vec<u64>, holders: Holders) {
        cookies.into_iter().for_each(|cookie| self.set(cookie, holders));
    }

    fn forget_token(&mut self, before: Option<Holders>) {
        if let Some(Holders::Two { passer, token }) = before {
            self.by_token.remove(&(passer, token));
        }
    }

    fn make_room(&mut self) {
        while self.holders.len() >= self.most {
            let most = self.of_user.values_mut().max_by_key(|sockets| sockets.len());
            let Some(cookie) = most.and_then(VecDeque::pop_front) else { return };
            let before = self.holders.remove(&cookie);
            self.forget_token(before);
            self.forgotten += 1;
        }
        self.of_user.retain(|_, sockets| !sockets.is_empty());
    }
}

impl Monitor {
    /// Handles a member's report that it passes a socket.
    pub(super) fn pass(
        &mut self,
        pass: Pass,
        mut descriptors: Vec<Shown>,
        now: Instant,
    ) -> Result<(), Departure> {
        let id = pass.by;
        let Some(user) = self.members.get(&id).map(|member| member.process.user) else {
            return Ok(());
        };
        let Some(socket) = descriptors.pop() else { return self.bear(id, 1.0, now) };
        let end = self.examiner.examine(socket.as_fd());
        self.close(id, socket, now);
        // A socket that cannot be claimed need not be tracked.
        let Ok(end) = end else { return self.bear(id, IDLE, now) };
        if self.waiting.get(&end.key).is_some_and(|it| it.end.is(&end))
            && let Some(claim) = self.stop_waiting(&end.key, now)
        {
            self.refuse(claim, Reason::Shared, now);
        }
        let is_news = self.passed.pass(end.cookie, user, pass);
        if is_news { Ok(()) } else { self.bear(id, IDLE, now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: u64 = 7000;
    const ONE: MemberId = MemberId(1);
    const OTHER: MemberId = MemberId(2);
    const THIRD: MemberId = MemberId(3);
    const ALONE: Pass = Pass { by: ONE, token: 5, alone: true, inherited: false };
    const ON: Pass = Pass { by: OTHER, token: 6, alone: true, inherited: true };

    /// Returns a table in which the first member has passed the socket.
    fn passed(pass: Pass) -> Passed {
        let mut table = Passed::new(100);
        assert!(table.pass(COOKIE, 0, pass));
        table
    }

    #[test]
    fn who_inherits_from_one_that_parted_may_claim() {
        let mut table = passed(ALONE);
        assert!(!table.may_claim(COOKIE, OTHER, true), "the first still has it");
        assert!(!table.part(OTHER, 5) && !table.part(ONE, 6), "that is none of theirs");
        assert!(!table.may_claim(COOKIE, OTHER, true));
        assert!(table.part(ONE, 5));
        assert!(!table.part(ONE, 5), "it has told already");
        assert!(!table.may_claim(COOKIE, ONE, false), "not who has passed it on");
        assert!(table.may_claim(COOKIE, OTHER, true));
        assert!(table.may_claim(COOKIE, OTHER, true), "and another time");
        assert!(!table.may_claim(COOKIE, THIRD, true), "one only");
    }

    #[test]
    fn who_is_gone_has_parted_and_who_is_dropped_has_not() {
        let mut table = passed(ALONE);
        table.leave(OTHER);
        assert!(!table.may_claim(COOKIE, OTHER, true));
        table.leave(ONE);
        assert!(table.may_claim(COOKIE, OTHER, true));
        let mut table = passed(ALONE);
        table.abandon(ONE);
        table.leave(ONE);
        assert!(!table.part(ONE, 5) && !table.may_claim(COOKIE, OTHER, true));
        // It does not help a process that received it from a dropped member either.
        let mut table = passed(ALONE);
        assert!(table.part(ONE, 5) && table.may_claim(COOKIE, OTHER, true));
        table.abandon(OTHER);
        assert!(!table.may_claim(COOKIE, OTHER, true));
    }

    #[test]
    fn what_was_not_passed_on_belongs_to_who_did_not_inherit_it() {
        let mut table = Passed::new(100);
        assert!(table.may_claim(COOKIE, ONE, false));
        assert!(!table.may_claim(COOKIE, ONE, true));
        assert_eq!(table.count(), 0, "claims are not remembered");
    }

    #[test]
    fn what_several_may_have_is_nobodys() {
        for pass in [Pass { alone: false, ..ALONE }, Pass { inherited: true, ..ALONE }] {
            let mut table = passed(pass);
            assert!(!table.part(ONE, 5));
            table.leave(ONE);
            assert!(!table.may_claim(COOKIE, OTHER, true), "others of before may have it");
        }
        for parts_between in [false, true] {
            let mut table = passed(ALONE);
            assert_eq!(parts_between, parts_between && table.part(ONE, 5));
            assert!(table.pass(COOKIE, 0, ALONE));
            assert!(!table.pass(COOKIE, 0, ALONE), "that is nothing new");
            table.leave(ONE);
            assert!(!table.may_claim(COOKIE, OTHER, true), "passed on twice");
        }
        let mut table = passed(ALONE);
        table.pass(COOKIE, 0, ON);
        table.leave(ONE);
        table.leave(OTHER);
        assert!(!table.may_claim(COOKIE, THIRD, true), "passed on while the first still had it");
    }

    #[test]
    fn who_has_inherited_may_pass_it_on_again() {
        for claims in [false, true] {
            let mut table = passed(ALONE);
            assert!(table.part(ONE, 5));
            assert_eq!(claims, claims && table.may_claim(COOKIE, OTHER, true));
            assert!(table.pass(COOKIE, 0, ON));
            assert!(!table.may_claim(COOKIE, OTHER, true) && !table.part(ONE, 5));
            assert!(!table.may_claim(COOKIE, THIRD, true));
            assert!(table.part(OTHER, 6));
            assert!(table.may_claim(COOKIE, THIRD, true));
            // Not by the member that parted with it, nor by one whose children may hold it.
            table.pass(COOKIE, 0, if claims { ON } else { Pass { by: THIRD, alone: false, ..ON } });
            table.leave(OTHER);
            table.leave(THIRD);
            assert!(!table.may_claim(COOKIE, ONE, true));
        }
    }

    #[test]
    fn of_two_that_are_called_the_same_the_first_is_nobodys() {
        let mut table = passed(ALONE);
        table.pass(COOKIE + 1, 0, ALONE);
        assert!(table.part(ONE, 5) && !table.part(ONE, 5));
        table.leave(ONE);
        assert!(table.may_claim(COOKIE + 1, OTHER, true));
        assert!(!table.may_claim(COOKIE, OTHER, true));
    }

    #[test]
    fn the_oldest_of_who_has_most_is_forgotten() {
        let mut table = Passed::new(10);
        let pass = |token, by| Pass { by, token, alone: true, inherited: false };
        for cookie in 0..3 {
            table.pass(cookie, 1, pass(cookie, ONE));
        }
        for cookie in 100..1000 {
            table.pass(cookie, 2, pass(cookie, OTHER));
        }
        assert_eq!((table.count(), table.forgotten), (10, 893));
        assert_eq!(table.by_token.len(), 10);
        assert!(!table.part(OTHER, 100) && table.part(OTHER, 993) && table.part(ONE, 0));
        assert!(table.may_claim(0, THIRD, true) && table.may_claim(993, THIRD, true));
        assert!(!table.may_claim(100, THIRD, true), "forgotten: others may have it");
    }
}
