// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handles a claim: it is paired, queued, or refused.

use super::{Claim, Connection, IDLE, Monitor, SLAB_NUMBERS, Waiting, Wanted};
use crate::disposal::Shown;
use crate::end::{self, End, Key};
use crate::ledger::EndNote;
use crate::member::{Departure, MemberId};
use crate::policy::Party;
use crate::process::Process;
use crate::slab::Slab;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::message::{CLAIMS_MAX, Reply};
use std::os::fd::AsFd;
use std::time::Instant;

/// Weight of a lingering socket, in useless messages.
const LINGERING: f64 = 200.0;

impl Monitor {
    pub(super) fn claim(
        &mut self,
        id: MemberId,
        wanted: Wanted,
        mut descriptors: Vec<Shown>,
        now: Instant,
    ) -> Result<(), Departure> {
        self.ledger.claims += 1;
        let Some(member) = self.members.get(&id) else { return Ok(()) };
        let note = note(&member.process, wanted.descriptor);
        let mut claim = Claim { member: id, token: wanted.token, note };
        // If it sent a descriptor, this process has no room for more, or is still closing others.
        let Some(socket) = descriptors.pop() else {
            return self.refuse_useless(claim, Reason::Resources, 1.0, now);
        };
        let end = match self.examiner.examine(socket.as_fd()) {
            Ok(end) => end,
            Err(reason) => {
                claim.note.inode = end::inode(socket.as_fd()).unwrap_or_default();
                self.close(id, socket, now);
                return self.refuse_useless(claim, reason, 1.0, now);
            }
        };
        (claim.note.inode, claim.note.cookie) = (end.inode, end.cookie);
        claim.note.local = Some(end.local.clone());
        claim.note.remote = Some(end.remote.clone());
        if !self.passed.may_claim(end.cookie, id, wanted.inherited) {
            self.close(id, socket, now);
            return self.refuse_useless(claim, Reason::Shared, IDLE, now);
        }
        let is_again = self.waiting.get(&end.key).is_some_and(|it| it.end.is(&end));
        if is_again || self.accelerated.contains_key(&end.inode) {
            self.close(id, socket, now);
            return self.refuse_useless(claim, Reason::Shared, 1.0, now);
        }
        self.decide(claim, end, socket, now);
        Ok(())
    }

    /// Pairs, queues or refuses a claim.
    fn decide(&mut self, claim: Claim, end: End, socket: Shown, now: Instant) {
        // A waiting claim of another socket with the same addresses: that connection no longer
        // exists.
        if let Some(before) = self.stop_waiting(&end.key, now) {
            self.refuse(before, Reason::NotConnected, now);
        }
        if end.key == end.key.reversed() {
            return self.refuse(claim, Reason::SameProcess, now);
        }
        if let Some(other) = self.waiting.get(&end.key.reversed()) {
            let found = self.examiner.examine(other.socket.as_fd());
            let is_as_before = found.is_ok_and(|it| it.is(&other.end));
            let are_theirs = self.are_of([(other.member, &end), (claim.member, &other.end)]);
            let Some(other) = self.stop_waiting(&end.key.reversed(), now) else { return };
            self.close(claim.member, socket, now);
            let ends = [other, claim];
            let may_be_paired = match (is_as_before, are_theirs) {
                (false, _) => Err(Reason::NotConnected),
                (true, false) => Err(Reason::Shared),
                (true, true) => Ok(()),
            };
            return match may_be_paired.and_then(|()| self.pair(&ends, now)) {
                Ok(()) => {}
                Err(reason) => ends.into_iter().for_each(|end| self.refuse(end, reason, now)),
            };
        }
        if self.examiner.is_elsewhere(&end.key) {
            return self.refuse(claim, Reason::PeerElsewhere, now);
        }
        let Some(member) = self.members.get_mut(&claim.member) else { return };
        let room = self.limits.waiting.saturating_sub(self.waiting.len());
        if member.waiting >= CLAIMS_MAX || room == 0 {
            return self.refuse(claim, Reason::Resources, now);
        }
        let user = member.process.user;
        if self.shares.waiting(user) >= self.limits.waiting_of_user {
            return self.refuse(claim, Reason::UserLimit, now);
        }
        member.waiting += 1;
        self.shares.add_waiting(user);
        self.numbers += 1;
        let until = now + self.limits.hold;
        self.deadlines.push_back((until, end.key, self.numbers));
        let Claim { member, token, note } = claim;
        let key = end.key;
        let waiting = Waiting { member, token, note, socket, end, number: self.numbers };
        self.by_token.insert((member, token), key);
        self.waiting.insert(key, waiting);
    }

    /// Returns whether each member may have the peer of the end that the other one claimed.
    fn are_of(&self, ends: [(MemberId, &End); 2]) -> bool {
        ends.iter().all(|(member, opposite)| {
            let member = self.members.get(member);
            member.is_none_or(|it| opposite.may_be_connected_to(it.process.user))
        })
    }

    /// Removes a claim from the queue; its descriptor is closed.
    pub(super) fn stop_waiting(&mut self, key: &Key, now: Instant) -> Option<Claim> {
        let Waiting { member, token, note, socket, .. } = self.waiting.remove(key)?;
        self.by_token.remove(&(member, token));
        if let Some(member) = self.members.get_mut(&member) {
            member.waiting = member.waiting.saturating_sub(1);
            self.shares.remove_waiting(member.process.user, 1);
        }
        self.close(member, socket, now);
        Some(Claim { member, token, note })
    }

