// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs started by the bench: pinned to cores, with their output in a file and their processor
//! time counted, and terminated when the bench exits.

use crate::between::processes::handle;
use crate::harness::machine::pin_to_any;
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time for a program to exit after SIGTERM.
const ENDING: Duration = Duration::from_secs(3);
/// Interval between two polls of a program.
const LOOKING: Duration = Duration::from_millis(2);

/// A running program. When this is dropped it gets SIGTERM, and SIGKILL if it does not exit.
pub struct Program {
    name: String,
    id: libc::pid_t,
    /// A pidfd, by which one can wait for its end.
    handle: OwnedFd,
    output: PathBuf,
}

/// A program that has exited.
pub struct Ended {
    /// Its output.
    pub output: String,
    /// Processor time that it used.
    pub processor_time: Duration,
}

impl Program {
    /// Starts a program on any of `cores`, or on all if that is empty; its output goes to the file
    /// `output`.
    ///
    /// # Errors
    /// The program does not exist or cannot be run.
    pub fn start(name: &str, mut command: Command, cores: &[usize], output: &Path) -> Result<Self> {
        let file = File::create(output)
            .context("the file for the output of a program cannot be created")?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let cores = cores.to_vec();
        let prepare = move || {
            // SAFETY: no memory is passed.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
            let is_placed = cores.is_empty() || pin_to_any(&cores);
            if is_placed { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec, only system calls are made; nothing is allocated.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().with_context(|| format!("{name} cannot be run"))?;
        let id = child.id() as libc::pid_t;
        Ok(Self { name: name.into(), id, handle: handle(id)?, output: output.into() })
    }

    /// Waits until it exits.
    ///
    /// # Errors
    /// The program fails, or does not exit in time.
    pub fn finish(mut self, within: Duration) -> Result<Ended> {
        let name = self.name.clone();
        ensure!(self.has_ended(within), "{name} has not exited within {within:?}: {}", self.said());
        let (status, processor_time) = self.reap()?;
        let output = self.said();
        ensure!(status.success(), "{name} failed, {status}: {}", last_lines(&output));
        Ok(Ended { output, processor_time })
    }

    /// Returns its output so far.
    pub fn said(&self) -> String {
        let bytes = std::fs::read(&self.output).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the processor time of the program and its descendants.
    pub fn processor_time(&self) -> Duration {
        family(self.id).into_iter().map(processor_time).sum()
    }

    /// Returns the memory of the program and its descendants (PSS, in which shared memory counts in
    /// part).
    pub fn resident_bytes(&self) -> u64 {
        family(self.id).into_iter().map(resident_bytes).sum()
    }

    /// Returns how it has exited by itself, if it has.
    pub fn end(&self) -> Option<String> {
        // SAFETY: a plain structure, for which zero is a value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let id = libc::id_t::try_from(self.id).ok()?;
        // SAFETY: the call writes to the given place; the child can be waited for again.
        let found = unsafe { libc::waitid(libc::P_PID, id, &mut info, options) };
        // SAFETY: filled for a child, or still zero if it runs; the field is a number.
        let pid = unsafe { info.si_pid() };
        // SAFETY: as above.
        let status = unsafe { info.si_status() };
        if found != 0 || pid == 0 {
            return None;
        }
        let how = if info.si_code == libc::CLD_EXITED { "status" } else { "signal" };
        Some(format!("{} has exited with {how} {status}: {}", self.name, last_lines(&self.said())))
    }

    /// Returns whether it exits in time.
    fn has_ended(&self, within: Duration) -> bool {
        let mut handle =
            libc::pollfd { fd: self.handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let within_ms = i32::try_from(within.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one descriptor, which outlives the call.
        unsafe { libc::poll(&mut handle, 1, within_ms) > 0 }
    }

    fn signal(&self, signal: libc::c_int) {
        if self.id > 0 {
            // SAFETY: the child has not been waited for, so its ID has not been reused.
            unsafe { libc::kill(self.id, signal) };
        }
    }

    /// Kills the program without SIGTERM.
    pub fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    fn reap(&mut self) -> Result<(ExitStatus, Duration)> {
        let id = std::mem::take(&mut self.id);
        let mut status = 0;
        // SAFETY: a plain structure, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the call writes to the given places.
        let ended = unsafe { libc::wait4(id, &mut status, 0, &mut usage) };
        ensure!(ended == id && id > 0, "{} cannot be waited for", self.name);
        let time = |it: libc::timeval| {
            Duration::from_secs(it.tv_sec as u64) + Duration::from_micros(it.tv_usec as u64)
        };
        Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime)))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.id == 0 {
            return;
        }
        self.signal(libc::SIGTERM);
        if !self.has_ended(ENDING) {
            family(self.id).into_iter().skip(1).for_each(|id| {
                // SAFETY: a descendant of our child, which has not been waited for.
                unsafe { libc::kill(id, libc::SIGKILL) };
            });
            self.signal(libc::SIGKILL);
        }
        // An error of waiting cannot be reported here.
        let _ = self.reap();
    }
}

/// Waits until a condition holds, as long as a program runs.
///
/// # Errors
/// The condition does not hold in time, or the program has exited.
pub fn until(
    within: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
    program: &mut Program,
) -> Result<()> {
    let deadline = Instant::now() + within;
    while !is_so()? {
        program.has_ended(LOOKING);
        if let Some(end) = program.end() {
            bail!(end);
        }
        let said = || last_lines(&program.said());
        ensure!(Instant::now() < deadline, "{} does not start: {}", program.name, said());
    }
    Ok(())
}

/// Returns whether a program of that name is in `PATH`.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    program.contains('/') || path.split(':').any(|folder| Path::new(folder).join(program).is_file())
}

/// Returns whether a process listens on a port.
pub fn does_answer(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Returns a port that is free at the moment.
///
/// # Errors
/// There is no TCP on this machine.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no TCP on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        [] => "no output".into(),
        lines => lines[lines.len().saturating_sub(3)..].join("; "),
    }
}

