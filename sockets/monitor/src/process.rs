// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Identity of a member: what the kernel reports about the process that made its connection.
//!
//! The kernel reuses PIDs. So a process is identified by its PID and start time, which no later
//! process shares. The first inspection concerns the process that made the connection, as long as
//! it is alive; each later one reads what may have changed, and the start time last: if that is
//! unchanged, everything read belongs to the same process. A pidfd would do as well, but would cost
//! the monitor a descriptor per member.

use crate::socket::Peer;
use crate::text::{decoded, printable_bytes};
use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// `SO_PEERPIDFD` of the kernel, since 6.5.
const PEER_PROCESS: i32 = 77;

/// A process, as far as the rules and users need to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// PID; 0 if the process is in no PID namespace that is visible from here.
    pub pid: i32,
    /// Its user.
    pub user: u32,
    /// Name of its program, made printable.
    pub command: String,
    /// Inode of its network namespace, as in `/proc/PID/ns/net`; 0 if unknown.
    pub net: u64,
    /// Control group; empty if unknown.
    pub cgroup: String,
    /// Start time, to distinguish it from a later process with the same PID.
    pub since: Since,
}

/// Start time of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Since {
    /// Ticks since the machine started.
    Ticks(u64),
    /// It cannot be inspected: only what came with its connection is known.
    Hidden,
    /// It exited before it could be inspected.
    Gone,
}

impl Process {
    /// Inspects the process that made a connection.
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

    /// As [`of`](Self::of), for a connection: if its process has exited, its PID may already belong
    /// to another process, from which nothing is taken.
    pub fn of_connection(connection: BorrowedFd<'_>, peer: Peer) -> Self {
        let process = Self::of(peer);
        if peer.pid == 0 || !is_gone(connection) {
            return process;
        }
        let (command, cgroup) = (String::new(), String::new());
        Self { command, cgroup, net: 0, since: Since::Gone, ..process }
    }

    /// Returns the process in its present state, with a changed user, namespace or control group.
    /// `None` if it has exited.
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

/// Names of processes and groups need not be UTF-8.
fn bytes(pid: i32, name: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

fn net(pid: i32) -> u64 {
    fs::metadata(format!("/proc/{pid}/ns/net")).map_or(0, |it| it.ino())
}

fn cgroup(pid: i32) -> String {
    let groups = decoded(&bytes(pid, "cgroup"));
    // The unified hierarchy is on the line with number 0.
    groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned()
}

/// Returns the effective user, as connections report it.
fn user(pid: i32) -> Option<u32> {
    let status = decoded(&bytes(pid, "status"));
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the name without the newline that the kernel adds.
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

/// Returns the start time in a line of `/proc/PID/stat`: the 22nd field; the second, the name, may
/// contain anything. `None` if the process has exited.
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

/// Returns whether the kernel reports that the process which made a connection has exited. Older
/// kernels report nothing, nor does one without a free descriptor.
fn is_gone(connection: BorrowedFd<'_>) -> bool {
    let mut descriptor = -1_i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    let (socket, value) = (connection.as_raw_fd(), (&raw mut descriptor).cast());
    // SAFETY: there is room for the answer, and `length` is its size.
    let result =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, PEER_PROCESS, value, &mut length) };
    if result != 0 {
        let error = io::Error::last_os_error().raw_os_error();
        return matches!(error, Some(libc::ESRCH | libc::EINVAL | libc::ENODATA));
    }
    // SAFETY: the descriptor is new and has no other owner.
    let process = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut wanted = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // A pidfd is readable when its process has exited.
    // SAFETY: one descriptor, and the structure outlives the call.
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
