// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a case, and compares the transcripts.

use crate::case::{Case, Runs, flag};
use crate::difference::difference;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Seconds after a program's time limit at which it is killed.
const GRACE_SECONDS: u64 = 5;

/// Effort for a case.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of runs in each configuration.
    pub repeats: u32,
    /// Time in seconds that the program waits for both sides before it prints the transcript so
    /// far.
    pub seconds: u64,
    /// First seed of random cases; incremented with each repetition.
    pub seed: u64,
}

/// Library and monitor for accelerated runs.
#[derive(Clone, Debug)]
pub struct Preload {
    /// Path of the library.
    pub library: PathBuf,
    /// Path of the monitor's socket.
    pub monitor: PathBuf,
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Transcript of both sides.
    pub transcript: String,
    /// Whether the server's end and the client's were upgraded.
    pub upgraded: [bool; 2],
    /// Whether the server and the client reused streams.
    pub reused: [bool; 2],
    /// Other output on the standard error stream.
    pub complaints: String,
}

impl Report {
    /// Returns whether a side waited in vain for something.
    fn fails(&self) -> bool {
        let is_failure = |line: &str| {
            line.starts_with("FAILED: ")
                || line.starts_with("LATE: ")
                || line == "did not end in time"
        };
        self.transcript.lines().any(is_failure)
    }
}

/// Reason for which a case failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It cannot be run.
    #[error("it cannot be run: {0}")]
    System(#[from] io::Error),
    /// Its processes kept running after they were asked to end.
    #[error("{runs:?}: it does not end")]
    Endless {
        /// The run.
        runs: Runs,
    },
    /// The program exited with an error.
    #[error("{runs:?}: {status}\n{complaints}")]
    Status {
        /// The run.
        runs: Runs,
        /// Exit status.
        status: ExitStatus,
        /// Output on the standard error stream.
        complaints: String,
    },
    /// A plain run does not complete: there is nothing to compare with.
    #[error("the plain run fails:\n{transcript}\n{complaints}")]
    Plain {
        /// Transcript of both sides.
        transcript: String,
        /// Output on the standard error stream.
        complaints: String,
    },
    /// The transcripts differ.
    #[error("{runs:?} differs from plain (-):\n{difference}\n{complaints}")]
    Different {
        /// The run.
        runs: Runs,
        /// The differing lines.
        difference: String,
        /// Output on the standard error stream.
        complaints: String,
    },
    /// A run that needs an upgraded connection did not have one.
    #[error("{runs:?}: not upgraded (server: {server}, client: {client}), so it proves nothing")]
    NotUpgraded {
        /// The run.
        runs: Runs,
        /// Whether the server's end was upgraded.
        server: bool,
        /// Whether the client's end was upgraded.
        client: bool,
    },
    /// The kernel made all connections of a run that needs reused streams.
    #[error("{runs:?}: nothing was reused (server: {server}, client: {client}): it proves nothing")]
    NotReused {
        /// The run.
        runs: Runs,
        /// Whether the server reused a stream.
        server: bool,
        /// Whether the client reused a stream.
        client: bool,
    },
}

/// Runs a case plain and in each configuration to be compared, and repeats this as requested.
/// Without a library, compares it with itself.
///
/// # Errors
/// The first [`Failure`].
pub fn compare(case: &Case, preload: Option<&Preload>, effort: Effort) -> Result<(), Failure> {
    let plain = run(case, Runs::Plain, preload, effort)?;
    if plain.fails() {
        let Report { transcript, complaints, .. } = plain;
        return Err(Failure::Plain { transcript, complaints });
    }
    let comparisons = if preload.is_some() { case.comparisons() } else { &[Runs::Plain] };
    for repeat in 0..effort.repeats {
        let effort = Effort { seed: effort.seed + u64::from(repeat), ..effort };
        for &runs in comparisons {
            let report = run(case, runs, preload, effort)?;
            if let Some(difference) = difference(&plain.transcript, &report.transcript) {
                let complaints = report.complaints;
                return Err(Failure::Different { runs, difference, complaints });
            }
            let [server, client] = report.upgraded;
            if case.must_be_upgraded(runs) && !(server && client) {
                return Err(Failure::NotUpgraded { runs, server, client });
            }
            let [server, client] = report.reused;
            if case.must_be_reused(runs) && !(server && client) {
                return Err(Failure::NotReused { runs, server, client });
            }
        }
    }
    Ok(())
}

