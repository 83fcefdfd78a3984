// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a process to its end, with a time limit, and measures its cost.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Result of a process.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub printed: String,
    /// Time from start to end, in seconds.
    pub seconds: f64,
    /// Processor time of the process and of the children it waited for, in seconds.
    pub processor_seconds: f64,
    /// Whether it was killed at its time limit.
    pub is_late: bool,
}

/// Runs a command as the leader of a process group. Processes left in the group when the leader
/// ends are killed.
///
/// # Errors
/// It cannot be started, or its output file cannot be used.
pub fn run(command: &mut Command, output: &Path, patience: Duration) -> io::Result<Ended> {
    let file = File::create(output)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
    let begin = Instant::now();
    let child = command.spawn()?;
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let (ended, has_ended) = channel::<()>();
    let guard = thread::spawn(move || {
        let is_late = has_ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        if is_late {
            kill_group(pid);
        }
        is_late
    });
    let waited = wait(pid);
    let seconds = begin.elapsed().as_secs_f64();
    kill_group(pid);
    drop(ended);
    let is_late = guard.join().unwrap_or(false);
    let (status, processor_seconds) = waited?;
    let printed = String::from_utf8_lossy(&fs::read(output)?).into_owned();
    fs::remove_file(output)?;
    Ok(Ended { status, printed, seconds, processor_seconds, is_late })
}

fn wait(pid: libc::pid_t) -> io::Result<(ExitStatus, f64)> {
    let mut status = 0;
    // SAFETY: zero is a valid value of each field.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to variables that outlive the call.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok((ExitStatus::from_raw(status), seconds(usage.ru_utime) + seconds(usage.ru_stime)))
}

fn kill_group(leader: libc::pid_t) {
    // SAFETY: the call takes no pointer. The group keeps its number as long as a process is in it.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

/// Waits for processes whose parents have ended: otherwise a test that waits for one to disappear
/// would wait for ever.
pub fn reap_orphans() {
    for pid in orphans() {
        // SAFETY: the status pointer may be null; only the runner's main thread waits for these
        // children.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// Kills processes that tests started and left behind. Returns their PIDs and command lines.
pub fn end_orphans() -> Vec<String> {
    reap_orphans();
    let end = |pid: libc::pid_t| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        // SAFETY: the call takes no pointer, and this child is not waited for yet.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        format!("{pid} {}", words.trim())
    };
    orphans().into_iter().map(end).collect()
}

/// Returns the children of the main thread. Jobs are children of the threads that wait for them, so
/// these are orphans.
fn orphans() -> Vec<libc::pid_t> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let children = fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().filter_map(|it| it.parse().ok()).collect()
}

/// Makes the runner the parent of processes whose own parents end.
///
/// # Errors
/// An error of the kernel.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    let set = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str, patience: Duration) -> Ended {
        let name = format!("freeport-process-{}-{}", std::process::id(), text.len());
        let mut command = Command::new("sh");
        run(command.args(["-c", text]), &std::env::temp_dir().join(name), patience)
            .expect("every system has a shell")
    }

    #[test]
    fn status_and_output_are_those_of_the_process() {
        let ended = shell("echo one; echo two >&2; exit 3", Duration::from_secs(600));
        assert_eq!((ended.status.code(), ended.printed.as_str()), (Some(3), "one\ntwo\n"));
        assert!(!ended.is_late);
    }

    #[test]
    fn what_does_not_end_is_killed_with_its_children() {
        let ended = shell("sleep 1000 & echo $!; wait; true", Duration::from_millis(300));
        assert!(ended.is_late && !ended.status.success());
        let child = ended.printed.trim().to_owned();
        // It may exist for a moment, until its new parent has waited for it.
        let state = || fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z")) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