    /// Closes a member's descriptor. A member may not delay that often.
    pub(super) fn close(&mut self, id: MemberId, socket: Shown, now: Instant) {
        let has_lingered = socket.close();
        let member = self.members.get_mut(&id).filter(|_| has_lingered);
        if member.is_some_and(|member| !member.bear(LINGERING, now)) {
            self.departing.push((id, Departure::Flood));
        }
    }

    /// Gives both ends a slot, unless a check fails.
    fn pair(&mut self, ends: &[Claim; 2], now: Instant) -> Result<(), Reason> {
        let ids = [ends[0].member, ends[1].member];
        let [Some(one), Some(other)] = ids.map(|id| self.members.get(&id)) else {
            return Err(Reason::NotConnected);
        };
        let [first, second] = [&one.process, &other.process];
        if ids[0] == ids[1] || (first.pid == second.pid && first.pid != 0) {
            return Err(Reason::SameProcess);
        }
        let [Some(here), Some(there)] = [&ends[0].note.local, &ends[1].note.local] else {
            return Err(Reason::NotConnected);
        };
        let seen = [first, second].map(|process| self.policy.seen(process));
        let [Some(one_now), Some(other_now)] = &seen else { return Err(Reason::Policy) };
        let parties =
            [Party { process: one_now, place: here }, Party { process: other_now, place: there }];
        self.policy.decide(parties)?;
        let fenced = !(one.membarrier && other.membarrier);
        let pids = [first.pid, second.pid];
        let (number, slot) = self.hand_out(ids, ends, now)?;
        let [one, other] = [&ends[0].note.command, &ends[1].note.command];
        tracing::debug!(?pids, one, other, slab = number, slot, "connection upgraded");
        self.ledger.paired += 1;
        for (at, claim) in ends.iter().enumerate() {
            self.ledger.forget(&claim.note);
            self.accelerated.insert(claim.note.inode, (number, slot));
            let (Some(slab), Some(member)) =
                (self.slabs.get(&number), self.members.get_mut(&claim.member))
            else {
                continue;
            };
            let Some(side) = slab.side(claim.member) else { continue };
            let memory = member.slabs.insert(number).then(|| slab.memory());
            let cookie = ends[1 - at].note.cookie;
            let peer = u32::try_from(pids[1 - at]).unwrap_or_default();
            let token = claim.token;
            let paired = Reply::Paired { token, slab: number, slot, side, fenced, peer, cookie };
            member.say(&paired, memory.flatten());
            self.has_spoken(claim.member);
        }
        if let Some(slab) = self.slabs.get_mut(&number) {
            slab.both_have_memory();
        }
        Ok(())
    }

    /// Finds a free slot in a slab that both have, or in a new one.
    fn hand_out(
        &mut self,
        ids: [MemberId; 2],
        ends: &[Claim; 2],
        now: Instant,
    ) -> Result<(u32, u32), Reason> {
        let pair = (ids[0].min(ids[1]), ids[0].max(ids[1]));
        // The ends in the order of the sides, which is that of the member numbers.
        let mut notes = ends.each_ref().map(|claim| claim.note.clone());
        if ids[0] != pair.0 {
            notes.swap(0, 1);
        }
        let mut connection = Connection { ends: notes, since: now };
        for number in self.by_pair.get(&pair).into_iter().flatten() {
            let Some(slab) = self.slabs.get_mut(number) else { continue };
            match slab.hand_out(connection) {
                Ok(slot) => return Ok((*number, slot)),
                Err(back) => connection = back,
            }
        }
        let of = |id| self.members.get(&id).map_or(0, |it| it.slabs.len());
        let most = of(pair.0).max(of(pair.1));
        if self.slabs.len() >= self.limits.slabs || most >= self.limits.slabs_of_member {
            return Err(Reason::Resources);
        }
        let users = self.users(ids);
        if self.shares.slabs(users) >= self.limits.slabs_of_users {
            return Err(Reason::UserLimit);
        }
        let mut slab = Slab::new([pair.0, pair.1]).map_err(|_| Reason::Resources)?;
        let slot = slab.hand_out(connection).map_err(|_| Reason::Resources)?;
        let following = |number: u32| (number + 1) % SLAB_NUMBERS;
        while self.slabs.contains_key(&self.next_slab) {
            self.next_slab = following(self.next_slab);
        }
        let number = self.next_slab;
        self.next_slab = following(number);
        self.slabs.insert(number, slab);
        self.shares.add_slab(number, users);
        self.by_pair.entry(pair).or_default().push(number);
        self.ledger.slabs += 1;
        Ok((number, slot))
    }

    /// Refuses a claim that the member should not have made, and charges it.
    fn refuse_useless(
        &mut self,
        claim: Claim,
        reason: Reason,
        weight: f64,
        now: Instant,
    ) -> Result<(), Departure> {
        let borne = self.bear(claim.member, weight, now);
        self.refuse(claim, reason, now);
        borne
    }
}

fn note(process: &Process, descriptor: i32) -> EndNote {
    EndNote {
        pid: process.pid,
        user: process.user,
        command: process.command.clone(),
        descriptor,
        inode: 0,
        cookie: 0,
        local: None,
        remote: None,
    }
}
