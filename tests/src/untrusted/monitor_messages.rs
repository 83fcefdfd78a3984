// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor with members that send arbitrary messages, and two honest members. The input
//! determines who does what, with which socket, and how time passes. The monitor's answers are
//! compared with the allowed ones; the honest members always get what they request.

use freeport_monitor::{Closing, Limits, MemberId, Monitor, Policy, Process, Shown, Since};
use freeport_sockets_proto::VERSION;
use freeport_sockets_proto::message::{BYTES, Reply, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of concurrent members.
const MEMBERS: usize = 4;
/// Number of connections whose ends they hold.
const CONNECTIONS: usize = 3;
/// User of the two honest members.
const HONEST: u32 = 7;

/// Interprets the bytes as messages of members.
pub fn monitor_messages(bytes: &[u8]) {
    thread_local! {
        static SOCKETS: Vec<OwnedFd> = sockets();
    }
    SOCKETS.with(|sockets| World::new(sockets).run(bytes));
}

/// Both ends of some connections, and a socket that is none; then the ends of the honest members.
fn sockets() -> Vec<OwnedFd> {
    let mut sockets: Vec<OwnedFd> = vec![];
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    for _ in 1..CONNECTIONS {
        let to = listener.local_addr().expect("it listens");
        sockets.push(TcpStream::connect(to).expect("it listens").into());
        sockets.push(listener.accept().expect("somebody has connected").0.into());
    }
    let (one, other) = UnixStream::pair().expect("a pair of sockets");
    sockets.extend([one, other].map(OwnedFd::from));
    sockets.push(listener.into());
    sockets.push(UdpSocket::bind("127.0.0.1:0").expect("a port is free").into());
    sockets.push(UnixStream::pair().expect("a pair of sockets").0.into());
    let (one, other) = UnixStream::pair().expect("a pair of sockets");
    sockets.extend([one, other].map(OwnedFd::from));
    sockets
}

struct World<'a> {
    sockets: &'a [OwnedFd],
    /// Both ends of the honest members' connection, and their identifiers.
    honest: &'a [OwnedFd; 2],
    honest_members: [MemberId; 2],
    monitor: Monitor,
    now: Instant,
    members: [Member; MEMBERS],
    next: u64,
    /// The two members that may hold each slab.
    slabs: BTreeMap<u32, BTreeSet<u64>>,
    /// Processes that may hold each passed socket, by index; `None`: any.
    passed: BTreeMap<usize, Option<Holders>>,
}

/// Processes that may hold a socket, by member number; 0 is one that has not claimed it yet.
#[derive(Clone, PartialEq, Eq)]
struct Holders {
    are: BTreeSet<u64>,
    /// Token of the member that passed it.
    token: u64,
}

impl Holders {
    /// Whether only this member holds it.
    fn is(&self, id: u64) -> bool {
        self.are.len() == 1 && (self.are.contains(&id) || self.are.contains(&0))
    }
}

#[derive(Default)]
struct Member {
    id: u64,
    /// Number of unanswered claims, by token.
    tokens: BTreeMap<u64, u32>,
    /// Slots it was given and has not released.
    slots: BTreeSet<(u32, u32)>,
    files: BTreeMap<u32, Arc<File>>,
}

/// Rest of the input.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(count.min(self.0.len()));
        self.0 = left;
        taken
    }
}

impl<'a> World<'a> {
    fn new(sockets: &'a [OwnedFd]) -> Self {
        let now = Instant::now();
        let limits = Limits::for_descriptors(64);
        // As much as each user may have is the limit of all together.
        let limits =
            Limits { slabs: 8, slabs_of_member: 3, slabs_of_users: 2, waiting: 16, ..limits };
        let monitor = Monitor::new(Policy::default(), limits, now).expect("this kernel is new");
        let members = Default::default();
        let (slabs, passed) = (BTreeMap::new(), BTreeMap::new());
        let (sockets, honest) = sockets.split_last_chunk().expect("there are more than two");
        let honest_members = [MemberId(1), MemberId(2)];
        let mut world =
            Self { sockets, honest, honest_members, monitor, now, members, next: 3, slabs, passed };
        for member in honest_members {
            world.join_as(member, HONEST);
            let hello = Request::Hello { version: VERSION, membarrier: true };
            world.say_honestly(member, &hello, None);
        }
        (0..MEMBERS).for_each(|member| world.join(member));
        world
    }