/// Returns a process and all its descendants.
fn family(id: libc::pid_t) -> Vec<libc::pid_t> {
    let mut children: HashMap<libc::pid_t, Vec<libc::pid_t>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry.file_name().to_string_lossy().parse();
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // After the name, which may contain any characters: the state, then the parent's ID.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let parent = behind.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
        if let (Ok(id), Some(parent)) = (id, parent) {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut family = vec![id];
    let mut at = 0;
    while let Some(id) = family.get(at) {
        family.extend(children.remove(id).unwrap_or_default());
        at += 1;
    }
    family
}

/// Returns the processor time of a process with all its threads; zero if it has exited.
fn processor_time(id: libc::pid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the place for the clock lives as long as the call.
    let has_clock = unsafe { libc::clock_getcpuclockid(id, &mut clock) } == 0;
    // SAFETY: the place for the time lives as long as the call.
    let exists = has_clock && unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    if exists { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) } else { Duration::ZERO }
}

/// Returns the memory of a process (PSS); zero if it has exited.
fn resident_bytes(id: libc::pid_t) -> u64 {
    let path = format!("/proc/{id}/smaps_rollup");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = kilobytes.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &Path) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program::start("a shell", command, &[], &folder.join("log")).expect("a shell")
    }

    /// Returns whether the process exists and is not a zombie.
    fn is_running(id: libc::pid_t) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().and_then(|behind| behind.split_whitespace().next());
        !matches!(state, None | Some("Z" | "X"))
    }

    #[test]
    fn what_a_program_says_and_takes_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done >&2";
        let ended = shell(busy, folder.path()).finish(Duration::from_secs(180)).expect("it ends");
        assert_eq!(ended.output, "done\n");
        assert!(!ended.processor_time.is_zero());
        let failed = shell("echo because; exit 3", folder.path()).finish(Duration::from_secs(180));
        let error = failed.err().expect("3 is a failure").to_string();
        assert!(error.contains("because"), "{error}");
    }

    #[test]
    fn children_are_counted_and_end_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "sh -c 'echo up; while :; do :; done' & trap '' TERM; wait; wait";
        let mut program = shell(script, folder.path());
        let said = folder.path().join("log");
        let is_up = || Ok(std::fs::read_to_string(&said)?.contains("up"));
        until(Duration::from_secs(180), is_up, &mut program).expect("it begins");
        let family = family(program.id);
        assert_eq!(family.len(), 2);
        let before = processor_time(family[1]);
        let is_counted = || Ok(processor_time(family[1]) > before);
        until(Duration::from_secs(180), is_counted, &mut program).expect("it is busy");
        assert!(program.processor_time() > before);
        drop(program);
        let deadline = Instant::now() + Duration::from_secs(180);
        while family.iter().any(|id| is_running(*id)) {
            assert!(Instant::now() < deadline, "one goes on");
            std::thread::sleep(LOOKING);
        }
    }

    #[test]
    fn one_that_ends_early_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = shell("echo no luck", folder.path());
        let error = until(Duration::from_secs(600), || Ok(false), &mut program);
        let error = error.expect_err("it has ended").to_string();
        assert!(error.contains("status 0") && error.contains("no luck"), "{error}");
        let mut killed = shell("echo almost; kill -9 $$", folder.path());
        let error = until(Duration::from_secs(600), || Ok(false), &mut killed);
        let error = error.expect_err("it has ended").to_string();
        assert!(error.contains("signal 9") && error.contains("almost"), "{error}");
    }
}
