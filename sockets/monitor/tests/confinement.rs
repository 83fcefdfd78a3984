// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations that a process confined like a monitor can no longer do, and those it still can.

use crate::harness::{is_root, while_forking};
use freeport_monitor::confinement::{NEEDED, Rights, confine};
use freeport_testbed::skip;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `work` in a confined child, and returns its exit status.
fn in_a_confined_child(work: impl FnOnce() -> bool) -> i32 {
    let _forks = while_forking();
    // SAFETY: the child runs only this code and exits; the C library's memory is usable after a
    // fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let is_good = confine().is_ok() && work();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(if is_good { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: there is room for the status of our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    status
}

fn ends_well(status: i32) -> bool {
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn is_filtered() -> bool {
    ends_well(in_a_confined_child(|| Rights::of(std::process::id()).unwrap().is_filtered))
}

/// Returns whether a call without arguments fails with this error.
fn fails(call: libc::c_long, error: i32) -> bool {
    let none: libc::c_ulong = 0;
    // SAFETY: none of the calls made here acts on zeroes.
    let result = unsafe { libc::syscall(call, none, none, none, none, none) };
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(error)
}

#[test]
fn rights_that_are_not_needed_are_gone_for_good() {
    let status = in_a_confined_child(|| {
        let needed = NEEDED.iter().fold(0_u64, |set, it| set | 1 << it.number);
        let rights = Rights::of(std::process::id()).unwrap();
        rights.effective & !needed == 0
            && rights.no_new_privileges
            && (!is_root() || rights.bounding & !needed == 0)
    });
    assert!(ends_well(status), "{status:x}");
}

/// Rules with `net` need this, and one capability is enough for it.
#[test]
fn namespaces_of_other_users_are_still_seen() {
    let here = Rights::of(std::process::id()).unwrap();
    if !is_root() || !NEEDED.iter().all(|it| here.has(*it)) {
        return skip("only root, with all its rights, sees those of other users");
    }
    let mut other = Command::new("cat");
    let mut other = other.uid(65_534).stdin(Stdio::piped()).spawn().unwrap();
    let namespace = format!("/proc/{}/ns/net", other.id());
    let status = in_a_confined_child(|| std::fs::metadata(namespace).is_ok());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(ends_well(status), "{status:x}");
}

#[test]
fn calls_that_lead_out_of_the_process_fail() {
    if !is_filtered() {
        return skip("this kernel filters no system calls");
    }
    let status = in_a_confined_child(|| {
        let refused = [
            libc::SYS_mount,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_setuid,
            libc::SYS_keyctl,
            libc::SYS_io_uring_setup,
            // Without the flag for a thread: a process.
            libc::SYS_clone,
        ];
        refused.into_iter().all(|call| fails(call, libc::EPERM))
            && fails(libc::SYS_clone3, libc::ENOSYS)
    });
    assert!(ends_well(status), "{status:x}");
}

#[test]
fn calls_that_no_mistake_explains_end_the_process() {
    if !is_filtered() {
        return skip("this kernel filters no system calls");
    }
    for call in [libc::SYS_execve, libc::SYS_ptrace, libc::SYS_bpf, libc::SYS_pidfd_getfd] {
        let status = in_a_confined_child(|| !fails(call, libc::EPERM));
        let is_killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS;
        assert!(is_killed, "{call}: {status:x}");
    }
}

#[test]
fn a_monitor_can_do_its_work() {
    let status = in_a_confined_child(|| {
        let thread = std::thread::Builder::new().spawn(|| UnixStream::pair().is_ok());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        thread.is_ok_and(|it| it.join().unwrap())
            && client.is_ok()
            && std::fs::read("/proc/1/cgroup").is_ok()
    });
    assert!(ends_well(status), "{status:x}");
}