    fn run(mut self, bytes: &[u8]) {
        let mut script = Script(bytes);
        while !script.0.is_empty() {
            let (kind, member) = (script.byte() % 13, usize::from(script.byte()) % MEMBERS);
            match kind {
                0 => {
                    let message = script.take(BYTES);
                    let shown = usize::from(script.byte()) % 3;
                    self.say(member, message, shown, usize::from(script.byte()));
                }
                1 => {
                    let hello = Request::Hello { version: VERSION, membarrier: member != 0 };
                    self.say(member, &hello.encode(), 0, 0);
                }
                2 => self.claim(member, usize::from(script.byte()), false),
                7 => self.claim(member, usize::from(script.byte()), true),
                3 => self.release(member, usize::from(script.byte())),
                4 => self.wait(u64::from(script.byte())),
                9 => {
                    let byte = script.byte();
                    let (token, alone, inherited) = (byte / 4 % 8, byte % 4 > 0, byte % 2 > 0);
                    let pass = Request::Pass { token: token.into(), alone, inherited };
                    let which = usize::from(token) % (2 * CONNECTIONS);
                    self.say(member, &pass.encode(), 1, which);
                }
                10 => {
                    let token = u64::from(script.byte() % 8);
                    self.say(member, &Request::Part { token }.encode(), 0, 0);
                }
                11 => self.say(member, &Request::Fork.encode(), 0, 0),
                12 => self.serves_honest_ones(),
                8 => self.withdraw(member, usize::from(script.byte())),
                5 if script.byte() % 8 == 0 => {
                    let id = self.members[member].id;
                    self.monitor.leave(MemberId(id));
                    self.part(id, None);
                    self.join(member);
                }
                6 => {
                    let length = usize::from(script.byte());
                    let question = script.take(length);
                    let answer = self.monitor.answer(question, member as u32, self.now);
                    assert!(answer.starts_with('{'), "{answer}");
                }
                _ => {}
            }
            self.hear();
        }
        self.end();
    }

