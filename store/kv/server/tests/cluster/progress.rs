// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a trial follows its clients and ends them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use freeport_testbed::wait::PATIENCE;

/// How a trial follows a client, and ends it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of times that requests were sent at once and all executed.
    rounds: AtomicU64,
    has_ended: AtomicBool,
    has_to_finish: AtomicBool,
    is_abandoned: AtomicBool,
}

impl Progress {
    /// The client ends as soon as all of its requests have replies.
    pub fn finish(&self) {
        self.has_to_finish.store(true, Ordering::Relaxed);
    }

    /// The client ends with its next turn, because the trial has failed.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Whether the client ends, if all of its requests have replies or not.
    pub fn has_to_end(&self, is_idle: bool) -> bool {
        is_idle && self.has_to_finish.load(Ordering::Relaxed)
            || self.is_abandoned.load(Ordering::Relaxed)
    }

    /// The client has sent requests at once, and all were executed.
    pub fn complete_round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// The client has ended.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// Waits until each client has completed some rounds of requests more.
pub fn advance(progress: &[Progress], by: u64) -> Result<(), String> {
    let rounds = |one: &Progress| one.rounds.load(Ordering::Relaxed);
    let aims: Vec<u64> = progress.iter().map(|one| rounds(one) + by).collect();
    wait_for("all clients write", progress, || {
        progress.iter().zip(&aims).all(|(one, aim)| rounds(one) >= *aim)
    })
}

/// Waits for a condition while all clients write.
pub fn wait_for(
    what: &str,
    progress: &[Progress],
    mut is_so: impl FnMut() -> bool,
) -> Result<(), String> {
    let begin = Instant::now();
    while !is_so() {
        if progress.iter().any(|one| one.has_ended.load(Ordering::Relaxed)) {
            return Err("a client has ended by itself".into());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("not within {} s: {what}", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
