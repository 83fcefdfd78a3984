// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes and threads: whether they sleep, for how long they have run, and signals that stop and
//! continue them.

use std::fs;
use std::io;
use std::time::Duration;

use crate::wait_until;

/// Returns whether a thread of this process sleeps, in a call or on a lock.
pub fn sleeps(thread: i32) -> bool {
    is_in(&format!("/proc/self/task/{thread}"), "S")
}

/// Returns whether all threads of a process sleep.
pub fn all_sleep(pid: i32) -> bool {
    all_are(pid, "S")
}

/// Returns whether all threads of a process are in a state.
fn all_are(pid: i32, state: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let is_so = |thread: fs::DirEntry| is_in(&thread.path().to_string_lossy(), state);
    let mut states = threads.map(is_so).peekable();
    states.peek().is_some() && states.all(|is_so| is_so)
}

fn is_in(folder: &str, state: &str) -> bool {
    // The state follows the name, which is in parentheses.
    let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().next() == Some(state)
}

/// Returns the processor time of all living threads of a process. It does not depend on other load.
///
/// # Panics
/// If the kernel does not report it.
pub fn processor_time(pid: i32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |folder: fs::DirEntry| {
        // A thread may end in the meantime.
        let reported = fs::read_to_string(folder.path().join("schedstat")).ok()?;
        let nanoseconds = reported.split_whitespace().next().expect("the time comes first");
        Some(Duration::from_nanos(nanoseconds.parse().expect("it is a number")))
    };
    let times: Vec<Duration> = threads.filter_map(of_thread).collect();
    assert!(!times.is_empty(), "there is no time of the process {pid}");
    times.into_iter().sum()
}

/// Stops all threads of a process, and returns when they have stopped: `SIGSTOP`.
///
/// # Panics
/// If there is no such process, or it belongs to another user.
pub fn pause(pid: i32) {
    signal(pid, libc::SIGSTOP);
    wait_until("all threads have stopped", || all_are(pid, "T"));
}

/// Continues a process that was stopped: `SIGCONT`.
///
/// # Panics
/// As [`pause`].
pub fn resume(pid: i32) {
    signal(pid, libc::SIGCONT);
}

fn signal(pid: i32, number: libc::c_int) {
    // SAFETY: the call takes no pointer.
    let result = unsafe { libc::kill(pid, number) };
    assert_eq!(result, 0, "process {pid}: {}", io::Error::last_os_error());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_thread_that_waits_sleeps_and_this_one_does_not() {
        let (tell, reported) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let waits = thread::spawn(move || {
            // SAFETY: the call takes nothing and cannot fail.
            tell.send(unsafe { libc::gettid() }).expect("somebody listens");
            ended.recv().expect_err("nothing is sent");
        });
        let thread = reported.recv().expect("it is told");
        wait_until("the thread sleeps", || sleeps(thread));
        // SAFETY: as above.
        assert!(!sleeps(unsafe { libc::gettid() }));
        assert!(!all_sleep(std::process::id() as i32));
        drop(end);
        waits.join().expect("it ends well");
        assert!(!sleeps(thread), "it is gone");
    }

    #[test]
    fn who_computes_uses_processor_time() {
        let pid = std::process::id() as i32;
        let before = processor_time(pid);
        wait_until("it is counted", || {
            std::hint::black_box((0..1_000_000u64).sum::<u64>());
            processor_time(pid) >= before + Duration::from_millis(1)
        });
    }

    #[test]
    fn a_process_is_paused_and_continues() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat starts");
        let pid = child.id() as i32;
        pause(pid);
        drop(child.stdin.take());
        assert!(child.try_wait().expect("it is ours").is_none(), "it is stopped");
        resume(pid);
        assert!(child.wait().expect("it is ours").success());
    }
}
