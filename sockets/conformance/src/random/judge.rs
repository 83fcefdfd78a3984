// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running a program, and what comes out of comparing its runs.

use super::program::Program;
use crate::run::{Preload, run_to_end};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// After how long a program is killed. The interpreter waits for no call for so long.
const SECONDS: u64 = 600;
/// What runs programs.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// The executable file.
    pub executable: PathBuf,
    /// What accelerates.
    pub preload: Preload,
    /// Where programs are written for it.
    pub folder: PathBuf,
    /// After how many milliseconds a call counts as one that does not return.
    pub patience_ms: u32,
    /// Whether the library keeps streams for the next connection (`FREEPORT_REUSE`).
    pub keeps_streams: bool,
    /// How often programs whose runs differ are run again in the kernel, to see whether it does
    /// that by itself.
    pub more_plain_runs: u32,
}

/// What a run gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript {
    /// Lines with their results.
    pub lines: Vec<String>,
    /// Dialogues behind which both ends were upgraded, and all; and connections that were accepted
    /// over streams that were kept.
    pub upgraded: String,
}

/// What comes out of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All runs gave the same. What the accelerated one says of upgrades.
    Same(String),
    /// The kernel itself does not always give the same: the first line that differs among plain
    /// runs.
    KernelUnsteady(String),
    /// The first line that was different, plain and accelerated, but not when it was run again.
    DifferedOnce(String, String),
    /// The first line that is different: plain, and accelerated.
    Different(String, String),
}

impl Interpreter {
    /// Runs a program.
    ///
    /// # Errors
    /// It cannot be run, or does not end.
    pub fn run(&self, program: &Program, is_accelerated: bool) -> io::Result<Transcript> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = self.folder.join(format!("steps-{number}"));
        fs::write(&file, program.to_string())?;
        let mut command = Command::new(&self.executable);
        command.arg(&file).env_remove("LD_PRELOAD");
        command.env("FREEPORT_MONITOR", &self.preload.monitor);
        command.env("INTERPRETER_PATIENCE_MS", self.patience_ms.to_string());
        if is_accelerated {
            command.env("LD_PRELOAD", &self.preload.library);
            command.env("FREEPORT_REUSE", u8::from(self.keeps_streams).to_string());
        }
        let (status, printed) = run_to_end(&mut command, SECONDS)?;
        fs::remove_file(&file)?;
        let Some((transcript, said)) = printed else {
            return Err(io::Error::other(format!("{}: does not end", file.display())));
        };
        if !status.success() {
            return Err(io::Error::other(format!("{status}: {said}")));
        }
        let lines = transcript.lines().map(str::to_owned).collect();
        Ok(Transcript { lines, upgraded: said.trim().to_owned() })
    }
}

/// Compares runs of a program.
///
/// # Errors
/// It cannot be run, or does not end.
pub fn judge(interpreter: &Interpreter, program: &Program) -> io::Result<Verdict> {
    let plain = interpreter.run(program, false)?;
    let accelerated = interpreter.run(program, true)?;
    let Some((expected, found)) = first_difference(&plain, &accelerated) else {
        // What the kernel gives twice may still be chance, but then the library gives it as well.
        return Ok(Verdict::Same(accelerated.upgraded));
    };
    for _ in 0..interpreter.more_plain_runs {
        let more = interpreter.run(program, false)?;
        if let Some((first, _)) = first_difference(&plain, &more) {
            return Ok(Verdict::KernelUnsteady(first));
        }
    }
    // What does not differ again depends on moments: how long a process waits for a core.
    let again = interpreter.run(program, true)?;
    if first_difference(&plain, &again).is_none() {
        return Ok(Verdict::DifferedOnce(expected, found));
    }
    Ok(Verdict::Different(expected, found))
}

impl Verdict {
    /// What kind of difference it is: in which operation, and whether that did not return.
    pub fn kind(&self) -> Option<(String, bool)> {
        let Self::Different(line, found) = self else { return None };
        let operation = line.split(' ').nth(1).unwrap_or_default();
        Some((operation.to_owned(), found.ends_with("= blocks")))
    }
}

fn first_difference(one: &Transcript, other: &Transcript) -> Option<(String, String)> {
    let pairs = one.lines.iter().zip(&other.lines);
    let different = pairs.clone().find(|(one, other)| one != other);
    let end = "nothing".to_owned();
    match different {
        Some((one, other)) => Some((one.clone(), other.clone())),
        None if one.lines.len() == other.lines.len() => None,
        None => {
            let at = pairs.len();
            let line = |of: &Transcript| of.lines.get(at).unwrap_or(&end).clone();
            Some((line(one), line(other)))
        }
    }
}
