// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a monitor decides: who is a member, what becomes of a claim, who gets which slot.
//!
//! It is told what came and what time it is, and puts what it says into the members' outboxes. So
//! it can be tested without a server, and without waiting.

mod answers;
mod claims;
mod passed;
mod recall;
mod shares;

use crate::Error;
use crate::disposal::Shown;
use crate::end::{End, Examiner, Key};
use crate::ledger::{EndNote, Ledger};
use crate::member::{Departure, Greeting, Member, MemberId, Outgoing};
use crate::policy::Policy;
use crate::process::Process;
use crate::slab::{Released, Slab, Words};
use crate::sums;
use freeport_sockets_proto::message::{CLAIM_MILLISECONDS, CLAIMS_MAX, Reply, Request};
use freeport_sockets_proto::{Reason, VERSION};
use passed::{Pass, Passed};
use shares::Shares;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How many useless messages one weighs that changes nothing, but may well be meant well.
const IDLE: f64 = 0.1;

/// Numbers that slabs can have.
const SLAB_NUMBERS: u32 = 1 << 31;

/// How much of everything there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Members, and others that are connected.
    pub members: usize,
    /// Those of one user.
    pub members_of_user: usize,
    /// Claims that wait, of all members.
    pub waiting: usize,
    /// Those of one user.
    pub waiting_of_user: usize,
    /// How long each waits.
    pub hold: Duration,
    /// Slabs.
    pub slabs: usize,
    /// Those of one member.
    pub slabs_of_member: usize,
    /// Those that two users have with each other, or one with itself.
    pub slabs_of_users: usize,
    /// Sockets of which is known that they were passed on.
    pub passed: usize,
}

impl Limits {
    /// Those for a process that may have that many descriptors.
    pub fn for_descriptors(descriptors: usize) -> Self {
        Self {
            members: (descriptors / 2).min(8192),
            members_of_user: (descriptors / 4).min(4096),
            waiting: (descriptors / 8).min(8192),
            waiting_of_user: (descriptors / 16).min(4096),
            hold: Duration::from_millis(CLAIM_MILLISECONDS),
            // Each is mapped as well, and a process may have 65,530 mappings.
            slabs: (descriptors / 4).min(32_768),
            slabs_of_member: (descriptors / 8).min(512),
            slabs_of_users: (descriptors / 8).min(32_768),
            passed: descriptors.min(16_384),
        }
    }
}

/// A connection that was given a slot.
#[derive(Clone, Debug)]
struct Connection {
    /// Its two ends, the first side first.
    pub ends: [EndNote; 2],
    pub since: Instant,
}

/// A claim that waits for the other end.
struct Waiting {
    member: MemberId,
    token: u64,
    note: EndNote,
    socket: Shown,
    end: End,
    /// Tells it from a later claim of the same key.
    number: u64,
}

/// What a claim says.
struct Wanted {
    token: u64,
    descriptor: i32,
    inherited: bool,
}

/// A claim that is being looked at.
struct Claim {
    member: MemberId,
    token: u64,
    note: EndNote,
}

/// See above.
pub struct Monitor {
    limits: Limits,
    policy: Policy,
    examiner: Examiner,
    pub(crate) members: BTreeMap<MemberId, Member>,
    waiting: HashMap<Key, Waiting>,
    /// Where those are, by who claimed and what he calls it.
    by_token: HashMap<(MemberId, u64), Key>,
    /// When which claim has waited enough, the next first.
    deadlines: VecDeque<(Instant, Key, u64)>,
    numbers: u64,
    slabs: BTreeMap<u32, Slab<Connection>>,
    by_pair: HashMap<(MemberId, MemberId), Vec<u32>>,
    shares: Shares,
    /// Where the ends are that have a slot, by their inodes.
    accelerated: HashMap<u64, (u32, u32)>,
    next_slab: u32,
    passed: Passed,
    pub(crate) ledger: Ledger,
    begun: Instant,
    /// The time when it was told one last.
    last: Instant,
    spoken: Vec<MemberId>,
    departing: Vec<(MemberId, Departure)>,
}

impl Monitor {
    /// One without members.
    ///
    /// # Errors
    /// The kernel cannot tell what it has to know.
    pub fn new(policy: Policy, limits: Limits, now: Instant) -> Result<Self, Error> {
        Ok(Self {
            limits,
            policy,
            examiner: Examiner::new()?,
            members: BTreeMap::new(),
            waiting: HashMap::new(),
            by_token: HashMap::new(),
            deadlines: VecDeque::new(),
            numbers: 0,
            slabs: BTreeMap::new(),
            by_pair: HashMap::new(),
            shares: Shares::default(),
            accelerated: HashMap::new(),
            // Members may still have slabs of the monitor before, and talk of those.
            next_slab: RandomState::new().hash_one(0) as u32 % SLAB_NUMBERS,
            passed: Passed::new(limits.passed),
            ledger: Ledger::new(now),
            begun: now,
            last: now,
            spoken: vec![],
            departing: vec![],
        })
    }

