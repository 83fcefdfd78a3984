// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of one measurement: forked, pinned to a core each, and killed when the bench exits
//! for any reason.

use super::shared::{Atomics, Shared};
use crate::harness::machine::pin_to;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Maximum length of an error message that is kept.
const REASON_BYTES: usize = 256;

/// The error message of a process that fails.
pub struct Reason([AtomicU8; REASON_BYTES]);

impl Reason {
    /// Records the message, truncated to the available space.
    pub fn say(&self, text: &str) {
        for (to, from) in self.0.iter().zip(text.bytes()) {
            to.store(from, Ordering::Release);
        }
    }

    /// Returns the message; empty if there is none.
    pub fn said(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().map(|it| it.load(Ordering::Acquire)).collect();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
    }
}

// SAFETY: all fields are atomic numbers.
unsafe impl Atomics for Reason {}

/// Processes that run concurrently.
#[derive(Default)]
pub struct Processes {
    running: Vec<Process>,
}

struct Process {
    name: &'static str,
    id: libc::pid_t,
    /// A pidfd, by which one can wait for its end together with others and with a timeout.
    handle: OwnedFd,
    reason: Shared<Reason>,
}

impl Processes {
    /// Forks a process that is pinned to `core`, does `work` and exits. It has a copy of what
    /// `work` uses and returns results only by shared memory. [`finish`](Self::finish) reports its
    /// error.
    ///
    /// # Errors
    /// The process cannot be forked.
    pub fn start<E: Display>(
        &mut self,
        name: &'static str,
        core: usize,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<()> {
        let reason = Shared::<Reason>::new()?;
        // SAFETY: the call returns a number.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child uses nothing that another thread may hold: it allocates memory from
        // glibc, which supports that after a fork.
        let id = unsafe { libc::fork() };
        match id {
            -1 => Err(io::Error::last_os_error()).context("a process cannot be forked"),
            0 => become_child(parent, core, &reason, work),
            id => {
                self.running.push(Process { name, id, handle: handle(id)?, reason });
                Ok(())
            }
        }
    }

    /// Waits until all have exited. If one fails, the others are killed.
    ///
    /// # Errors
    /// The first failure, or the time limit was exceeded.
    pub fn finish(mut self, within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        while !self.running.is_empty() {
            let at = self.next_end(deadline)?;
            self.running.swap_remove(at).result()?;
        }
        Ok(())
    }

    /// Waits until one of them exits; returns its index.
    fn next_end(&self, deadline: Instant) -> Result<usize> {
        let poll = |it: &Process| libc::pollfd {
            fd: it.handle.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut handles: Vec<libc::pollfd> = self.running.iter().map(poll).collect();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left_ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
            // SAFETY: an array of that many elements, which outlives the call.
            let ready = unsafe { libc::poll(handles.as_mut_ptr(), handles.len() as _, left_ms) };
            if let Some(at) = handles.iter().position(|it| it.revents != 0) {
                return Ok(at);
            }
            ensure!(
                ready != 0,
                "no process exited within {left:?}: bytes were lost, or a process sleeps"
            );
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &self.running {
            // SAFETY: the child has not been waited for, so its ID has not been reused.
            unsafe { libc::kill(process.id, libc::SIGKILL) };
            // SAFETY: the status pointer is null, so nothing is written.
            unsafe { libc::waitpid(process.id, std::ptr::null_mut(), 0) };
        }
    }
}

impl Process {
    /// Reaps a process that has exited and returns its result.
    fn result(self) -> Result<()> {
        let mut status = 0;
        // SAFETY: the child has not been waited for; the status is written to a number.
        let ended = unsafe { libc::waitpid(self.id, &mut status, 0) };
        ensure!(ended == self.id, "{} cannot be waited for", self.name);
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
            return Ok(());
        }
        match self.reason.said().as_str() {
            "" => bail!("{} ended with status {status:#x}", self.name),
            reason => bail!("{}: {reason}", self.name),
        }
    }
}

/// Runs in the forked process; never returns to the parent's code.
fn become_child<E: Display>(
    parent: libc::pid_t,
    core: usize,
    reason: &Reason,
    work: impl FnOnce() -> Result<(), E>,
) -> ! {
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // Finds that the parent exited before the previous call.
    // SAFETY: no memory is passed, and it cannot fail.
    let is_orphan = unsafe { libc::getppid() } != parent;
    let all = || match () {
        () if is_orphan => Some("the bench has exited".into()),
        () if !pin_to(core) => Some(format!("core {core} cannot be used")),
        () => work().err().map(|error| format!("{error:#}")),
    };
    let panicked = |_| Some("it panicked".into());
    let failed: Option<String> = catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(panicked);
    reason.say(failed.as_deref().unwrap_or_default());
    // SAFETY: exits at once, and runs no exit handlers of the parent.
    unsafe { libc::_exit(i32::from(failed.is_some())) }
}

/// Returns a pidfd of a child, which becomes readable when the child exits.
pub fn handle(id: libc::pid_t) -> Result<OwnedFd> {
    // SAFETY: the call takes numbers and returns a new descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    ensure!(descriptor >= 0, "a child process cannot be watched");
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn core() -> usize {
        crate::harness::machine::allowed_cores()[0]
    }

    fn sleep() -> Result<(), String> {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    #[test]
    fn what_a_process_writes_is_there_when_it_has_ended() {
        let cell = Shared::<AtomicU64>::new().expect("memory");
        let mut processes = Processes::default();
        let work = || {
            cell.fetch_add(7, Ordering::Relaxed);
            Ok::<(), String>(())
        };
        processes.start("one", core(), work).expect("a process");
        processes.start("two", core(), work).expect("a process");
        processes.finish(Duration::from_secs(60)).expect("both end well");
        assert_eq!(cell.load(Ordering::Relaxed), 14);
    }

    #[test]
    fn one_that_fails_ends_the_others_and_says_why() {
        let mut processes = Processes::default();
        processes.start("sleeper", core(), sleep).expect("a process");
        let sleeper = processes.running[0].id;
        // Not an error type that captures a backtrace: in the child of a multi-threaded process,
        // the lock for that may be held by a thread that no longer exists.
        processes.start("other", core(), || Err("no luck")).expect("a process");
        let error = processes.finish(Duration::from_secs(60)).expect_err("one failed");
        assert_eq!(error.to_string(), "other: no luck");
        // SAFETY: signal 0 only checks whether the process exists.
        assert_eq!(unsafe { libc::kill(sleeper, 0) }, -1, "it is gone");
    }

    #[test]
    fn one_that_hangs_is_given_up() {
        let mut processes = Processes::default();
        processes.start("sleeper", core(), sleep).expect("a process");
        assert!(processes.finish(Duration::from_millis(20)).is_err());
    }
}
