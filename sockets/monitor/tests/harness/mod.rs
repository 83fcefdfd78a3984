// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A monitor in a thread, and members in other processes.
//!
//! To the kernel, the member is the process that made the connection. So a child makes it, passes
//! it to the test, and stays alive; the test sends the member's messages.
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

/// Options of a monitor whose claims wait as long as the test may need to make the second one.
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
        // Children of other users need access.
        let reached = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), reached).unwrap();
        Self::at(folder, options, |_| {})
    }

    /// Starts a monitor that already listens, but serves only after `before` has run.
    pub fn after(before: impl FnOnce(&Location)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), patient(), before)
    }

    fn at(folder: tempfile::TempDir, options: Options, before: impl FnOnce(&Location)) -> Self {
        let location = Location::at(folder.path().join("monitor.sock"));
        let server = Server::new(location.take().unwrap(), options).unwrap();
        before(&location);
        let (stop, stopped) = UnixStream::pair().unwrap();
        let events = Arc::new(Mutex::new(vec![]));
        let reported = events.clone();
        let thread = thread::spawn(move || {
            server.run(stopped.as_fd(), &mut |event| reported.lock().unwrap().push(event)).unwrap();
        });
        Self { location, folder, stop, thread: Some(thread), events }
    }

    /// Stops it, and starts another one at the same location.
    pub fn restart(mut self) -> Self {
        self.end();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Self::at(folder, patient(), |_| {})
    }

    /// Stops it, and waits for its end.
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

    /// Returns a welcomed member in a process of its own.
    pub fn member(&self) -> Member {
        self.member_of(None)
    }

    /// Returns a welcomed member in a process of this user.
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

/// A reply to a member, with the slab and its notices if they came with it.
#[derive(Debug)]
pub struct Heard {
    pub reply: Reply,
    pub slab: Option<File>,
    pub notices: Option<File>,
}

impl Heard {
    /// Slab and slot of a pairing.
    pub fn place(&self) -> (u32, u32) {
        match self.reply {
            Reply::Paired { slab, slot, .. } => (slab, slot),
            other => panic!("not paired: {other:?}"),
        }
    }
}

/// Held while a child is made, which at first has all descriptors of this process.
static FORKS: RwLock<()> = RwLock::new(());

/// Prevents forks: for lingering sockets, of which a child might close the last descriptor.
pub fn without_forks() -> RwLockWriteGuard<'static, ()> {
    FORKS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held while a test makes a child by other means, until the child has closed what it does not need
/// or has exited.
pub fn while_forking() -> RwLockReadGuard<'static, ()> {
    FORKS.read().unwrap_or_else(PoisonError::into_inner)
}

/// A member of the monitor.
pub struct Member {
    pub socket: OwnedFd,
    /// PID of the member's process.
    pub pid: i32,
    child: Child,
}

/// A child that lives until this is dropped.
struct Child {
    pid: i32,
    /// The child exits when this is closed.
    line: UnixStream,
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the process is our own child and not yet waited for, so its PID is not reused.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: the status pointer may be null.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

impl Member {
    /// Returns a member that has not sent anything yet.
    pub fn silent(path: &Path, user: Option<u32>) -> Self {
        let _forks = while_forking();
        let (ours, theirs) = UnixStream::pair().unwrap();
        // SAFETY: the child only makes system calls, and exits without running any of our code.
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

    /// Changes the user of its process.
    pub fn become_user(&self, user: u32) {
        let mut line = &self.child.line;
        line.write_all(&user.to_ne_bytes()).unwrap();
        await_readable(line.as_fd());
        line.read_exact(&mut [0]).unwrap();
    }

    /// Ends its process and waits for it; the connection stays open.
    pub fn without_process(self) -> OwnedFd {
        self.socket
    }

    pub fn say(&self, request: &Request) {
        socket::send(self.socket.as_fd(), &request.encode(), &[]).unwrap();
    }

    pub fn claim(&self, token: u64, socket: BorrowedFd<'_>) {
        self.show(&Request::Claim { token, descriptor: 7, inherited: false }, socket);
    }

    /// Sends a request with a socket.
    pub fn show(&self, request: &Request, socket: BorrowedFd<'_>) {
        socket::send(self.socket.as_fd(), &request.encode(), &[socket]).unwrap();
    }

    /// Receives the next message.
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

    /// Waits until the monitor has hung up, and discards earlier messages.
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

/// Body of the child process.
fn connect_and_stay(path: &Path, user: Option<u32>, to: &UnixStream) -> ! {
    let kept = 3;
    // SAFETY: no memory is passed. An owner of 3 is never used or dropped: the child does not
    // return from here.
    unsafe { libc::dup2(to.as_raw_fd(), kept) };
    // Descriptors of other tests would stay open here.
    // SAFETY: as above, for all owners of the closed descriptors.
    unsafe { libc::close_range(4, u32::MAX, 0) };
    // The raw system call, since the C library would change all threads.
    // SAFETY: no memory is passed.
    let become_user = |user: u32| unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    user.map(become_user);
    // SAFETY: the descriptor was put there above, and no other owner of it is used.
    let to = unsafe { UnixStream::from_raw_fd(kept) };
    if let Ok(connection) = socket::connect(path) {
        let _ = socket::send(to.as_fd(), b"!", &[connection.as_fd()]);
        drop(connection);
    }
    // Ends with the parent at the latest.
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

/// Claims both ends of a new connection, and returns the reason if they are refused.
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

/// Sends as fast as the monitor reads, until it hangs up.
pub fn send_until_it_fails(member: &Member, message: &[u8], descriptors: &[BorrowedFd<'_>]) {
    loop {
        match socket::send(member.socket.as_fd(), message, descriptors) {
            Ok(()) => {}
            // Also if too many descriptors are in flight.
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
    // SAFETY: one descriptor, and the structure outlives the call.
    let count = unsafe { libc::poll(&mut wanted, 1, PATIENCE.as_millis() as i32) };
    assert_eq!(count, 1, "nothing happened for long");
}

/// Makes a connection to that address, and returns both ends.
pub fn connection(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).unwrap();
    let mut to = listener.local_addr().unwrap();
    if to.ip().is_unspecified() {
        // A dual-stack server, reached by IPv4.
        to.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let client = TcpStream::connect(to).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Returns whether tests run as root.
pub fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