    /// The rules.
    pub fn policy(&mut self) -> &mut Policy {
        &mut self.policy
    }

    /// How much there may be.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// A process has connected; it may not have said anything yet.
    pub fn join(&mut self, id: MemberId, process: Process, now: Instant) {
        self.ledger.members += 1;
        let Process { pid, user, command, .. } = &process;
        tracing::info!(pid, user, command, "member registered");
        self.members.insert(id, Member::new(process, now));
    }

    /// A member's process is gone, with all that it had, or is another program now.
    pub fn leave(&mut self, id: MemberId) {
        if let Some(member) = self.members.get(&id) {
            self.passed.leave(id);
            for slab in member.slabs.iter().filter_map(|number| self.slabs.get(number)) {
                if let Some(side) = slab.side(id) {
                    slab.tell_gone(side);
                }
            }
            self.remove(id);
        }
    }

    /// A member is not served any more. Its process may go on, with all the sockets that it has.
    pub fn abandon(&mut self, id: MemberId) {
        if self.members.contains_key(&id) {
            self.passed.abandon(id);
            self.remove(id);
        }
    }

    fn remove(&mut self, id: MemberId) {
        let Some(member) = self.members.remove(&id) else { return };
        let Process { pid, user, command, .. } = &member.process;
        tracing::info!(pid, user, command, "member left");
        self.waiting.retain(|_, waiting| waiting.member != id);
        self.shares.remove_waiting(member.process.user, member.waiting);
        self.by_token.retain(|(member, _), _| *member != id);
        for number in member.slabs {
            let Some(slab) = self.slabs.get_mut(&number) else { continue };
            let Some(side) = slab.side(id) else { continue };
            let (members, freed) = (slab.members(), slab.leave(side));
            for (connection, words) in freed {
                self.free(&connection, words, members);
            }
            self.drop_if_over(number);
        }
        self.by_pair.retain(|pair, _| pair.0 != id && pair.1 != id);
    }

    /// A member is dropped: that is counted.
    pub fn drop_member(&mut self, id: MemberId, why: Departure) {
        self.ledger.drop_member(why);
        self.abandon(id);
    }

    /// A message came from a member, with these descriptors.
    ///
    /// # Errors
    /// The member is to be dropped.
    pub fn take(
        &mut self,
        id: MemberId,
        bytes: &[u8],
        descriptors: Vec<Shown>,
        now: Instant,
    ) -> Result<(), Departure> {
        self.last = now;
        let Some(member) = self.members.get_mut(&id) else { return Ok(()) };
        let request = Request::decode(bytes).ok_or(Departure::Malformed)?;
        let takes = usize::from(matches!(request, Request::Claim { .. } | Request::Pass { .. }));
        if descriptors.len() > takes || !descriptors.iter().all(Shown::is_socket) {
            return Err(Departure::Malformed);
        }
        match (member.greeting, request) {
            (Greeting::Awaited, Request::Hello { version, membarrier }) => {
                let is_ours = version == VERSION;
                member.greeting = if is_ours { Greeting::Done } else { Greeting::Foreign };
                member.membarrier = membarrier;
                member.say(&Reply::Welcome { version: VERSION }, None);
                self.spoken.push(id);
                Ok(())
            }
            (Greeting::Done, Request::Claim { token, descriptor, inherited }) => {
                let claim = Wanted { token, descriptor, inherited };
                self.claim(id, claim, descriptors, now)
            }
            (Greeting::Done, Request::Pass { token, alone, inherited }) => {
                let pass = Pass { by: id, token, alone, inherited };
                self.pass(pass, descriptors, now)
            }
            (Greeting::Done, Request::Part { token }) => {
                let has_parted = self.passed.part(id, token);
                if has_parted { Ok(()) } else { self.bear(id, IDLE, now) }
            }
            (Greeting::Done, Request::Keep { inode, reason }) => {
                *self.ledger.kept.entry(reason).or_default() += 1;
                self.ledger.kept_forgotten += u64::from(member.kept.note(inode, reason, now));
                Ok(())
            }
            (Greeting::Done, Request::Withdraw { token }) => {
                if let Some(key) = self.by_token.get(&(id, token)).copied()
                    && let Some(claim) = self.stop_waiting(&key, now)
                {
                    self.refuse(claim, Reason::NotConnected, now);
                }
                Ok(())
            }
            (Greeting::Done, Request::Fork) => self.fork(id, now),
            (Greeting::Done, Request::Release { slab, slot }) => self.release(id, slab, slot, now),
            _ => Err(Departure::Malformed),
        }
    }

