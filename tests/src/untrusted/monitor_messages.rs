// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor whose members say what they like. The input says who does what, with which socket,
//! and how time goes by. What the monitor answers is compared with what it may answer.

use freeport_monitor::{Limits, MemberId, Monitor, Policy, Process, Shown};
use freeport_sockets_proto::VERSION;
use freeport_sockets_proto::message::{BYTES, Reply, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Members at a time.
const MEMBERS: usize = 4;
/// Connections whose ends they have.
const CONNECTIONS: usize = 3;

/// Any bytes, as what members say.
pub fn monitor_messages(bytes: &[u8]) {
    thread_local! {
        static SOCKETS: Vec<OwnedFd> = sockets();
    }
    SOCKETS.with(|sockets| World::new(sockets).run(bytes));
}

/// Both ends of some connections, and what is none.
fn sockets() -> Vec<OwnedFd> {
    let mut sockets: Vec<OwnedFd> = vec![];
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    for _ in 0..CONNECTIONS {
        let to = listener.local_addr().expect("it listens");
        sockets.push(TcpStream::connect(to).expect("it listens").into());
        sockets.push(listener.accept().expect("somebody has connected").0.into());
    }
    sockets.push(listener.into());
    sockets.push(UdpSocket::bind("127.0.0.1:0").expect("a port is free").into());
    sockets.push(UnixStream::pair().expect("a pair of sockets").0.into());
    sockets
}

struct World<'a> {
    sockets: &'a [OwnedFd],
    monitor: Monitor,
    now: Instant,
    members: [Member; MEMBERS],
    next: u64,
    /// Which two members may have a slab.
    slabs: BTreeMap<u32, BTreeSet<u64>>,
}

#[derive(Default)]
struct Member {
    id: u64,
    /// Claims without an answer, and how many of each token.
    tokens: BTreeMap<u64, u32>,
    /// What it was given and has not released.
    slots: BTreeSet<(u32, u32)>,
    files: BTreeMap<u32, Arc<File>>,
}

/// What is left of the input.
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
        let limits = Limits { slabs: 5, slabs_of_member: 3, ..Limits::for_descriptors(64) };
        let monitor = Monitor::new(Policy::default(), limits, now).expect("this kernel is new");
        let members = Default::default();
        let mut world = Self { sockets, monitor, now, members, next: 1, slabs: BTreeMap::new() };
        (0..MEMBERS).for_each(|member| world.join(member));
        world
    }

    fn run(mut self, bytes: &[u8]) {
        let mut script = Script(bytes);
        while !script.0.is_empty() {
            let (kind, member) = (script.byte() % 9, usize::from(script.byte()) % MEMBERS);
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
                2 => self.claim(member, usize::from(script.byte())),
                3 => self.release(member, usize::from(script.byte())),
                4 => self.pass(u64::from(script.byte())),
                8 => self.withdraw(member, usize::from(script.byte())),
                5 if script.byte() % 8 == 0 => {
                    self.monitor.leave(MemberId(self.members[member].id));
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

    /// All that waits is answered in the end, and nothing is left when all are gone.
    fn end(&mut self) {
        self.pass(1000);
        self.hear();
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
        let pid = 1_000 + member as i32;
        let user = member as u32 / 2;
        let process = Process { pid, user, command: "it".into(), net: 0, cgroup: String::new() };
        self.monitor.join(MemberId(id), process, self.now);
        self.members[member] = Member { id, ..Member::default() };
    }

    /// A message with some descriptors; a member that is dropped for it joins again.
    fn say(&mut self, member: usize, message: &[u8], count: usize, which: usize) {
        let socket = self.sockets[which % self.sockets.len()].as_fd();
        let shown = (0..count)
            .map(|_| Shown::from(socket.try_clone_to_owned().expect("there are descriptors")));
        let id = MemberId(self.members[member].id);
        let token = match Request::decode(message) {
            Some(Request::Claim { token, .. }) => Some(token),
            Some(Request::Release { slab, slot }) => {
                self.members[member].slots.remove(&(slab, slot));
                None
            }
            _ => None,
        };
        match self.monitor.take(id, message, shown.collect(), self.now) {
            Ok(()) => {
                let tokens = &mut self.members[member].tokens;
                token.into_iter().for_each(|token| *tokens.entry(token).or_default() += 1);
            }
            Err(why) => {
                self.monitor.drop_member(id, why);
                self.join(member);
            }
        }
    }

    fn claim(&mut self, member: usize, which: usize) {
        let claim = Request::Claim { token: self.next << 32, descriptor: which as i32 };
        self.next += 1;
        self.say(member, &claim.encode(), 1, which % (2 * CONNECTIONS));
    }

    /// Something that it has, if it has anything, or something else.
    fn release(&mut self, member: usize, which: usize) {
        let slots = &self.members[member].slots;
        let held = slots.iter().nth(which % slots.len().max(1)).copied();
        let (slab, slot) = held.unwrap_or((which as u32, 0));
        self.say(member, &Request::Release { slab, slot }.encode(), 0, 0);
    }

    /// A claim that waits, or none.
    fn withdraw(&mut self, member: usize, which: usize) {
        let tokens = &self.members[member].tokens;
        let waiting = tokens.keys().nth(which % tokens.len().max(1)).copied();
        let token = waiting.unwrap_or(which as u64);
        self.say(member, &Request::Withdraw { token }.encode(), 0, 0);
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.monitor.expire(self.now);
    }

    /// Everything that the monitor says has to be so.
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
                        assert_eq!(outgoing.slab.is_some(), is_new, "a slab comes once");
                        member.files.extend(outgoing.slab.map(|file| (slab, file)));
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
