// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs walks plain and accelerated, and compares the traces.

use super::walk::{Trace, Walk, traces};
use crate::run::{Preload, run_to_end};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Time limit of a run in seconds.
const SECONDS: u64 = 120;
/// Pauses after each step, in milliseconds, of the runs that confirm a difference. If one of them
/// shows no difference, the state was only delayed: the kernel itself may lag on a loaded machine.
const PAUSES_MS: [u32; 5] = [0, 0, 2, 20, 100];

/// Maximum number of differences that are confirmed per run; there may be thousands.
const DIFFERENCES_MAX: usize = 10;

/// Configuration for running walks.
#[derive(Clone, Debug)]
pub struct Walker {
    /// Path of the executable.
    pub executable: PathBuf,
    /// Library and monitor.
    pub preload: Preload,
    /// Folder for the files of walks.
    pub folder: PathBuf,
}

/// A walk whose traces differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The walk, up to the step that differs.
    pub walk: Walk,
    /// The trace line of that step, plain and accelerated.
    pub lines: [String; 2],
}

/// Result of a comparison.
#[derive(Default, Debug)]
pub struct Verdict {
    /// Walks that differ.
    pub differences: Vec<Difference>,
    /// Number of walks that differed in some of their runs only.
    pub unsteady: usize,
    /// Number of ends that were accelerated at the start of their walks.
    pub upgraded: usize,
}

impl Walker {
    /// Compares plain and accelerated runs of walks, and runs each differing walk again alone.
    ///
    /// # Errors
    /// They cannot be run, or do not end in time.
    pub fn judge(&self, walks: &[Walk]) -> io::Result<Verdict> {
        let (plain, _) = self.run(walks, false, 0)?;
        let (accelerated, upgraded) = self.run(walks, true, 0)?;
        let mut verdict = Verdict { upgraded, ..Verdict::default() };
        for ((walk, plain), accelerated) in walks.iter().zip(&plain).zip(&accelerated) {
            let Some(step) = first_difference(plain, accelerated) else { continue };
            if verdict.differences.len() == DIFFERENCES_MAX {
                break;
            }
            match self.confirm(&walk.first(step + 1))? {
                Some(difference) => verdict.differences.push(difference),
                None => verdict.unsteady += 1,
            }
        }
        Ok(verdict)
    }

    /// Runs walks; returns their traces, and the number of accelerated ends.
    ///
    /// # Errors
    /// They cannot be run, or do not end in time.
    pub fn run(
        &self,
        walks: &[Walk],
        is_accelerated: bool,
        pause_ms: u32,
    ) -> io::Result<(Vec<Trace>, usize)> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = self.folder.join(format!("walks-{number}"));
        fs::write(&file, walks.iter().map(|walk| format!("{walk}\n")).collect::<String>())?;
        let mut command = Command::new(&self.executable);
        command.arg(&file).env_remove("LD_PRELOAD");
        command.env("FREEPORT_MONITOR", &self.preload.monitor);
        command.env("WALK_PAUSE_MS", pause_ms.to_string());
        command.env("WALK_SECONDS", SECONDS.to_string());
        if is_accelerated {
            command.env("LD_PRELOAD", &self.preload.library);
        }
        let (status, printed) = run_to_end(&mut command, 2 * SECONDS)?;
        fs::remove_file(&file)?;
        let (printed, said) = printed.unwrap_or_default();
        let traces = traces(&printed);
        if !status.success() || traces.len() != walks.len() {
            let last = traces.len().checked_sub(1).and_then(|last| walks.get(last));
            let last = last.map_or_else(String::new, Walk::to_string);
            return Err(io::Error::other(format!("{status}: {said} in the walk: {last}")));
        }
        let upgraded = said.lines().find_map(|line| line.strip_prefix("upgraded ")?.parse().ok());
        Ok((traces, upgraded.unwrap_or(0)))
    }

    /// Runs a differing walk again. `None` if it does not differ every time.
    fn confirm(&self, walk: &Walk) -> io::Result<Option<Difference>> {
        let mut last = None;
        for pause_ms in PAUSES_MS {
            last = self.differs(walk, pause_ms)?;
            if last.is_none() {
                break;
            }
        }
        Ok(last)
    }

    fn differs(&self, walk: &Walk, pause_ms: u32) -> io::Result<Option<Difference>> {
        let run = |is_accelerated| {
            let (traces, _) = self.run(std::slice::from_ref(walk), is_accelerated, pause_ms)?;
            traces.into_iter().next().ok_or_else(|| io::Error::other("no trace"))
        };
        let (plain, accelerated) = (run(false)?, run(true)?);
        Ok(first_difference(&plain, &accelerated).map(|step| Difference {
            walk: walk.first(step + 1),
            lines: [plain, accelerated].map(|it| it.get(step).cloned().unwrap_or_default()),
        }))
    }

    /// Removes steps from a walk as long as it still differs.
    ///
    /// # Errors
    /// It cannot be run, or does not end in time.
    pub fn shrink(&self, difference: Difference) -> io::Result<Difference> {
        let mut best = difference;
        let mut step = best.walk.steps.len();
        while step > 0 {
            step -= 1;
            if step < best.walk.steps.len()
                && let Some(smaller) = self.differs(&best.walk.without(step), 2)?
            {
                best = smaller;
            }
        }
        Ok(best)
    }
}

/// Returns the first step at which traces differ.
fn first_difference(one: &Trace, other: &Trace) -> Option<usize> {
    let steps = one.len().max(other.len());
    (0..steps).find(|step| one.get(*step) != other.get(*step))
}
