// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who a member is: what the kernel says of the process at the other end of its socket.
//!
//! The kernel gives a process's number to another one once it is gone. So a process is known by its
//! number and by when it began, which no later one has in common with it. The first look is at who
//! made the connection, as long as that lives; each later look begins with what may have changed
//! and ends with when it began: if that is as before, all was of the same process. A descriptor of
//! the process would do as well, but each member would cost one of those that the monitor has.

use crate::socket::Peer;
use crate::text::{decoded, printable_bytes};
use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// `SO_PEERPIDFD` of the kernel, since 6.5.
const PEER_PROCESS: i32 = 77;

/// A process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number; 0 if it is in no namespace that is seen from here.
    pub pid: i32,
    /// Its user.
    pub user: u32,
    /// What it is called, as it can be shown.
    pub command: String,
    /// The inode of its namespace of the network, as `/proc/PID/ns/net` has it; 0 if that cannot
    /// be told.
    pub net: u64,
    /// Its control group; empty if that cannot be told.
    pub cgroup: String,
    /// What tells it from a later process of the same number.
    pub since: Since,
}

/// When a process began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Since {
    /// So many ticks after the machine.
    Ticks(u64),
    /// It may not be looked at: what was told of it with its connection is all there is.
    Hidden,
    /// It was gone before it could be looked at.
    Gone,
}

impl Process {
    /// What is known of who made a connection.
    pub fn of(peer: Peer) -> Self {
        let since = since(peer.pid);
        Self {
            pid: peer.pid,
            user: peer.user,
            command: printable_bytes(named(&bytes(peer.pid, "comm"))),
            net: net(peer.pid),
            cgroup: cgroup(peer.pid),
            since,
        }
    }

    /// The same, of a connection: if its process is gone, another may have its number already, of
    /// which nothing is taken.
    pub fn of_connection(connection: BorrowedFd<'_>, peer: Peer) -> Self {
        let process = Self::of(peer);
        if peer.pid == 0 || !is_gone(connection) {
            return process;
        }
        let (command, cgroup) = (String::new(), String::new());
        Self { command, cgroup, net: 0, since: Since::Gone, ..process }
    }

    /// The process as it is now: with another user, namespace or control group, if it has changed
    /// those. `None`: it is gone.
    pub fn again(&self) -> Option<Self> {
        match self.since {
            Since::Hidden => return Some(self.clone()),
            Since::Gone => return None,
            Since::Ticks(_) => {}
        }
        let user = user(self.pid)?;
        let (net, cgroup) = (net(self.pid), cgroup(self.pid));
        let is_same = since(self.pid) == self.since;
        is_same.then(|| Self { user, net, cgroup, ..self.clone() })
    }
}

/// Whoever names a process or a group need not write UTF-8.
fn bytes(pid: i32, name: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

fn net(pid: i32) -> u64 {
    fs::metadata(format!("/proc/{pid}/ns/net")).map_or(0, |it| it.ino())
}

fn cgroup(pid: i32) -> String {
    let groups = decoded(&bytes(pid, "cgroup"));
    // The unified hierarchy is the line of number 0.
    groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned()
}

/// The effective user, as connections have it.
fn user(pid: i32) -> Option<u32> {
    let status = decoded(&bytes(pid, "status"));
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// The name without the end of its line, which the kernel adds.
fn named(comm: &[u8]) -> &[u8] {
    comm.strip_suffix(b"\n").unwrap_or(comm)
}

fn since(pid: i32) -> Since {
    let stat = decoded(&bytes(pid, "stat"));
    match ticks(&stat) {
        Some(ticks) => Since::Ticks(ticks),
        None if pid > 0 && has_no_process(pid) => Since::Gone,
        None => Since::Hidden,
    }
}

/// When the process of a line of `/proc/PID/stat` began: the 22nd field, of which the second, the
/// name, may have anything in it. `None`: it has ended.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let has_ended = matches!(*fields.first()?, "Z" | "X");
    if has_ended { None } else { fields.get(19)?.parse().ok() }
}

fn has_no_process(pid: i32) -> bool {
    // SAFETY: no memory is passed, and no signal is sent.
    let result = unsafe { libc::kill(pid, 0) };
    result != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Whether the process that made a connection is gone, as the kernel says. An earlier kernel says
/// nothing, nor does one that has no descriptor left.
fn is_gone(connection: BorrowedFd<'_>) -> bool {
    let mut descriptor = -1_i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    let (socket, value) = (connection.as_raw_fd(), (&raw mut descriptor).cast());
    // SAFETY: room for the answer, and its length.
    let result =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, PEER_PROCESS, value, &mut length) };
    if result != 0 {
        let error = io::Error::last_os_error().raw_os_error();
        return matches!(error, Some(libc::ESRCH | libc::EINVAL | libc::ENODATA));
    }
    // SAFETY: the descriptor was just made, and has no other owner.
    let process = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut wanted = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // It can be read from when it has ended.
    // SAFETY: one descriptor, and the structure lives as long as the call.
    unsafe { libc::poll(&mut wanted, 1, 0) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_known_by_its_number() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = Process::of(Peer { pid, user: 7 });
        assert_eq!((found.pid, found.user), (pid, 7));
        assert!(!found.command.is_empty() && found.net > 0, "{found:?}");
        let nobody = Process::of(Peer { pid: 0, user: 7 });
        assert_eq!((nobody.command.as_str(), nobody.net, nobody.cgroup.as_str()), ("", 0, ""));
        assert_eq!(nobody.again().as_ref(), Some(&nobody));
    }

    #[test]
    fn a_later_look_is_at_the_same_process_or_at_none() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let peer = Peer { pid: i32::try_from(child.id()).unwrap(), user: 4711 };
        let found = Process::of(peer);
        // SAFETY: the call takes nothing and cannot fail.
        let user = unsafe { libc::geteuid() };
        assert_eq!(found.again(), Some(Process { user, ..found.clone() }));
        let Since::Ticks(ticks) = found.since else { panic!("{found:?}") };
        let of_before = Process { since: Since::Ticks(ticks - 1), ..found.clone() };
        assert_eq!(of_before.again(), None, "its number is another's now");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.again(), None);
        assert_eq!(Process::of(peer).since, Since::Gone);
    }

    #[test]
    fn a_name_does_not_look_like_the_fields_behind_it() {
        let fields = (4..=22).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        for name in ["it", "a b", ") S 1 1", ") Z"] {
            assert_eq!(ticks(&format!("1 ({name}) S {fields} 23\n")), Some(22));
        }
        assert_eq!(ticks(&format!("1 (it) Z {fields}")), None);
        assert_eq!((ticks(""), ticks("1 (it) S 4 5")), (None, None));
    }
}
