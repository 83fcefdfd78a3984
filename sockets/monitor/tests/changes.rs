// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process may change after it has become a member: the rules apply to its state when a
//! connection is to be accelerated, and not to a later process with the same PID.

use crate::harness::{
    self, Member, NOBODY, Running, connection, eventually, is_root, outcome, patient,
};
use freeport_monitor::{Policy, socket};
use freeport_sockets_proto::message::{BYTES, Reply, Request};
use freeport_sockets_proto::{Reason, VERSION};
use freeport_testbed::skip;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Starts a monitor with these rules.
fn running(rules: &str) -> Running {
    let policy = Policy::parse(rules).unwrap();
    Running::new(freeport_monitor::Options { policy, ..patient() })
}

#[test]
fn rules_are_about_the_user_that_a_process_has_now() {
    if !is_root() {
        return skip("only root has processes of two users");
    }
    let running = running("deny user 65534");
    let (one, other) = (running.member(), running.member());
    assert_eq!(outcome(&one, &other), None);
    other.become_user(NOBODY);
    assert_eq!(outcome(&one, &other), Some(Reason::Policy));
    // Its existing connection is recalled.
    let recalled = running.control().recall().unwrap();
    assert_eq!(recalled["pending"], 1, "{recalled}");
    running.control().put_rule("allow user 65534 with user 0").unwrap();
    assert_eq!(outcome(&one, &other), None);
}

/// A control group for one test, removed on drop.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = mounts.find(|words| words.get(2) == Some(&"cgroup2"))?;
        let path = Path::new(mount[1]).join(format!("freeport-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    fn enter(&self, pid: i32) -> bool {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).is_ok()
    }
}

/// Returns the control group of a process, as rules see it.
fn group_of(pid: i32) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    groups.lines().find_map(|line| Some(line.strip_prefix("0::")?.to_owned()))
}

impl Drop for Group {
    fn drop(&mut self) {
        // Killed processes remain in it for a moment.
        eventually("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
#[ignore = "long: takes a control group, which not every machine gives"]
fn rules_are_about_the_control_group_that_a_process_is_in_now() {
    let Some(group) = Group::new() else {
        return skip("no control group can be made");
    };
    let running = running("");
    let (one, other) = (running.member(), running.member());
    // The name of the group is read from a process in it.
    let third = running.member();
    if !group.enter(third.pid) {
        return skip("a process cannot be moved to another control group");
    }
    let name = group_of(third.pid).expect("it is in one");
    running.control().put_rule(&format!("deny cgroup {name}")).unwrap();
    assert_eq!(outcome(&one, &other), None);
    assert!(group.enter(other.pid));
    assert_eq!(outcome(&one, &other), Some(Reason::Policy));
    // Processes leave it before it is removed.
    drop((other, third));
}

fn claim(member: BorrowedFd<'_>, token: u64, shown: BorrowedFd<'_>) -> Reply {
    let claim = Request::Claim { token, descriptor: 7, inherited: false };
    socket::send(member, &claim.encode(), &[shown]).unwrap();
    harness::await_readable(member);
    let mut bytes = [0; BYTES];
    socket::receive(member, &mut bytes).unwrap();
    Reply::decode(&bytes).unwrap()
}

/// If a process holds the connection of a process that has exited, the rules apply neither to it
/// nor to a later process with that PID.
#[test]
fn the_connection_of_a_process_that_is_gone_passes_no_rules() {
    let mut orphan = None;
    let running = Running::after(|location| {
        orphan = Some(Member::silent(location.path(), None).without_process());
    });
    running.control().put_rule("allow user 0").unwrap();
    let orphan = orphan.expect("it has connected");
    let hello = Request::Hello { version: VERSION, membarrier: true };
    socket::send(orphan.as_fd(), &hello.encode(), &[]).unwrap();
    harness::await_readable(orphan.as_fd());
    socket::receive(orphan.as_fd(), &mut [0; BYTES]).unwrap();
    let other = running.member();
    let ends = connection("127.0.0.1:0");
    other.claim(2, ends.1.as_fd());
    let refused = Reply::Refused { token: 1, reason: Reason::Policy };
    assert_eq!(claim(orphan.as_fd(), 1, ends.0.as_fd()), refused);
    // If no rule depends on the process, it need not be known.
    running.control().remove_rule(1).unwrap();
    let ends = connection("127.0.0.1:0");
    other.hear();
    other.claim(3, ends.1.as_fd());
    let paired = claim(orphan.as_fd(), 4, ends.0.as_fd());
    assert!(matches!(paired, Reply::Paired { .. }), "{paired:?}");
}
