// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor that runs in a thread, and members of other processes.
//!
//! The kernel says that a member is who made the connection. So a child makes it, hands it over,
//! and stays; what the member says is said by the test.
#![allow(dead_code, reason = "each test uses what it needs")]

use freeport_monitor::{Control, Event, Location, Options, Server, socket};
use freeport_sockets_proto::message::{BYTES, Reply, Request};
use freeport_sockets_proto::{Reason, VERSION};
use freeport_testbed::wait::PATIENCE;
pub use freeport_testbed::wait_until as eventually;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};

/// A monitor with which claims wait for as long as the test may need to make the second one.
pub fn patient() -> Options {
    Options { hold: PATIENCE, ..Options::default() }
}

/// A monitor in a thread of this process.
pub struct Running {
    pub location: Location,
    folder: tempfile::TempDir,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Running {
    pub fn new(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Children of other users have to get there.
        let reached = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), reached).unwrap();
        Self::at(folder, options, |_| {})
    }

    /// One that listens already, and looks at nothing before something was done.
    pub fn after(before: impl FnOnce(&Location)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), patient(), before)
    }

    fn at(folder: tempfile::TempDir, options: Options, before: impl FnOnce(&Location)) -> Self {
        let location = Location::at(folder.path().join("monitor.sock"));
        let server = Server::new(location.take().unwrap(), options).unwrap();
        before(&location);
        let (stop, stopped) = UnixStream::pair().unwrap();
        let events = Arc::new(Mutex::new(vec![]));
        let told = events.clone();
        let thread = thread::spawn(move || {
            server.run(stopped.as_fd(), &mut |event| told.lock().unwrap().push(event)).unwrap();
        });
        Self { location, folder, stop, thread: Some(thread), events }
    }

    /// Ends it, and begins another one at the same place.
    pub fn restart(mut self) -> Self {
        self.end();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Self::at(folder, patient(), |_| {})
    }

    /// Waits until it ends.
    pub fn end(&mut self) {
        let _ = self.stop.write_all(b"!");
        self.wait();
    }

    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn control(&self) -> Control {
        Control::at(self.location.clone())
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// A member that has been welcomed, of a process of its own.
    pub fn member(&self) -> Member {
        self.member_of(None)
    }

    /// The same, of that user.
    pub fn member_of(&self, user: Option<u32>) -> Member {
        let member = Member::silent(self.location.path(), user);
        member.say(&Request::Hello { version: VERSION, membarrier: true });
        assert_eq!(member.hear().reply, Reply::Welcome { version: VERSION });
        member
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a member was told, with the slab and its notices if those came along.
#[derive(Debug)]
pub struct Heard {
    pub reply: Reply,
    pub slab: Option<File>,
    pub notices: Option<File>,
}

impl Heard {
    /// The slab and the slot of a pairing.
    pub fn place(&self) -> (u32, u32) {
        match self.reply {
            Reply::Paired { slab, slot, .. } => (slab, slot),
            other => panic!("not paired: {other:?}"),
        }
    }
}

/// Held while a child is made, which at first has all descriptors of this process.
static FORKS: RwLock<()> = RwLock::new(());

/// Lets no child be made meanwhile: for sockets that linger, which a child might close last.
pub fn without_forks() -> RwLockWriteGuard<'static, ()> {
    FORKS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held while a child is made by another test's own means, until it has closed what it does not
/// need or has ended.
pub fn while_forking() -> RwLockReadGuard<'static, ()> {
    FORKS.read().unwrap_or_else(PoisonError::into_inner)
}

/// A member of the monitor.
pub struct Member {
    pub socket: OwnedFd,
    /// The process that counts as the member.
    pub pid: i32,
    child: Child,
}

/// A child that lives until this goes.
struct Child {
    pid: i32,
    /// It ends when this is closed.
    line: UnixStream,
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the process is our own child and not yet waited for, so the number is its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: null asks for no status, so nothing is written.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

impl Member {
    /// One that has said nothing yet.
    pub fn silent(path: &Path, user: Option<u32>) -> Self {
        let _forks = while_forking();
        let (ours, theirs) = UnixStream::pair().unwrap();
        // SAFETY: the child calls the system only, and ends without running anything of ours.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            connect_and_stay(path, user, &theirs);
        }
        let child = Child { pid, line: ours.try_clone().unwrap() };
        drop(theirs);
        await_readable(ours.as_fd());
        let message = socket::receive(ours.as_fd(), &mut [0; 8]).unwrap();
        let socket = message.descriptors.into_iter().next().expect("the child has connected");
        Self { socket, pid, child }
    }

    /// Its process becomes another user's.
    pub fn become_user(&self, user: u32) {
        let mut line = &self.child.line;
        line.write_all(&user.to_ne_bytes()).unwrap();
        await_readable(line.as_fd());
        line.read_exact(&mut [0]).unwrap();
    }

    /// Its process ends, and is waited for; its connection stays.
    pub fn without_process(self) -> OwnedFd {
        self.socket
    }

    pub fn say(&self, request: &Request) {
        socket::send(self.socket.as_fd(), &request.encode(), &[]).unwrap();
    }

    pub fn claim(&self, token: u64, socket: BorrowedFd<'_>) {
        self.show(&Request::Claim { token, descriptor: 7, inherited: false }, socket);
    }

    /// Says something of a socket.
    pub fn show(&self, request: &Request, socket: BorrowedFd<'_>) {
        socket::send(self.socket.as_fd(), &request.encode(), &[socket]).unwrap();
    }

    /// The next message.
    pub fn hear(&self) -> Heard {
        await_readable(self.socket.as_fd());
        let mut bytes = [0; BYTES];
        let message = socket::receive(self.socket.as_fd(), &mut bytes).unwrap();
        assert_eq!(message.length, BYTES, "the monitor has hung up");
        assert!(matches!(message.descriptors.len(), 0 | 2));
        let mut descriptors = message.descriptors.into_iter().map(File::from);
        let (slab, notices) = (descriptors.next(), descriptors.next());
        Heard { reply: Reply::decode(&bytes).expect("a reply"), slab, notices }
    }

    /// Waits until the monitor has hung up; what came before is thrown away.
    pub fn hear_the_end(&self) {
        let mut bytes = [0; BYTES];
        loop {
            await_readable(self.socket.as_fd());
            match socket::receive(self.socket.as_fd(), &mut bytes) {
                Ok(message) if message.length > 0 => {}
                Ok(_) => return,
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                    return;
                }
            }
        }
    }
}

