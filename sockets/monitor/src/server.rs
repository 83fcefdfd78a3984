// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Serves a monitor's socket with one thread, which waits for all connections at once.
//!
//! It never blocks on a single connection: each gets a few messages per turn, and unread replies
//! stay in its outbox, which is bounded.

use crate::control;
use crate::disposal::{Closing, Shown, Waker};
use crate::member::{Departure, MemberId};
use crate::monitor::{Limits, Monitor};
use crate::policy::Policy;
use crate::process::Process;
use crate::socket::{self, Peer};
use crate::{Error, Taken};
use freeport_sockets_proto::message::CLAIM_MILLISECONDS;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Number of messages read from one connection before the others' turn.
const MESSAGES_A_TURN: usize = 32;
/// Maximum size of a message.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Time limit for a connection's first message, and for reading an answer.
const SILENCE: Duration = Duration::from_secs(5);
/// Maximum number of connections without a first message, or with an unread answer: of all users,
/// and of one.
const SILENT_MAX: usize = 512;
const SILENT_OF_USER: usize = 64;
/// Size of the parts in which an answer to a question is sent.
const PART_BYTES: usize = 32 << 10;
/// Maximum number of events per wait.
const EVENTS: usize = 64;

const LISTENER: u64 = 0;
const STOP: u64 = 1;

/// Options of a monitor.
#[derive(Clone, Debug)]
pub struct Options {
    /// Initial rules.
    pub policy: Policy,
    /// Time that a claim waits for its peer.
    pub hold: Duration,
    /// The monitor ends when it has had no members for this long.
    pub idle: Option<Duration>,
    /// Maximum number of slabs that two users may share; by default an eighth of the descriptor
    /// limit.
    pub slabs_of_users: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        let hold = Duration::from_millis(CLAIM_MILLISECONDS);
        Self { policy: Policy::default(), hold, idle: None, slabs_of_users: None }
    }
}

/// An event that the operator of the monitor may want to log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A member was dropped.
    Dropped {
        /// PID of its process.
        pid: i32,
        /// User of its process.
        user: u32,
        /// Name of its program.
        command: String,
        /// Reason.
        why: Departure,
    },
    /// A connection was not accepted: there are too many.
    TurnedAway {
        /// PID of its process.
        pid: i32,
        /// User of its process.
        user: u32,
    },
    /// The monitor ends on request.
    Stopped,
    /// The monitor ends because it was idle for too long.
    Idle,
}

/// A listening monitor.
pub struct Server {
    monitor: Monitor,
    place: Taken,
    idle: Option<Duration>,
    epoll: OwnedFd,
    closing: Closing,
    connections: HashMap<u64, Connection>,
    /// Connections that may not stay silent, and since when they are.
    silent: BTreeMap<u64, Instant>,
    /// Number of connections of each user.
    of_user: HashMap<u32, usize>,
    /// Number of processes for which the monitor keeps running.
    guests: usize,
    next: u64,
    /// Time since which there has been no member.
    empty_since: Instant,
    /// Time before which no connection is accepted, after a lack of descriptors.
    accept_at: Option<Instant>,
}

struct Connection {
    socket: OwnedFd,
    peer: Peer,
    role: Role,
    /// Whether the kernel reports when there is room to write.
    wants_room: bool,
}

enum Role {
    /// Has not sent anything yet.
    Stranger,
    Member,
    /// Sent a question, and receives the answer in parts.
    Asker(VecDeque<Vec<u8>>),
    /// Not a connection, but a pidfd of a process that may start members; readable when it exits.
    Guest,
}