    /// Finally every waiting claim is answered, and nothing is left after all members have left.
    fn end(&mut self) {
        self.serves_honest_ones();
        self.wait(1000);
        self.hear();
        self.honest_members.iter().for_each(|id| self.monitor.leave(*id));
        for member in &self.members {
            assert!(member.tokens.is_empty(), "claims without an answer: {:?}", member.tokens);
            self.monitor.leave(MemberId(member.id));
        }
        let stats = self.monitor.answer(br#"{"do": "stats"}"#, 0, self.now);
        for nothing in [r#""members":0"#, r#""slabs":0"#] {
            assert!(stats.contains(nothing), "{stats}");
        }
    }

    fn join(&mut self, member: usize) {
        let id = self.next;
        self.next += 1;
        self.join_as(MemberId(id), member as u32 / 2);
        self.members[member] = Member { id, ..Member::default() };
    }

    fn join_as(&mut self, id: MemberId, user: u32) {
        let pid = 1_000 + id.0 as i32;
        let (command, cgroup) = ("it".into(), String::new());
        let process = Process { pid, user, command, net: 0, cgroup, since: Since::Hidden };
        self.monitor.join(id, process, self.now);
    }

    fn say_honestly(&mut self, id: MemberId, request: &Request, shown: Option<&OwnedFd>) {
        let closing = Closing::default();
        let shown = shown.map(|socket| {
            let descriptor = socket.try_clone().expect("there are descriptors");
            Shown::new(descriptor, HONEST, &closing)
        });
        let shown = shown.into_iter().collect();
        let taken = self.monitor.take(id, &request.encode(), shown, self.now);
        taken.expect("an honest member stays");
    }

    /// Both honest members claim the ends of their connection, get the same slot, and release it.
    fn serves_honest_ones(&mut self) {
        for (token, id) in self.honest_members.into_iter().enumerate() {
            let claim = Request::Claim { token: token as u64, descriptor: 3, inherited: false };
            let socket = &self.honest[token];
            self.say_honestly(id, &claim, Some(socket));
        }
        let places = [0, 1].map(|token: usize| {
            let outbox = self.monitor.outbox(self.honest_members[token]).expect("it is a member");
            let replies = std::mem::take(outbox);
            let mut replies = replies.iter().map(|it| Reply::decode(&it.bytes).expect("a reply"));
            replies.find_map(|reply| match reply {
                Reply::Paired { token: of, slab, slot, .. } if of == token as u64 => {
                    Some((slab, slot))
                }
                Reply::Welcome { .. } | Reply::Over { .. } => None,
                other => panic!("an honest one is told {other:?}"),
            })
        });
        let (slab, slot) = places[0].expect("it is paired");
        assert_eq!(places[1], places[0]);
        for id in self.honest_members {
            self.say_honestly(id, &Request::Release { slab, slot }, None);
        }
    }

    /// Sends a message with descriptors; a member that is dropped for it joins again.
    fn say(&mut self, member: usize, message: &[u8], count: usize, which: usize) {
        let which = which % self.sockets.len();
        let socket = self.sockets[which].as_fd();
        let closing = Closing::default();
        let shown = (0..count).map(|_| {
            let descriptor = socket.try_clone_to_owned().expect("there are descriptors");
            Shown::new(descriptor, member as u32 / 2, &closing)
        });
        let id = self.members[member].id;
        let taken = self.monitor.take(MemberId(id), message, shown.collect(), self.now);
        if let Err(why) = taken {
            self.monitor.drop_member(MemberId(id), why);
            self.lose(id);
            return self.join(member);
        }
        let its = &mut self.members[member];
        match Request::decode(message) {
            Some(Request::Claim { token, inherited, .. }) => {
                *its.tokens.entry(token).or_default() += 1;
                let may = count == 1 && self.may_claim(id, which, inherited);
                self.answers_now(member, token, may);
            }
            Some(Request::Release { slab, slot }) => _ = its.slots.remove(&(slab, slot)),
            Some(Request::Pass { token, alone, inherited }) if count == 1 => {
                self.pass(id, which, token, alone, inherited);
            }
            Some(Request::Part { token }) => self.part(id, Some(token)),
            _ => {}
        }
    }

    fn claim(&mut self, member: usize, which: usize, inherited: bool) {
        let token = self.next << 32;
        let claim = Request::Claim { token, descriptor: which as i32, inherited };
        self.next += 1;
        self.say(member, &claim.encode(), 1, which % (2 * CONNECTIONS));
    }

    /// Releases a slot that the member holds, if any, or another one.
    fn release(&mut self, member: usize, which: usize) {
        let slots = &self.members[member].slots;
        let held = slots.iter().nth(which % slots.len().max(1)).copied();
        let (slab, slot) = held.unwrap_or((which as u32, 0));
        self.say(member, &Request::Release { slab, slot }.encode(), 0, 0);
    }

    /// Withdraws a waiting claim, or an unknown one.
    fn withdraw(&mut self, member: usize, which: usize) {
        let tokens = &self.members[member].tokens;
        let waiting = tokens.keys().nth(which % tokens.len().max(1)).copied();
        let token = waiting.unwrap_or(which as u64);
        self.say(member, &Request::Withdraw { token }.encode(), 0, 0);
    }

    /// Returns whether a claim may succeed: the socket was not passed and not inherited, or the
    /// claiming member is its only possible holder.
    fn may_claim(&mut self, id: u64, which: usize, inherited: bool) -> bool {
        match self.passed.get_mut(&which) {
            None => !inherited,
            Some(Some(holders)) if holders.is(id) && (inherited || holders.are.contains(&id)) => {
                holders.are = [id].into();
                true
            }
            Some(_) => false,
        }
    }

    /// Asserts that a forbidden claim is refused immediately.
    fn answers_now(&mut self, member: usize, token: u64, may_claim: bool) {
        let outbox = self.monitor.outbox(MemberId(self.members[member].id));
        let last = outbox.and_then(|it| Reply::decode(&it.back()?.bytes));
        let is_refused = matches!(last, Some(Reply::Refused { token: of, .. }) if of == token);
        assert!(may_claim || is_refused, "others may have it");
    }

    fn pass(&mut self, id: u64, which: usize, token: u64, alone: bool, inherited: bool) {
        if which >= 2 * CONNECTIONS {
            return;
        }
        let was_alone = match self.passed.get(&which) {
            None => !inherited,
            Some(before) => inherited && before.as_ref().is_some_and(|it| it.is(id)),
        };
        let two = Holders { are: [id, 0].into(), token };
        if alone && was_alone {
            // With two sockets of the same token, the holders of the first are unknown from now on.
            let others = self.passed.values_mut();
            others.filter(|it| it.as_ref() == Some(&two)).for_each(|it| *it = None);
        }
        self.passed.insert(which, (alone && was_alone).then_some(two));
    }

    /// A member no longer holds a socket that it has passed, or any of them.
    fn part(&mut self, id: u64, token: Option<u64>) {
        let is_it = |it: &&mut Holders| {
            it.are == [id, 0].into() && token.is_none_or(|token| token == it.token)
        };
        let parted = self.passed.values_mut().flatten().filter(is_it);
        parted.for_each(|holders| _ = holders.are.remove(&id));
    }

    /// Nothing is known any more about the sockets of a member.
    fn lose(&mut self, id: u64) {
        let is_it = |it: &&mut Option<Holders>| {
            it.as_ref().is_some_and(|holders| holders.are.contains(&id))
        };
        self.passed.values_mut().filter(is_it).for_each(|holders| *holders = None);
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.monitor.expire(self.now);
    }

    /// Asserts that all messages of the monitor are allowed.
    fn hear(&mut self) {
        let known = self.monitor.spoken();
        assert!(known.iter().all(|id| id.0 < self.next), "only members are spoken to");
        for member in &mut self.members {
            let Some(outbox) = self.monitor.outbox(MemberId(member.id)) else { continue };
            for outgoing in std::mem::take(outbox) {
                match Reply::decode(&outgoing.bytes).expect("replies are messages") {
                    Reply::Welcome { version } => assert_eq!(version, VERSION),
                    Reply::Refused { token, .. } => member.is_answered(token),
                    Reply::Over { slab } => {
                        assert!(member.files.remove(&slab).is_some(), "it has no such slab");
                        let has_slots = member.slots.iter().any(|slot| slot.0 == slab);
                        assert!(!has_slots, "it still has a slot of it");
                        self.slabs.remove(&slab);
                    }
                    Reply::Paired { token, slab, slot, .. } => {
                        member.is_answered(token);
                        assert!(member.slots.insert((slab, slot)), "it has that already");
                        let is_new = !member.files.contains_key(&slab);
                        assert_eq!(outgoing.memory.is_some(), is_new, "a slab comes once");
                        member.files.extend(outgoing.memory.map(|[file, _]| (slab, file)));
                        let sharers = self.slabs.entry(slab).or_default();
                        sharers.insert(member.id);
                        assert!(sharers.len() <= 2, "a slab is for two: {sharers:?}");
                    }
                }
            }
        }
    }
}

impl Member {
    fn is_answered(&mut self, token: u64) {
        let waiting = self.tokens.get_mut(&token).expect("an answer to nothing");
        *waiting -= 1;
        if *waiting == 0 {
            self.tokens.remove(&token);
        }
    }
}
