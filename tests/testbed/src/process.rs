// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of processes and threads as the kernel reports it: whether they sleep, and for how long
//! they have run.

use std::fs;
use std::time::Duration;

/// Returns whether a thread of this process sleeps, in a call or on a lock.
pub fn sleeps(thread: i32) -> bool {
    is_asleep(&format!("/proc/self/task/{thread}"))
}

/// Returns whether all threads of a process sleep.
pub fn all_sleep(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.map(|thread| is_asleep(&thread.path().to_string_lossy())).peekable();
    states.peek().is_some() && states.all(|is_asleep| is_asleep)
}

fn is_asleep(folder: &str) -> bool {
    // The state follows the name, which is in parentheses.
    let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S "))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_until;
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
}