impl Server {
    /// Creates a server for a location that was taken.
    ///
    /// # Errors
    /// [`Error::System`] or [`Error::Kernel`]: the kernel is too old, or has no free descriptors.
    pub fn new(place: Taken, options: Options) -> Result<Self, Error> {
        let now = Instant::now();
        let limits = Limits::for_descriptors(raise_descriptors());
        let slabs_of_users = options.slabs_of_users.unwrap_or(limits.slabs_of_users);
        let limits = Limits { hold: options.hold, slabs_of_users, ..limits };
        // SAFETY: no memory is passed.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(Error::system("epoll_create1"));
        }
        // SAFETY: the descriptor is new and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let server = Self {
            monitor: Monitor::new(options.policy, limits, now)?,
            place,
            idle: options.idle,
            epoll,
            closing: Closing::default(),
            connections: HashMap::new(),
            silent: BTreeMap::new(),
            of_user: HashMap::new(),
            guests: 0,
            next: 2,
            empty_since: now,
            accept_at: None,
        };
        server.watch(server.place.listener().as_fd(), LISTENER, libc::EPOLLIN, true)?;
        Ok(server)
    }

    /// Serves until `stop` is readable, or until it has been idle for too long.
    ///
    /// # Errors
    /// [`Error::System`] if waiting fails.
    pub fn run(mut self, stop: BorrowedFd<'_>, tell: &mut dyn FnMut(Event)) -> Result<(), Error> {
        self.watch(stop, STOP, libc::EPOLLIN, true)?;
        let waker = Waker::new()?;
        loop {
            waker.stop();
            let ready = self.wait()?;
            waker.wind_up();
            let now = Instant::now();
            for (token, events) in ready {
                match token {
                    STOP => {
                        tell(Event::Stopped);
                        return Ok(());
                    }
                    LISTENER => self.accept(now, tell),
                    id => self.serve(id, events, now, tell),
                }
            }
            self.monitor.expire(now);
            self.deliver(tell);
            self.drop_silent(now);
            if self.accept_at.is_some_and(|at| at <= now) {
                self.accept_at = None;
                self.watch(self.place.listener().as_fd(), LISTENER, libc::EPOLLIN, false)?;
            }
            if self.monitor.members() + self.guests > 0 {
                self.empty_since = now;
            } else if self.idle.is_some_and(|idle| now - self.empty_since >= idle) {
                tell(Event::Idle);
                return Ok(());
            }
        }
    }

    /// Waits for the next event or deadline.
    fn wait(&self) -> Result<Vec<(u64, u32)>, Error> {
        let silent = self.silent.values().min().map(|since| *since + SILENCE);
        let idle = self.idle.filter(|_| self.monitor.members() + self.guests == 0);
        let idle = idle.map(|idle| self.empty_since + idle);
        let next = [self.monitor.deadline(), silent, idle, self.accept_at];
        let timeout = next.into_iter().flatten().min().map_or(-1, |at| {
            let left = at.saturating_duration_since(Instant::now());
            // Rounded up, so that the deadline has passed when the wait returns.
            i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
        });
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: there is room for this many events.
        let count = unsafe {
            let epoll = self.epoll.as_raw_fd();
            libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS as i32, timeout)
        };
        match usize::try_from(count) {
            Ok(count) => Ok(events[..count].iter().map(|it| (it.u64, it.events)).collect()),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(vec![]),
            Err(_) => Err(Error::system("epoll_wait")),
        }
    }

    fn watch(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        events: i32,
        is_new: bool,
    ) -> Result<(), Error> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        let what = if is_new { libc::EPOLL_CTL_ADD } else { libc::EPOLL_CTL_MOD };
        // SAFETY: both descriptors are open, and the event outlives the call.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), what, socket.as_raw_fd(), &mut event)
        };
        if result == 0 { Ok(()) } else { Err(Error::system("epoll_ctl")) }
    }

    /// Accepts connections.
    fn accept(&mut self, now: Instant, tell: &mut dyn FnMut(Event)) {
        for _ in 0..MESSAGES_A_TURN {
            let socket = match socket::accept(self.place.listener().as_fd()) {
                Ok(socket) => socket,
                Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => continue,
                Err(error) => {
                    // Without a free descriptor, the event would be reported again and again.
                    if error.kind() != io::ErrorKind::WouldBlock {
                        let listener = self.place.listener().as_fd();
                        let _ = self.watch(listener, LISTENER, 0, false);
                        self.accept_at = Some(now + Duration::from_millis(100));
                    }
                    return;
                }
            };
            let Ok(peer) = socket::peer(socket.as_fd()) else { continue };
            if !self.has_room(peer.user) {
                self.monitor.ledger.turned_away += 1;
                tell(Event::TurnedAway { pid: peer.pid, user: peer.user });
                continue;
            }
            // A process that looks for a monitor may be about to start a program.
            self.empty_since = now;
            self.add(socket, peer, Role::Stranger, now);
        }
    }

    fn has_room(&self, user: u32) -> bool {
        let limits = self.monitor.limits();
        self.connections.len() < limits.members
            && self.of_user.get(&user).is_none_or(|count| *count < limits.members_of_user)
            && self.silent.len() < SILENT_MAX
            && self.silent_of(user) < SILENT_OF_USER
    }

    fn silent_of(&self, user: u32) -> usize {
        let connections = self.silent.keys().filter_map(|id| self.connections.get(id));
        connections.filter(|connection| connection.peer.user == user).count()
    }

    /// Adds a connection.
    fn add(&mut self, socket: OwnedFd, peer: Peer, role: Role, now: Instant) {
        let id = self.next;
        self.next += 1;
        let events = libc::EPOLLIN | libc::EPOLLRDHUP;
        if self.watch(socket.as_fd(), id, events, true).is_err() {
            return;
        }
        match role {
            Role::Guest => self.guests += 1,
            _ => _ = self.silent.insert(id, now),
        }
        *self.of_user.entry(peer.user).or_default() += 1;
        self.connections.insert(id, Connection { socket, peer, role, wants_room: false });
    }

    /// Handles a hang-up of the peer; if it was a member, its process has exited or executes
    /// another program.
    fn hang_up(&mut self, id: u64) {
        self.monitor.leave(MemberId(id));
        self.end(id);
    }

    /// Ends a connection whose process may keep running.
    fn abandon(&mut self, id: u64) {
        self.monitor.abandon(MemberId(id));
        self.end(id);
    }

    fn end(&mut self, id: u64) {
        self.silent.remove(&id);
        let Some(connection) = self.connections.remove(&id) else { return };
        if matches!(connection.role, Role::Guest) {
            self.guests -= 1;
        }
        let user = connection.peer.user;
        if let Some(count) = self.of_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.of_user.remove(&user);
            }
        }
    }

    /// Handles events of a connection.
    fn serve(&mut self, id: u64, events: u32, now: Instant, tell: &mut dyn FnMut(Event)) {
        if events & libc::EPOLLOUT as u32 != 0 {
            self.write(id);
        }
        if events & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 == 0
        {
            return;
        }
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        for _ in 0..MESSAGES_A_TURN {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            if matches!(connection.role, Role::Guest) {
                return self.hang_up(id);
            }
            let user = connection.peer.user;
            let socket = connection.socket.as_fd();
            let message =
                match socket::receive_with(socket, &mut buffer, self.closing.has_room(user)) {
                    Ok(message) if message.length > 0 => message,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                    // Reported once, before earlier messages: the peer left some of its messages
                    // unread.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => continue,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(_) => return self.hang_up(id),
                    Err(_) => return self.abandon(id),
                };
            let shown = message.descriptors.into_iter();
            let shown = shown.map(|it| Shown::new(it, user, &self.closing));
            let shown: Vec<_> = shown.collect();
            let bytes = buffer.get(..message.length).filter(|_| !message.is_cut);
            if matches!(connection.role, Role::Stranger) && buffer[0] == control::MARK {
                if !shown.is_empty() {
                    return self.abandon(id);
                }
                self.answer(id, bytes.unwrap_or_default(), now);
                continue;
            }
            match connection.role {
                Role::Stranger => {
                    connection.role = Role::Member;
                    self.silent.remove(&id);
                    let socket = connection.socket.as_fd();
                    let process = Process::of_connection(socket, connection.peer);
                    self.monitor.join(MemberId(id), process, now);
                }
                Role::Member => {}
                Role::Asker(_) | Role::Guest => return self.hang_up(id),
            }
            let bytes = bytes.unwrap_or_default();
            if let Err(why) = self.monitor.take(MemberId(id), bytes, shown, now) {
                return self.drop_member(id, why, tell);
            }
        }
    }

    /// Answers a question, and writes as much of the answer as there is room for.
    fn answer(&mut self, id: u64, question: &[u8], now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let peer = connection.peer;
        if question == control::STAY.as_bytes() {
            self.host(peer, now);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let text = self.monitor.answer(question, connection.peer.user, now);
        let parts = text.as_bytes().chunks(PART_BYTES).map(<[u8]>::to_vec);
        connection.role = Role::Asker(parts.collect());
        self.silent.insert(id, now);
        self.write(id);
    }

    /// Keeps the monitor running as long as a process lives.
    fn host(&mut self, peer: Peer, now: Instant) {
        if peer.pid == 0 || !self.has_room(peer.user) {
            return;
        }
        // SAFETY: no memory is passed.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, peer.pid, 0) };
        let process = match i32::try_from(descriptor) {
            // SAFETY: the descriptor is new and has no other owner.
            Ok(descriptor) if descriptor >= 0 => unsafe { OwnedFd::from_raw_fd(descriptor) },
            _ => return,
        };
        self.add(process, peer, Role::Guest, now);
    }

    /// Sends the new messages in outboxes.
    fn deliver(&mut self, tell: &mut dyn FnMut(Event)) {
        let spoken: BTreeSet<MemberId> = self.monitor.spoken().into_iter().collect();
        for MemberId(id) in spoken {
            self.write(id);
        }
        for (MemberId(id), why) in self.monitor.departing() {
            self.drop_member(id, why, tell);
        }
    }

    /// Writes what there is room for, and waits for room if more is left.
    fn write(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let written = match &mut connection.role {
            Role::Stranger | Role::Guest => return,
            Role::Member => {
                let Some(outbox) = self.monitor.outbox(MemberId(id)) else { return };
                write_all(connection.socket.as_fd(), outbox, |socket, message| {
                    let memory = message.memory.iter().flatten();
                    let memory: Vec<_> = memory.map(|file| file.as_fd()).collect();
                    socket::send(socket, &message.bytes, &memory)
                })
            }
            Role::Asker(parts) => write_all(connection.socket.as_fd(), parts, |socket, part| {
                socket::send(socket, part, &[])
            }),
        };
        let is_done = match written {
            Ok(is_done) => is_done,
            // Messages that it sent before it hung up are read first.
            Err(error) if has_hung_up(&error) => {
                self.forget_outbox(id);
                true
            }
            Err(_) => return self.abandon(id),
        };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if is_done && matches!(connection.role, Role::Asker(_)) {
            return self.hang_up(id);
        }
        if connection.wants_room == is_done {
            connection.wants_room = !is_done;
            let room = if is_done { 0 } else { libc::EPOLLOUT };
            let events = libc::EPOLLIN | libc::EPOLLRDHUP | room;
            let connection = &self.connections[&id];
            if self.watch(connection.socket.as_fd(), id, events, false).is_err() {
                self.abandon(id);
            }
        }
    }

    /// Clears the outbox of a peer that will not read it.
    fn forget_outbox(&mut self, id: u64) {
        if let Some(outbox) = self.monitor.outbox(MemberId(id)) {
            outbox.clear();
        }
    }

    fn drop_member(&mut self, id: u64, why: Departure, tell: &mut dyn FnMut(Event)) {
        let Some(member) = self.monitor.members.get(&MemberId(id)) else { return };
        let Process { pid, user, command, .. } = member.process.clone();
        tell(Event::Dropped { pid, user, command, why });
        self.monitor.drop_member(MemberId(id), why);
        self.end(id);
    }

    /// Ends the connections that neither sent nor read anything in time.
    fn drop_silent(&mut self, now: Instant) {
        let late = self.silent.iter().filter(|(_, since)| now - **since >= SILENCE);
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.end(id));
    }
}

/// Returns whether the peer no longer reads.
fn has_hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Sends the queue until it is empty, which returns true, or until there is no room.
fn write_all<T>(
    socket: BorrowedFd<'_>,
    queue: &mut VecDeque<T>,
    send: impl Fn(BorrowedFd<'_>, &T) -> io::Result<()>,
) -> io::Result<bool> {
    while let Some(first) = queue.front() {
        match send(socket, first) {
            Ok(()) => drop(queue.pop_front()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Raises the descriptor limit of this process to its maximum, and returns it.
fn raise_descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: the structure has room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the structure outlives the call, which reads it.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
        limit = raised;
    }
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}