fn run(
    case: &Case,
    runs: Runs,
    preload: Option<&Preload>,
    effort: Effort,
) -> Result<Report, Failure> {
    let mut command = Command::new(&case.executable);
    command.arg(case.argument()).env_remove("LD_PRELOAD");
    command.env("CONFORMANCE_SECONDS", effort.seconds.to_string());
    command.env("CONFORMANCE_SEED", effort.seed.to_string());
    if case.has(flag::REUSED) {
        command.env("FREEPORT_REUSE", "1");
    }
    if let Some(preload) = preload {
        command.env("FREEPORT_MONITOR", &preload.monitor);
        load(&mut command, runs, &preload.library);
    }
    let (status, printed) = run_to_end(&mut command, effort.seconds + GRACE_SECONDS)?;
    let Some((transcript, said)) = printed else {
        return Err(Failure::Endless { runs });
    };
    let is_mark = |line: &&str| line.starts_with("upgraded ") || line.starts_with("reused ");
    let (marks, complaints): (Vec<&str>, Vec<&str>) = said.lines().partition(is_mark);
    let complaints = complaints.join("\n");
    if !status.success() {
        return Err(Failure::Status { runs, status, complaints });
    }
    let sides = |what: &str| {
        let mark = marks.iter().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
        [mark.starts_with(" 1"), mark.ends_with(" 1")]
    };
    Ok(Report { transcript, upgraded: sides("upgraded"), reused: sides("reused"), complaints })
}

/// Exit status of a command, and the contents of both output streams; `None` if it had to be killed
/// at its time limit.
pub type Ended = (ExitStatus, Option<(String, String)>);

/// Runs a command, and kills the processes it leaves behind.
pub fn run_to_end(command: &mut Command, seconds: u64) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A process group of its own, so that everything it leaves behind can be killed.
    let mut child = command.process_group(0).spawn()?;
    let printed = finish(&mut child, seconds);
    kill_group(&child);
    let status = child.wait()?;
    Ok((status, printed?))
}

/// Sets the environment that determines which processes load the library.
fn load(command: &mut Command, runs: Runs, library: &Path) {
    let side = match runs {
        Runs::Plain => return,
        Runs::Accelerated => {
            command.env("LD_PRELOAD", library).env("CONFORMANCE_PRELOADED", "1");
            return;
        }
        Runs::ServerAccelerated => "server",
        Runs::ClientAccelerated => "client",
    };
    command.env("CONFORMANCE_ACCELERATED_SIDE", side).env("CONFORMANCE_LIBRARY", library);
}

/// Waits for the exit, and returns the output; `None` if the process does not exit in time.
fn finish(child: &mut Child, seconds: u64) -> io::Result<Option<(String, String)>> {
    let mut output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut errors = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    // Processes that a case left behind may hold the streams open, so the streams are read until
    // the program itself has exited, and then drained.
    set_nonblocking(&output)?;
    set_nonblocking(&errors)?;
    let (mut transcript, mut said) = (vec![], vec![]);
    loop {
        let ended = has_ended(child)?;
        take(&mut output, &mut transcript)?;
        take(&mut errors, &mut said)?;
        if ended {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return Ok(Some((text(&transcript), text(&said))));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns whether a process has exited. Its PID stays reserved until it is waited for.
fn has_ended(child: &Child) -> io::Result<bool> {
    // SAFETY: zero is a valid value of this structure.
    let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the structure outlives the call, which writes to it.
    let result = unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut found, flags) };
    // SAFETY: the call has filled it for a child, or it is still zero; the field is a number.
    let process = unsafe { found.si_pid() };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(process != 0) }
}

fn take(stream: &mut impl Read, into: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_to_end(into) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

fn set_nonblocking(stream: &impl std::os::fd::AsRawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the call accesses no memory.
    let set = unsafe { libc::fcntl(stream.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Kills everything left of a case. The group's number is the PID of its first process, which is
/// not waited for yet.
fn kill_group(child: &Child) {
    let group = child.id().cast_signed();
    // SAFETY: the call accesses no memory.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}
