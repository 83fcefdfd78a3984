// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel says of the time that programs take.

use std::time::Duration;

/// How often the kernel has run a program, and how long that took in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Runs {
    /// How often.
    pub count: u64,
    /// Nanoseconds.
    pub time_ns: u64,
}

/// What the kernel's clock said of some runs on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// What the last one returned.
    pub verdict: u32,
    /// The mean of them, in whole nanoseconds.
    pub mean: Duration,
}