/// What the child does.
fn connect_and_stay(path: &Path, user: Option<u32>, to: &UnixStream) -> ! {
    let kept = 3;
    // SAFETY: no memory is passed. An owner of 3 is never used or dropped: the child does not
    // return from here.
    unsafe { libc::dup2(to.as_raw_fd(), kept) };
    // What other tests have open would stay open here.
    // SAFETY: as above, for all owners of what is closed.
    unsafe { libc::close_range(4, u32::MAX, 0) };
    // The raw call, since the C library would ask all threads to join in.
    // SAFETY: no memory is passed.
    let become_user = |user: u32| unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    user.map(become_user);
    // SAFETY: the descriptor was put there above, and no owner of it is used.
    let to = unsafe { UnixStream::from_raw_fd(kept) };
    if let Ok(connection) = socket::connect(path) {
        let _ = socket::send(to.as_fd(), b"!", &[connection.as_fd()]);
        drop(connection);
    }
    // Until the parent has gone, if it does not end this one.
    let _ = to.set_nonblocking(false);
    let mut user = [0; 4];
    while (&to).read_exact(&mut user).is_ok() {
        become_user(u32::from_ne_bytes(user));
        let _ = (&to).write_all(b"!");
    }
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) }
}

/// A user that is not root.
pub const NOBODY: u32 = 65_534;

/// Has both ends of a new connection claimed, and gives why they are refused, if they are.
pub fn outcome(one: &Member, other: &Member) -> Option<Reason> {
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    let reasons = [one.hear(), other.hear()].map(|heard| match heard.reply {
        Reply::Refused { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(reasons[0], reasons[1]);
    reasons[0]
}

/// Sends as fast as the monitor reads, until that has hung up.
pub fn send_until_it_fails(member: &Member, message: &[u8], descriptors: &[BorrowedFd<'_>]) {
    loop {
        match socket::send(member.socket.as_fd(), message, descriptors) {
            Ok(()) => {}
            // Also if too many descriptors are on their way.
            Err(error) if error.raw_os_error() == Some(libc::ETOOMANYREFS) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                await_room(member.socket.as_fd());
            }
            Err(_) => return,
        }
    }
}

pub fn await_readable(socket: BorrowedFd<'_>) {
    wait_for(socket, libc::POLLIN);
}

pub fn await_room(socket: BorrowedFd<'_>) {
    wait_for(socket, libc::POLLOUT);
}

fn wait_for(socket: BorrowedFd<'_>, events: libc::c_short) {
    let mut wanted = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    // SAFETY: one descriptor, and the structure lives as long as the call.
    let count = unsafe { libc::poll(&mut wanted, 1, PATIENCE.as_millis() as i32) };
    assert_eq!(count, 1, "nothing happened for long");
}

/// Both ends of a connection to that address.
pub fn connection(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).unwrap();
    let mut to = listener.local_addr().unwrap();
    if to.ip().is_unspecified() {
        // A server of both families, reached by IPv4.
        to.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let client = TcpStream::connect(to).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Whether tests can do what only root can.
pub fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
