// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of one measurement: forked, kept on a core each, and gone when it ends, however
//! it ends.

use super::shared::{Atomics, Shared};
use crate::harness::machine::pin_to;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How much of the reason for a failure is kept.
const REASON_BYTES: usize = 256;

/// What a process says before it fails.
pub struct Reason([AtomicU8; REASON_BYTES]);

impl Reason {
    /// Says it, or as much as there is room for.
    pub fn say(&self, text: &str) {
        for (to, from) in self.0.iter().zip(text.bytes()) {
            to.store(from, Ordering::Release);
        }
    }

    /// What was said; empty if nothing was.
    pub fn said(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().map(|it| it.load(Ordering::Acquire)).collect();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
    }
}

// SAFETY: nothing but atomic numbers.
unsafe impl Atomics for Reason {}

/// Processes that run at once.
#[derive(Default)]
pub struct Processes {
    running: Vec<Process>,
}

struct Process {
    name: &'static str,
    id: libc::pid_t,
    /// By which one can wait for its end, with others and for a limited time.
    handle: OwnedFd,
    reason: Shared<Reason>,
}

impl Processes {
    /// Forks a process that stays on `core`, does `work` and exits. What `work` uses is as it is
    /// now; it gives something back only by shared memory. What it fails with is told by
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// The system lets it have no more processes.
    pub fn start<E: Display>(
        &mut self,
        name: &'static str,
        core: usize,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<()> {
        let reason = Shared::<Reason>::new()?;
        // SAFETY: a plain number.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child uses nothing that another thread may hold: memory is allocated by
        // glibc, which is ready for that.
        let id = unsafe { libc::fork() };
        match id {
            -1 => Err(io::Error::last_os_error()).context("no process can be forked"),
            0 => become_child(parent, core, &reason, work),
            id => {
                self.running.push(Process { name, id, handle: handle(id)?, reason });
                Ok(())
            }
        }
    }

    /// Waits until all have ended. When one fails the others are ended too.
    ///
    /// # Errors
    /// The first failure, or that they did not end within the time.
    pub fn finish(mut self, within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        while !self.running.is_empty() {
            let at = self.next_end(deadline)?;
            self.running.swap_remove(at).result()?;
        }
        Ok(())
    }

    /// Waits for the end of one of them; gives which.
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
            // SAFETY: an array of that many, which outlives the call.
            let ready = unsafe { libc::poll(handles.as_mut_ptr(), handles.len() as _, left_ms) };
            if let Some(at) = handles.iter().position(|it| it.revents != 0) {
                return Ok(at);
            }
            ensure!(ready != 0, "no end after {left:?}: bytes were lost, or somebody sleeps");
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &self.running {
            // SAFETY: a child that was not yet waited for, so the number is still its own.
            unsafe { libc::kill(process.id, libc::SIGKILL) };
            // SAFETY: null asks for no status, so nothing is written.
            unsafe { libc::waitpid(process.id, std::ptr::null_mut(), 0) };
        }
    }
}

impl Process {
    /// Takes the exit of one that has ended.
    fn result(self) -> Result<()> {
        let mut status = 0;
        // SAFETY: as above; the status is a number.
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

/// What the forked process does; it never returns to what its parent was doing.
fn become_child<E: Display>(
    parent: libc::pid_t,
    core: usize,
    reason: &Reason,
    work: impl FnOnce() -> Result<(), E>,
) -> ! {
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // A parent that died before that call is found by this one.
    // SAFETY: no memory is passed, and it cannot fail.
    let is_orphan = unsafe { libc::getppid() } != parent;
    let all = || match () {
        () if is_orphan => Some("the bench has ended".into()),
        () if !pin_to(core) => Some(format!("core {core} cannot be used")),
        () => work().err().map(|error| format!("{error:#}")),
    };
    let panicked = |_| Some("it panicked".into());
    let failed: Option<String> = catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(panicked);
    reason.say(failed.as_deref().unwrap_or_default());
    // SAFETY: ends at once, and runs nothing that was meant for the parent's end.
    unsafe { libc::_exit(i32::from(failed.is_some())) }
}

/// A descriptor of a child, which can be read when it has ended.
pub fn handle(id: libc::pid_t) -> Result<OwnedFd> {
    // SAFETY: numbers in, a new descriptor out.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    ensure!(descriptor >= 0, "a process of our own cannot be watched");
    // SAFETY: new, and nobody else's.
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
        // No error type that looks at the stack: in the child of a process with other threads,
        // whoever holds the lock for that is gone.
        processes.start("other", core(), || Err("no luck")).expect("a process");
        let error = processes.finish(Duration::from_secs(60)).expect_err("one failed");
        assert_eq!(error.to_string(), "other: no luck");
        // SAFETY: asks only whether there is such a process.
        assert_eq!(unsafe { libc::kill(sleeper, 0) }, -1, "it is gone");
    }

    #[test]
    fn one_that_hangs_is_given_up() {
        let mut processes = Processes::default();
        processes.start("sleeper", core(), sleep).expect("a process");
        assert!(processes.finish(Duration::from_millis(20)).is_err());
    }
}
