// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running a case, and comparing what came out.

use crate::case::{Case, Runs, flag};
use crate::difference::difference;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How much later than it should have ended a program is killed.
const GRACE_SECONDS: u64 = 5;

/// How much is done for a case.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often it is run in each way.
    pub repeats: u32,
    /// How long the program waits for both sides before it prints what they have noted so far.
    pub seconds: u64,
    /// What programs that do random things begin with; one more with each repetition.
    pub seed: u64,
}

/// What accelerates.
#[derive(Clone, Debug)]
pub struct Preload {
    /// The library.
    pub library: PathBuf,
    /// Where its monitor listens.
    pub monitor: PathBuf,
}

/// What a run left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What both sides noted.
    pub transcript: String,
    /// Whether the server's end and the client's were upgraded.
    pub upgraded: [bool; 2],
    /// Whether the server and the client made connections without the kernel.
    pub reused: [bool; 2],
    /// What else was said on the standard error stream.
    pub complaints: String,
}

impl Report {
    /// Whether something did not come that a side has waited for.
    fn fails(&self) -> bool {
        let is_failure = |line: &str| {
            line.starts_with("FAILED: ")
                || line.starts_with("LATE: ")
                || line == "did not end in time"
        };
        self.transcript.lines().any(is_failure)
    }
}

/// Why a case has failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It could not be run at all.
    #[error("cannot be run: {0}")]
    System(#[from] io::Error),
    /// The processes went on, even after they were asked to end.
    #[error("{runs:?}: does not end")]
    Endless {
        /// In which run.
        runs: Runs,
    },
    /// The program itself failed.
    #[error("{runs:?}: {status}\n{complaints}")]
    Status {
        /// In which run.
        runs: Runs,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        complaints: String,
    },
    /// A plain run does not come to where the case wants it: there is nothing to compare with.
    #[error("plain, it fails:\n{transcript}\n{complaints}")]
    Plain {
        /// What both sides noted.
        transcript: String,
        /// What it said on the standard error stream.
        complaints: String,
    },
    /// The transcripts differ.
    #[error("{runs:?} differs from plain (-):\n{difference}\n{complaints}")]
    Different {
        /// In which run.
        runs: Runs,
        /// The lines.
        difference: String,
        /// What it said on the standard error stream.
        complaints: String,
    },
    /// A run that should be about an upgraded connection was not.
    #[error("{runs:?}: not upgraded (server: {server}, client: {client}), so it proves nothing")]
    NotUpgraded {
        /// In which run.
        runs: Runs,
        /// Whether the server's end was.
        server: bool,
        /// Whether the client's end was.
        client: bool,
    },
    /// The kernel made all connections of a run that should be about others.
    #[error("{runs:?}: all by the kernel (server: {server}, client: {client}): it proves nothing")]
    NotReused {
        /// In which run.
        runs: Runs,
        /// Whether one of the server's was not.
        server: bool,
        /// Whether one of the client's was not.
        client: bool,
    },
}

/// Runs a case plain, then in each way it is to be compared, as often as asked. Without anything
/// that accelerates, it is compared with itself.
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

/// How a command ended, and what it printed on both streams: `None`, if it had to be killed after
/// so long.
pub type Ended = (ExitStatus, Option<(String, String)>);

/// Runs a command, and ends whatever it leaves.
pub fn run_to_end(command: &mut Command, seconds: u64) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that whatever it leaves can be ended.
    let mut child = command.process_group(0).spawn()?;
    let printed = finish(&mut child, seconds);
    kill_group(&child);
    let status = child.wait()?;
    Ok((status, printed?))
}

/// Says in the environment which processes load the library.
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

/// Waits for the end, and gives what was printed; `None` if it does not end.
fn finish(child: &mut Child, seconds: u64) -> io::Result<Option<(String, String)>> {
    let mut output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut errors = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    // The streams may be held open by processes that a case has left, so they are read until the
    // program itself has ended, and then for what is in them.
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

/// Whether a process has ended. Its number stays its own until it is waited for.
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
    // SAFETY: a descriptor that is open, and a call that touches no memory.
    let set = unsafe { libc::fcntl(stream.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ends whatever is left of a case. The group has the number of its first process, which was not
/// waited for yet.
fn kill_group(child: &Child) {
    let group = child.id().cast_signed();
    // SAFETY: a call that touches no memory.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}
