// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decisions of a monitor: membership, claims, and the assignment of slots.
//!
//! The caller passes in each message and the current time; the monitor puts replies into the
//! members' outboxes. So it can be tested without a server and without waiting.

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

/// Weight of a message that changes nothing but may be well meant, in useless messages.
const IDLE: f64 = 0.1;

/// Number of possible slab numbers.
const SLAB_NUMBERS: u32 = 1 << 31;

/// Resource limits of a monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of connections to it, members included.
    pub members: usize,
    /// Maximum number of connections of one user.
    pub members_of_user: usize,
    /// Maximum number of waiting claims of all members.
    pub waiting: usize,
    /// Maximum number of waiting claims of one user.
    pub waiting_of_user: usize,
    /// Time that a claim waits for its peer.
    pub hold: Duration,
    /// Maximum number of slabs.
    pub slabs: usize,
    /// Maximum number of slabs of one member.
    pub slabs_of_member: usize,
    /// Maximum number of slabs that two users share, or one user has with itself.
    pub slabs_of_users: usize,
    /// Maximum number of passed sockets that are tracked.
    pub passed: usize,
}

impl Limits {
    /// Returns the limits for a process that may have this many descriptors.
    pub fn for_descriptors(descriptors: usize) -> Self {
        Self {
            members: (descriptors / 2).min(8192),
            members_of_user: (descriptors / 4).min(4096),
            waiting: (descriptors / 8).min(8192),
            waiting_of_user: (descriptors / 16).min(4096),
            hold: Duration::from_millis(CLAIM_MILLISECONDS),
            // Each slab is mapped, and a process may have 65,530 mappings.
            slabs: (descriptors / 4).min(32_768),
            slabs_of_member: (descriptors / 8).min(512),
            slabs_of_users: (descriptors / 8).min(32_768),
            passed: descriptors.min(16_384),
        }
    }
}

/// A connection with a slot.
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
    /// Distinguishes it from a later claim with the same key.
    number: u64,
}

/// Fields of a claim.
struct Wanted {
    token: u64,
    descriptor: i32,
    inherited: bool,
}

/// A claim being handled.
struct Claim {
    member: MemberId,
    token: u64,
    note: EndNote,
}

/// The monitor's state.
pub struct Monitor {
    limits: Limits,
    policy: Policy,
    examiner: Examiner,
    pub(crate) members: BTreeMap<MemberId, Member>,
    waiting: HashMap<Key, Waiting>,
    /// Keys of waiting claims, by member and token.
    by_token: HashMap<(MemberId, u64), Key>,
    /// Times at which claims expire, earliest first.
    deadlines: VecDeque<(Instant, Key, u64)>,
    numbers: u64,
    slabs: BTreeMap<u32, Slab<Connection>>,
    by_pair: HashMap<(MemberId, MemberId), Vec<u32>>,
    shares: Shares,
    /// Slab and slot of each accelerated end, by inode.
    accelerated: HashMap<u64, (u32, u32)>,
    next_slab: u32,
    passed: Passed,
    pub(crate) ledger: Ledger,
    begun: Instant,
    /// Time of the most recent call.
    last: Instant,
    spoken: Vec<MemberId>,
    departing: Vec<(MemberId, Departure)>,
}

impl Monitor {
    /// Creates a monitor without members.
    ///
    /// # Errors
    /// [`Error::Kernel`] or [`Error::System`] if the kernel lacks something it needs.
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
            // Random, because members may still have slabs of an earlier monitor and refer to
            // those.
            next_slab: RandomState::new().hash_one(0) as u32 % SLAB_NUMBERS,
            passed: Passed::new(limits.passed),
            ledger: Ledger::new(now),
            begun: now,
            last: now,
            spoken: vec![],
            departing: vec![],
        })
    }

    /// Rules of the monitor.
    pub fn policy(&mut self) -> &mut Policy {
        &mut self.policy
    }

    /// Limits of the monitor.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Number of members.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Adds a member: a process has connected, but may not have sent anything yet.
    pub fn join(&mut self, id: MemberId, process: Process, now: Instant) {
        self.ledger.members += 1;
        let Process { pid, user, command, .. } = &process;
        tracing::info!(pid, user, command, "member registered");
        self.members.insert(id, Member::new(process, now));
    }

    /// Removes a member whose process has exited, or executes another program.
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

    /// Removes a member that is no longer served. Its process may keep running, with all its
    /// sockets.
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

    /// Drops a member, and counts that.
    pub fn drop_member(&mut self, id: MemberId, why: Departure) {
        self.ledger.drop_member(why);
        self.abandon(id);
    }

    /// Handles a message of a member with its descriptors.
    ///
    /// # Errors
    /// The member has to be dropped.
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

    /// Refuses claims that have waited for their full time.
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

    /// Time at which [`expire`](Self::expire) has to be called next.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(until, _, _)| *until)
    }

    /// Returns members whose outbox was added to since the last call.
    pub fn spoken(&mut self) -> Vec<MemberId> {
        std::mem::take(&mut self.spoken)
    }

    /// Returns members to be dropped for their behaviour since the last call.
    pub fn departing(&mut self) -> Vec<(MemberId, Departure)> {
        std::mem::take(&mut self.departing)
    }

    /// Returns the outgoing messages of a member, oldest first.
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
            // After a restart of the monitor, this can be well meant.
            Released::NotHeld => return self.bear(id, 1.0, now),
        }
        Ok(())
    }

    /// Handles a fork of a member: the child has its slabs mapped and must not see new connections.
    fn fork(&mut self, id: MemberId, now: Instant) -> Result<(), Departure> {
        let slabs = self.members.get(&id).map(|it| it.slabs.clone()).unwrap_or_default();
        for number in &slabs {
            if let Some(slab) = self.slabs.get_mut(number) {
                slab.close();
            }
            self.drop_if_over(*number);
        }
        // Making slabs costs more than this message.
        if slabs.is_empty() { self.bear(id, 1.0, now) } else { self.bear(id, IDLE, now) }
    }

    /// Charges a useless message to a member: an error if that exceeds its limit.
    fn bear(&mut self, id: MemberId, weight: f64, now: Instant) -> Result<(), Departure> {
        let is_borne = self.members.get_mut(&id).is_none_or(|member| member.bear(weight, now));
        if is_borne { Ok(()) } else { Err(Departure::Flood) }
    }

    /// Records the end of a connection whose slot both sides have released.
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

    /// Drops a slab that will not be used again, and notifies the members that still have it.
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
