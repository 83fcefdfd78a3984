// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a monitor decides: who is a member, what becomes of a claim, who gets which slot.
//!
//! It is told what came and what time it is, and puts what it says into the members' outboxes. So
//! it can be tested without a server, and without waiting.

use crate::Error;
use crate::control;
use crate::disposal::Shown;
use crate::end::{self, End, Key};
use crate::ledger::{EndNote, Ledger};
use crate::member::{Departure, Greeting, Member, MemberId, Outgoing};
use crate::policy::{Party, Policy};
use crate::process::Process;
use crate::slab::{Released, Slab, Words};
use freeport_sockets_proto::message::{CLAIM_MILLISECONDS, CLAIMS_MAX, Reply, Request};
use freeport_sockets_proto::{Reason, VERSION};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Numbers that slabs can have.
const SLAB_NUMBERS: u32 = 1 << 31;

/// How many useless messages a socket weighs that lingers.
const LINGERING: f64 = 200.0;

/// How much of everything there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Members, and others that are connected.
    pub members: usize,
    /// Those of one user.
    pub members_of_user: usize,
    /// Claims that wait, of all members.
    pub waiting: usize,
    /// How long each waits.
    pub hold: Duration,
    /// Slabs.
    pub slabs: usize,
    /// Those of one member.
    pub slabs_of_member: usize,
}

impl Limits {
    /// Those for a process that may have that many descriptors.
    pub fn for_descriptors(descriptors: usize) -> Self {
        Self {
            members: (descriptors / 2).min(8192),
            members_of_user: (descriptors / 4).min(4096),
            waiting: (descriptors / 8).min(8192),
            hold: Duration::from_millis(CLAIM_MILLISECONDS),
            slabs: (descriptors / 4).min(65_536),
            slabs_of_member: (descriptors / 8).min(512),
        }
    }
}

/// A connection that was given a slot.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
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
    /// The namespace in which addresses can be looked up.
    net: u64,
    pub(crate) members: BTreeMap<MemberId, Member>,
    waiting: HashMap<Key, Waiting>,
    /// When which claim has waited enough, the next first.
    deadlines: VecDeque<(Instant, Key, u64)>,
    numbers: u64,
    pub(crate) slabs: BTreeMap<u32, Slab<Connection>>,
    by_pair: HashMap<(MemberId, MemberId), Vec<u32>>,
    /// Where the ends are that have a slot, by their inodes.
    pub(crate) accelerated: HashMap<u64, (u32, u32)>,
    next_slab: u32,
    pub(crate) ledger: Ledger,
    pub(crate) begun: Instant,
    spoken: Vec<MemberId>,
    departing: Vec<(MemberId, Departure)>,
}

