// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a program, and compares its runs.

use super::program::Program;
use crate::run::{Preload, run_to_end};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Time limit for a program in seconds. The interpreter's limit for a call is shorter.
const SECONDS: u64 = 600;
/// Configuration for running programs.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// Path of the interpreter.
    pub executable: PathBuf,
    /// Library and monitor.
    pub preload: Preload,
    /// Folder for the files of programs.
    pub folder: PathBuf,
    /// Time in milliseconds after which a call counts as blocked.
    pub patience_ms: u32,
    /// Whether the library keeps streams for later connections (`FREEPORT_REUSE`).
    pub keeps_streams: bool,
    /// Number of additional plain runs of a program whose runs differ, to detect programs whose
    /// results vary in the kernel itself.
    pub more_plain_runs: u32,
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript {
    /// Lines with their results.
    pub lines: Vec<String>,
    /// Counts printed by the interpreter: dialogues after which both ends were upgraded, all
    /// dialogues, and connections accepted over kept streams.
    pub upgraded: String,
}

/// Result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All runs were equal. Contains the counts of upgrades of the accelerated run.
    Same(String),
    /// The kernel's own results vary: the first line that differs among plain runs.
    KernelUnsteady(String),
    /// The first line that differed, plain and accelerated, but not in a second run.
    DifferedOnce(String, String),
    /// The first line that differs: plain, and accelerated.
    Different(String, String),
}

impl Interpreter {
    /// Runs a program.
    ///
    /// # Errors
    /// It cannot be run, or does not end in time.
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

/// Compares plain and accelerated runs of a program.
///
/// # Errors
/// It cannot be run, or does not end in time.
pub fn judge(interpreter: &Interpreter, program: &Program) -> io::Result<Verdict> {
    let plain = interpreter.run(program, false)?;
    let accelerated = interpreter.run(program, true)?;
    let Some((expected, found)) = first_difference(&plain, &accelerated) else {
        // Results that the kernel repeats may still be chance, but then the library has them too.
        return Ok(Verdict::Same(accelerated.upgraded));
    };
    for _ in 0..interpreter.more_plain_runs {
        let more = interpreter.run(program, false)?;
        if let Some((first, _)) = first_difference(&plain, &more) {
            return Ok(Verdict::KernelUnsteady(first));
        }
    }
    // A difference that does not recur depends on timing, such as the wait for a core.
    let again = interpreter.run(program, true)?;
    if first_difference(&plain, &again).is_none() {
        return Ok(Verdict::DifferedOnce(expected, found));
    }
    Ok(Verdict::Different(expected, found))
}

impl Verdict {
    /// Returns the kind of difference: its operation, and whether that blocked.
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
