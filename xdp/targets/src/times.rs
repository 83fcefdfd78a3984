// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Run times that the kernel reports for programs.

use std::time::Duration;

/// Number of runs of a program in the kernel, and their total time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Runs {
    /// Number of runs.
    pub count: u64,
    /// Total time in nanoseconds.
    pub time_ns: u64,
}

/// Run time by the kernel's clock for repeated runs on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// Verdict of the last run.
    pub verdict: u32,
    /// Mean time of a run, in whole nanoseconds.
    pub mean: Duration,
}
