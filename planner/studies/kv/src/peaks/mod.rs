// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Greatest rates and latencies of the alternatives: the store runs on the simulated machine with
//! all clients of a profile, which only get.

mod rows;
mod run;

pub use rows::rows;
pub use run::{Run, Usage};

use crate::alternative::Alternative;
use freeport_plan_model::Profile;
use std::thread;

/// Sizes that the study does not state; all of them are fitted to its results.
#[derive(Clone, PartialEq, Debug)]
pub struct Sizes {
    /// Number of keys.
    pub keys: u64,
    /// Buckets of one entry for each key: with 3, a get reads 1.25 of them on average.
    pub buckets_per_key: u64,
    /// Length of a value in bytes; header and key add 24 bytes.
    pub value_bytes: usize,
    /// Skew of the popularity of keys where paths are combined.
    pub skew: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { keys: 1000, buckets_per_key: 3, value_bytes: 288, skew: 0.99 }
    }
}

/// Results of the study of the store. Rates are in millions of gets per second, latencies in
/// microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peaks {
    /// Rate of A1.
    pub host_reads: f64,
    /// Rate of A1 over a plain NIC.
    pub plain_nic: f64,
    /// Rate of A4.
    pub split_reads: f64,
    /// Rate of A5 by calls, with all items cached.
    pub call_cache: f64,
    /// Rate of A5 by READ, with all items cached.
    pub cache_reads: f64,
    /// Rate of A4 and A5 together.
    pub combined: f64,
    /// Number of clients that use A5 there.
    pub switch: usize,
    /// Latency of A1.
    pub host_reads_latency: f64,
    /// Latency of A4.
    pub split_reads_latency: f64,
    /// Latency of A5 by calls.
    pub call_cache_latency: f64,
}

/// Numbers of clients on A5 that are tried, as shares of all clients.
const SWITCHES: [f64; 5] = [0.05, 0.1, 0.15, 0.2, 0.3];
/// Rates that are at least this share of the best one count as the same.
const SAME: f64 = 0.995;

/// Runs the store for all results.
///
/// # Panics
/// The sizes are outside the limits of [`Options`](crate::Options).
pub fn peaks(profile: &Profile, sizes: &Sizes) -> Peaks {
    use Alternative::{CacheReads, CallCache, HostReads, SplitReads};
    let run = Run::new(profile, sizes);
    let (run, plain) = (&run, &run.on_plain_nic());
    let clients = run.clients();
    let switches = SWITCHES.map(|share| (share * clients as f64).round() as usize);
    // Two threads, of which each has about half of the work.
    thread::scope(|scope| {
        let single = scope.spawn(move || {
            let rates = [HostReads, SplitReads, CallCache, CacheReads]
                .map(|alternative| run.rate(|_| alternative).rate);
            (rates, [HostReads, SplitReads, CallCache].map(|one| run.latency(one)))
        });
        let skewed = run.skewed();
        let rate = |switch: &usize| skewed.rate(|client| Alternative::combined(client, *switch));
        let tried = switches.map(|switch| (rate(&switch).rate, switch));
        let best = tried.iter().fold(0.0, |best: f64, (rate, _)| best.max(*rate));
        let is_best = |(rate, _): &(f64, usize)| *rate >= SAME * best;
        let (combined, switch) = tried.into_iter().find(is_best).expect("one is the best");
        let plain_nic = plain.rate(|_| HostReads).rate;
        let (rates, latencies) = single.join().expect("it does not panic");
        let [host_reads, split_reads, call_cache, cache_reads] = rates;
        let [host_reads_latency, split_reads_latency, call_cache_latency] = latencies;
        Peaks {
            host_reads,
            plain_nic,
            split_reads,
            call_cache,
            cache_reads,
            combined,
            switch,
            host_reads_latency,
            split_reads_latency,
            call_cache_latency,
        }
    })
}