impl Monitor {
    /// One without members.
    ///
    /// # Errors
    /// The kernel cannot tell what it has to know.
    pub fn new(policy: Policy, limits: Limits, now: Instant) -> Result<Self, Error> {
        let probe = std::net::UdpSocket::bind("127.0.0.1:0")
            .or_else(|_| std::net::UdpSocket::bind("[::1]:0"))
            .map_err(|source| Error::System { what: "a socket to look at", source })?;
        Ok(Self {
            limits,
            policy,
            net: end::namespace(probe.as_fd()).ok_or(Error::Kernel)?,
            members: BTreeMap::new(),
            waiting: HashMap::new(),
            deadlines: VecDeque::new(),
            numbers: 0,
            slabs: BTreeMap::new(),
            by_pair: HashMap::new(),
            accelerated: HashMap::new(),
            // Members may still have slabs of the monitor before, and talk of those.
            next_slab: RandomState::new().hash_one(0) as u32 % SLAB_NUMBERS,
            ledger: Ledger::default(),
            begun: now,
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

    /// Answers a question of a user, in JSON.
    pub fn answer(&mut self, question: &[u8], user: u32, now: Instant) -> String {
        control::answer(self, question, user, now)
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// A process has connected; it may not have said anything yet.
    pub fn join(&mut self, id: MemberId, process: Process, now: Instant) {
        self.ledger.members += 1;
        self.members.insert(id, Member::new(process, now));
    }

    /// A member is gone, with all that it had.
    pub fn leave(&mut self, id: MemberId) {
        let Some(member) = self.members.remove(&id) else { return };
        self.waiting.retain(|_, waiting| waiting.member != id);
        for number in member.slabs {
            let Some(slab) = self.slabs.get_mut(&number) else { continue };
            let Some(side) = slab.side(id) else { continue };
            let freed = slab.leave(side);
            for (connection, words) in freed {
                self.free(&connection, words);
            }
            self.drop_if_over(number);
        }
        self.by_pair.retain(|pair, _| pair.0 != id && pair.1 != id);
    }

    /// A member is dropped: that is counted.
    pub fn drop_member(&mut self, id: MemberId, why: Departure) {
        self.ledger.drop_member(why);
        self.leave(id);
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
        let Some(member) = self.members.get_mut(&id) else { return Ok(()) };
        let request = Request::decode(bytes).ok_or(Departure::Malformed)?;
        match (member.greeting, request) {
            (Greeting::Awaited, Request::Hello { version, membarrier }) => {
                let is_ours = version == VERSION;
                member.greeting = if is_ours { Greeting::Done } else { Greeting::Foreign };
                member.membarrier = membarrier;
                member.say(&Reply::Welcome { version: VERSION }, None);
                self.spoken.push(id);
                Ok(())
            }
            (Greeting::Done, Request::Claim { token, descriptor }) => {
                self.claim(id, token, descriptor, descriptors, now)
            }
            (Greeting::Done, Request::Release { slab, slot }) => self.release(id, slab, slot, now),
            _ => Err(Departure::Malformed),
        }
    }

    /// Refuses the claims that have waited enough.
    pub fn expire(&mut self, now: Instant) {
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

    fn claim(
        &mut self,
        id: MemberId,
        token: u64,
        descriptor: i32,
        mut descriptors: Vec<Shown>,
        now: Instant,
    ) -> Result<(), Departure> {
        self.ledger.claims += 1;
        let Some(member) = self.members.get(&id) else { return Ok(()) };
        let mut claim = Claim { member: id, token, note: note(&member.process, descriptor) };
        if descriptors.len() > 1 {
            return Err(Departure::Malformed);
        }
        // If it sent one, this process has no room for more.
        let Some(socket) = descriptors.pop() else {
            return self.refuse_useless(claim, Reason::Resources, now);
        };
        let end = match end::examine(socket.as_fd()) {
            Ok(end) => end,
            Err(reason) => {
                self.close(id, socket, now);
                return self.refuse_useless(claim, reason, now);
            }
        };
        claim.note.inode = end.inode;
        claim.note.local = Some(end.key.local.address);
        claim.note.remote = Some(end.key.remote.address);
        let is_again = self.waiting.get(&end.key).is_some_and(|it| it.end == end);
        if is_again || self.accelerated.contains_key(&end.inode) {
            self.close(id, socket, now);
            return self.refuse_useless(claim, Reason::Shared, now);
        }
        self.decide(claim, end, socket, now);
        Ok(())
    }

    /// Pairs a claim, lets it wait, or refuses it.
    fn decide(&mut self, claim: Claim, end: End, socket: Shown, now: Instant) {
        // One of the same addresses that is another socket: it is no more what it was.
        if let Some(before) = self.stop_waiting(&end.key, now) {
            self.refuse(before, Reason::NotConnected, now);
        }
        if end.key == end.key.reversed() {
            return self.refuse(claim, Reason::SameProcess, now);
        }
        if let Some(other) = self.waiting.get(&end.key.reversed()) {
            let is_as_before = end::examine(other.socket.as_fd()) == Ok(other.end);
            let Some(other) = self.stop_waiting(&end.key.reversed(), now) else { return };
            self.close(claim.member, socket, now);
            let ends = [other, claim];
            let is_there = if is_as_before { Ok(()) } else { Err(Reason::NotConnected) };
            return match is_there.and_then(|()| self.pair(&ends, now)) {
                Ok(()) => {}
                Err(reason) => ends.into_iter().for_each(|end| self.refuse(end, reason, now)),
            };
        }
        if end.key.net == self.net && end::is_elsewhere(&end.key) {
            return self.refuse(claim, Reason::PeerElsewhere, now);
        }
        let Some(member) = self.members.get_mut(&claim.member) else { return };
        let room = self.limits.waiting.saturating_sub(self.waiting.len());
        if member.waiting >= CLAIMS_MAX || room == 0 {
            return self.refuse(claim, Reason::Resources, now);
        }
        member.waiting += 1;
        self.numbers += 1;
        let until = now + self.limits.hold;
        self.deadlines.push_back((until, end.key, self.numbers));
        let Claim { member, token, note } = claim;
        let waiting = Waiting { member, token, note, socket, end, number: self.numbers };
        self.waiting.insert(end.key, waiting);
    }

    /// Takes a claim from those that wait; its descriptor is closed.
    fn stop_waiting(&mut self, key: &Key, now: Instant) -> Option<Claim> {
        let Waiting { member, token, note, socket, .. } = self.waiting.remove(key)?;
        if let Some(member) = self.members.get_mut(&member) {
            member.waiting = member.waiting.saturating_sub(1);
        }
        self.close(member, socket, now);
        Some(Claim { member, token, note })
    }

    /// Closes what a member has shown. To let that take long is not borne often.
    fn close(&mut self, id: MemberId, socket: Shown, now: Instant) {
        let has_lingered = socket.close();
        let member = self.members.get_mut(&id).filter(|_| has_lingered);
        if member.is_some_and(|member| !member.bear(LINGERING, now)) {
            self.departing.push((id, Departure::Flood));
        }
    }

    /// Gives both ends a slot, unless something is against it.
    fn pair(&mut self, ends: &[Claim; 2], now: Instant) -> Result<(), Reason> {
        let ids = [ends[0].member, ends[1].member];
        let [Some(one), Some(other)] = ids.map(|id| self.members.get(&id)) else {
            return Err(Reason::NotConnected);
        };
        let [first, second] = [&one.process, &other.process];
        if ids[0] == ids[1] || (first.pid == second.pid && first.pid != 0) {
            return Err(Reason::SameProcess);
        }
        let [Some(here), Some(there)] = [ends[0].note.local, ends[1].note.local] else {
            return Err(Reason::NotConnected);
        };
        let parties =
            [Party { process: first, address: here }, Party { process: second, address: there }];
        self.policy.decide(parties)?;
        let fenced = !(one.membarrier && other.membarrier);
        let pids = [first.pid, second.pid];
        let (number, slot) = self.hand_out(ids, ends, now)?;
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
            let file = member.slabs.insert(number).then(|| slab.file().clone());
            let peer = u32::try_from(pids[1 - at]).unwrap_or_default();
            let token = claim.token;
            let paired = Reply::Paired { token, slab: number, slot, side, fenced, peer };
            member.say(&paired, file);
            self.has_spoken(claim.member);
        }
        Ok(())
    }

    /// Finds both a slot in a slab that they have, or in a new one.
    fn hand_out(
        &mut self,
        ids: [MemberId; 2],
        ends: &[Claim; 2],
        now: Instant,
    ) -> Result<(u32, u32), Reason> {
        let pair = (ids[0].min(ids[1]), ids[0].max(ids[1]));
        // The ends in the order of the sides, which is that of the members' numbers.
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
        let mut slab = Slab::new([pair.0, pair.1]).map_err(|_| Reason::Resources)?;
        let slot = slab.hand_out(connection).map_err(|_| Reason::Resources)?;
        let following = |number: u32| (number + 1) % SLAB_NUMBERS;
        while self.slabs.contains_key(&self.next_slab) {
            self.next_slab = following(self.next_slab);
        }
        let number = self.next_slab;
        self.next_slab = following(number);
        self.slabs.insert(number, slab);
        self.by_pair.entry(pair).or_default().push(number);
        self.ledger.slabs += 1;
        Ok((number, slot))
    }

    fn release(
        &mut self,
        id: MemberId,
        number: u32,
        slot: u32,
        now: Instant,
    ) -> Result<(), Departure> {
        let released = self.slabs.get_mut(&number).map_or(Released::NotHeld, |slab| {
            slab.side(id).map_or(Released::NotHeld, |side| slab.release(side, slot))
        });
        match released {
            Released::HalfHeld => {}
            Released::Free(connection, words) => {
                self.free(&connection, words);
                self.drop_if_over(number);
            }
            // After the restart of a monitor that can be meant well.
            Released::NotHeld => {
                let member = self.members.get_mut(&id);
                if member.is_some_and(|member| !member.bear(1.0, now)) {
                    return Err(Departure::Flood);
                }
            }
        }
        Ok(())
    }

    /// Nobody has the slot of a connection any more.
    fn free(&mut self, connection: &Connection, words: [Words; 2]) {
        for end in &connection.ends {
            self.accelerated.remove(&end.inode);
        }
        self.ledger.end(words);
    }

    /// Drops a slab that nobody will use again.
    fn drop_if_over(&mut self, number: u32) {
        if self.slabs.get(&number).is_none_or(|slab| !slab.is_over()) {
            return;
        }
        let slab = self.slabs.remove(&number);
        for id in slab.into_iter().flat_map(|slab| slab.members()) {
            if let Some(member) = self.members.get_mut(&id) {
                member.slabs.remove(&number);
            }
        }
    }

    fn refuse(&mut self, claim: Claim, reason: Reason, now: Instant) {
        let Claim { member: id, token, note } = claim;
        self.ledger.refuse(note, reason, now);
        if let Some(member) = self.members.get_mut(&id) {
            member.say(&Reply::Refused { token, reason }, None);
            self.has_spoken(id);
        }
    }

    /// Refuses what a member should not have claimed.
    fn refuse_useless(
        &mut self,
        claim: Claim,
        reason: Reason,
        now: Instant,
    ) -> Result<(), Departure> {
        let member = self.members.get_mut(&claim.member);
        let is_borne = member.is_some_and(|member| member.bear(1.0, now));
        self.refuse(claim, reason, now);
        if is_borne { Ok(()) } else { Err(Departure::Flood) }
    }

    fn has_spoken(&mut self, id: MemberId) {
        let unread = self.members.get(&id).map_or(0, |member| member.outbox.len());
        if unread > 2 * CLAIMS_MAX {
            self.departing.push((id, Departure::Unread));
        }
        self.spoken.push(id);
    }
}

fn note(process: &Process, descriptor: i32) -> EndNote {
    EndNote {
        pid: process.pid,
        user: process.user,
        command: process.command.clone(),
        descriptor,
        inode: 0,
        local: None,
        remote: None,
    }
}
