// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resources that a server and its monitor hold for their peers, and must release after those have
//! exited.

use super::Server;
use crate::harness::{Node, wait_until};
use std::fs;

/// Number of equal observations that count as stable.
const LOOKS: u32 = 5;

/// Numbers of descriptors of both processes, and of the monitor's members and slabs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holding {
    descriptors: [usize; 2],
    members: u64,
    slabs: u64,
}

impl Holding {
    fn now(server: &Server) -> Self {
        let monitor = server.node.monitor_pid().expect("the monitor answers");
        let stats = server.node.stats();
        let number = |name: &str| stats[name].as_u64().expect("a number");
        let pid = server.program.pid();
        Self {
            descriptors: [pid, monitor].map(descriptors),
            members: number("members"),
            slabs: number("slabs"),
        }
    }

    /// The resources, once they are stable.
    pub fn settled(server: &Server) -> Self {
        let (mut last, mut same) = (Self::now(server), 0);
        wait_until("nothing changes any more", || {
            let now = Self::now(server);
            same = if now == last { same + 1 } else { 0 };
            last = now;
            same >= LOOKS
        });
        last
    }

    /// Waits until the resources are these again, and the server has no slab mapped.
    pub fn is_reached_again(&self, server: &Server) {
        let mut last = None;
        wait_until("what peers had is given back", || {
            let now = (Self::now(server), mapped(server.program.pid()));
            let is_reached = now == (self.clone(), 0);
            if !is_reached && last.as_ref() != Some(&now) {
                println!("{now:?}, before {self:?}");
                last = Some(now);
            }
            is_reached
        });
    }
}

/// Number of descriptors of a process.
pub fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("it may be looked at").count()
}

/// Number of slabs that it has mapped.
fn mapped(pid: i32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it may be looked at");
    maps.lines().filter(|line| line.contains("/memfd:freeport-slab")).count()
}

/// Runs an action as another user, as far as the kernel reports to others, if this process is root.
/// Only this thread is affected.
pub fn as_another_user<T>(deed: impl FnOnce() -> T) -> T {
    const NOBODY: u32 = 65_534;
    const SAME: u32 = u32::MAX;
    // The raw system call, since the C library would change all threads.
    // SAFETY: no memory is passed.
    let become_user = |user: u32| unsafe { libc::syscall(libc::SYS_setresuid, SAME, user, SAME) };
    // SAFETY: it has no arguments.
    let user = unsafe { libc::geteuid() };
    if user == 0 {
        assert_eq!(become_user(NOBODY), 0);
    }
    let result = deed();
    if user == 0 {
        assert_eq!(become_user(user), 0);
    }
    result
}

/// A connection to the monitor as another user.
pub fn member(node: &Node) -> super::attacker::Member {
    as_another_user(|| super::attacker::Member::new(node))
}