    /// Refuses the claims that have waited enough.
    pub fn expire(&mut self, now: Instant) {
        self.last = now;
        while let Some((until, key, number)) = self.deadlines.front().copied() {
            let is_waiting = self.waiting.get(&key).is_some_and(|it| it.number == number);
            if is_waiting && until > now {
                return;
            }
            self.deadlines.pop_front();
            if is_waiting && let Some(claim) = self.stop_waiting(&key, now) {
                self.refuse(claim, Reason::PeerPlain, now);
            }
        }
    }

    /// When to call [`expire`](Self::expire) next.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(until, _, _)| *until)
    }

    /// Members for which something was put into their outboxes since the last call.
    pub fn spoken(&mut self) -> Vec<MemberId> {
        std::mem::take(&mut self.spoken)
    }

    /// Members that are to be dropped for what they do not do, since the last call.
    pub fn departing(&mut self) -> Vec<(MemberId, Departure)> {
        std::mem::take(&mut self.departing)
    }

    /// What is to be sent to a member, the oldest first.
    pub fn outbox(&mut self, id: MemberId) -> Option<&mut VecDeque<Outgoing>> {
        self.members.get_mut(&id).map(|member| &mut member.outbox)
    }

    fn release(
        &mut self,
        id: MemberId,
        number: u32,
        slot: u32,
        now: Instant,
    ) -> Result<(), Departure> {
        let Some(slab) = self.slabs.get_mut(&number) else { return self.bear(id, 1.0, now) };
        let members = slab.members();
        let released = slab.side(id).map_or(Released::NotHeld, |side| slab.release(side, slot));
        match released {
            Released::HalfHeld => {}
            Released::Free(connection, words) => {
                self.free(&connection, words, members);
                self.drop_if_over(number);
            }
            // After the restart of a monitor that can be meant well.
            Released::NotHeld => return self.bear(id, 1.0, now),
        }
        Ok(())
    }

    /// A child of a member has its slabs mapped: connections that come are not for that to see.
    fn fork(&mut self, id: MemberId, now: Instant) -> Result<(), Departure> {
        let slabs = self.members.get(&id).map(|it| it.slabs.clone()).unwrap_or_default();
        for number in &slabs {
            if let Some(slab) = self.slabs.get_mut(number) {
                slab.close();
            }
            self.drop_if_over(*number);
        }
        // Making slabs costs more than saying this.
        if slabs.is_empty() { self.bear(id, 1.0, now) } else { self.bear(id, IDLE, now) }
    }

    /// A member has said something of no use: that is borne, or it is too much.
    fn bear(&mut self, id: MemberId, weight: f64, now: Instant) -> Result<(), Departure> {
        let is_borne = self.members.get_mut(&id).is_none_or(|member| member.bear(weight, now));
        if is_borne { Ok(()) } else { Err(Departure::Flood) }
    }

    /// Nobody has the slot of a connection any more.
    fn free(&mut self, connection: &Connection, words: [Words; 2], members: [MemberId; 2]) {
        let since = connection.since;
        for (at, end) in connection.ends.iter().enumerate() {
            self.accelerated.remove(&end.inode);
            let Some(member) = self.members.get_mut(&members[at]) else { continue };
            let counts = words[at].counts(&words[1 - at]);
            let of_family = &mut member.ended[end.family() as usize];
            *of_family = of_family.plus(&sums::believed_counts(counts, since, self.last));
        }
        self.ledger.end(&connection.ends, words, connection.since, self.last);
    }

    /// Drops a slab that nobody will use again, and tells who still has it.
    fn drop_if_over(&mut self, number: u32) {
        if self.slabs.get(&number).is_none_or(|slab| !slab.is_over()) {
            return;
        }
        let slab = self.take_slab(number);
        slab.iter().for_each(Slab::make_empty);
        let members = slab.map(|slab| slab.members());
        if let Some([one, other]) = members
            && let Some(slabs) = self.by_pair.get_mut(&(one, other))
        {
            slabs.retain(|it| *it != number);
        }
        for id in members.into_iter().flatten() {
            if let Some(member) = self.members.get_mut(&id) {
                member.slabs.remove(&number);
                member.say(&Reply::Over { slab: number }, None);
                self.has_spoken(id);
            }
        }
    }

    fn refuse(&mut self, claim: Claim, reason: Reason, now: Instant) {
        let Claim { member: id, token, note } = claim;
        let EndNote { pid, command, descriptor, .. } = &note;
        tracing::debug!(pid, command, descriptor, ?reason, "connection not upgraded");
        self.ledger.refuse(note, reason, now);
        if let Some(member) = self.members.get_mut(&id) {
            member.say(&Reply::Refused { token, reason }, None);
            self.has_spoken(id);
        }
    }

    fn has_spoken(&mut self, id: MemberId) {
        let unread = self.members.get(&id).map_or(0, |member| member.outbox.len());
        if unread > 2 * CLAIMS_MAX {
            self.departing.push((id, Departure::Unread));
        }
        self.spoken.push(id);
    }
}
