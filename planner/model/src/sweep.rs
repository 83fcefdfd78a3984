// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many estimates on all cores of this machine. Each is a simulation of its own, so that their
//! order and the number of cores change nothing.

use crate::estimate::{Estimate, EstimateError, estimate};
use crate::profile::Profile;
use crate::route::Request;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Estimates requests, and returns the results in their order. `on_done` gets the number of those
/// that are done, on the thread of the caller.
pub fn sweep(
    profile: &Profile,
    requests: &[Request],
    seed: u64,
    mut on_done: impl FnMut(usize),
) -> Vec<Result<Estimate, EstimateError>> {
    let next = AtomicUsize::new(0);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<Result<Estimate, EstimateError>>> = vec![None; requests.len()];
    thread::scope(|scope| {
        for _ in 0..cores.min(requests.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.get(number) else { return };
                    // The receiver is there until all senders are gone.
                    let _ = sender.send((number, estimate(profile, *request, seed)));
                }
            });
        }
        drop(sender);
        for (done, (number, result)) in (1..).zip(receiver) {
            results[number] = Some(result);
            on_done(done);
        }
    });
    results.into_iter().map(|result| result.expect("each request was estimated")).collect()
}
