// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who a member is: what the kernel says of the process at the other end of its socket.

use crate::socket::Peer;
use crate::text::{decoded, printable_bytes};
use std::fs;
use std::os::unix::fs::MetadataExt;

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
}

impl Process {
    /// What is known of who made a connection.
    pub fn of(peer: Peer) -> Self {
        let file = |name| format!("/proc/{}/{name}", peer.pid);
        // Whoever names a process or a group need not write UTF-8.
        let bytes = |name| fs::read(file(name)).unwrap_or_default();
        // The unified hierarchy is the line of number 0.
        let groups = decoded(&bytes("cgroup"));
        let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        Self {
            pid: peer.pid,
            user: peer.user,
            command: printable_bytes(named(&bytes("comm"))),
            net: fs::metadata(file("ns/net")).map_or(0, |it| it.ino()),
            cgroup: group.to_owned(),
        }
    }
}

/// The name without the end of its line, which the kernel adds.
fn named(comm: &[u8]) -> &[u8] {
    comm.strip_suffix(b"\n").unwrap_or(comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = Process::of(Peer { pid, user: 7 });
        assert_eq!((found.pid, found.user), (pid, 7));
        assert!(!found.command.is_empty() && found.net > 0, "{found:?}");
        let nobody = Process::of(Peer { pid: 0, user: 7 });
        assert_eq!((nobody.command.as_str(), nobody.net, nobody.cgroup.as_str()), ("", 0, ""));
    }
}
