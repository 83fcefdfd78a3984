// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Greatest rates and latencies of the alternatives: the store runs on the simulated machine with
//! all clients of a profile, which only get.

mod rows;
mod run;

pub use rows::rows;
pub use run::{Run, Usage};

use crate::alternative::Alternative;
use crate::error::KvError;
use freeport_plan_model::Profile;
use std::thread;

/// Sizes that the study does not state; all of them are fitted to its results.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sizes {
    /// Number of keys.
    pub keys: u64,
    /// Buckets of one entry for each key: with 2, a get reads 1.5 of them on average.
    pub buckets_per_key: u64,
    /// Length of a value in bytes; header and key add 24 bytes.
    pub value_bytes: usize,
    /// Skew of the popularity of keys where paths are combined.
    pub skew: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { keys: 2000, buckets_per_key: 2, value_bytes: 272, skew: 0.99 }
    }
}

/// Results of the study of the store. Rates are in millions of gets per second, latencies in
/// microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peaks {
    /// Rate of A1.
    pub host_reads: f64,
    /// Rate of A4.
    pub split_reads: f64,
    /// Rate of A5 by calls, with all items cached.
    pub call_cache: f64,
    /// Rate of A5 by READ, with all items cached.
    pub cache_reads: f64,
    /// Rate of A4 and A5 together, with skewed keys.
    pub combined: f64,
    /// Number of clients that use A5 there.
    pub switch: usize,
    /// Rate of A1 over a plain NIC, with the same skewed keys.
    pub plain_nic: f64,
    /// Rate of A1, with the same skewed keys.
    pub host_reads_skewed: f64,
    /// Rate of A4, with the same skewed keys.
    pub split_reads_skewed: f64,
    /// Latency of A1.
    pub host_reads_latency: f64,
    /// Latency of A4.
    pub split_reads_latency: f64,
    /// Latency of A5 by calls.
    pub call_cache_latency: f64,
}

/// Numbers of clients on A5 that are tried, as shares of all clients.
const SWITCHES: [f64; 7] = [0.05, 0.1, 0.15, 0.175, 0.2, 0.25, 0.3];
/// Rates that are at least this share of the best one count as the same.
const SAME: f64 = 0.995;

/// Runs the store for all results.
///
/// # Errors
/// The sizes are outside the limits of [`Run::new`], or the keys find no place in the store.
pub fn peaks(profile: &Profile, sizes: &Sizes) -> Result<Peaks, KvError> {
    use Alternative::{CacheReads, CallCache, HostReads, SplitReads};
    let run = &Run::new(profile, sizes)?;
    let clients = run.clients();
    let switches = SWITCHES.map(|share| (share * clients as f64).round() as usize);
    // Two threads, of which each has about half of the work.
    thread::scope(|scope| {
        let single = scope.spawn(move || {
            let rate = |alternative| Ok(run.rate(|_| alternative)?.rate);
            let latency = |alternative| run.latency(alternative);
            Ok::<_, KvError>((
                each([HostReads, SplitReads, CallCache, CacheReads], rate)?,
                each([HostReads, SplitReads, CallCache], latency)?,
            ))
        });
        let skewed = run.skewed();
        let rate = |switch: usize| {
            let usage = skewed.rate(|client| Alternative::combined(client, switch))?;
            Ok((usage.rate, switch))
        };
        let tried = each(switches, rate)?;
        let best = tried.iter().fold(0.0, |best: f64, (rate, _)| best.max(*rate));
        let is_best = |(rate, _): &(f64, usize)| *rate >= SAME * best;
        let (combined, switch) = tried.into_iter().find(is_best).expect("one is the best");
        let plain_nic = skewed.on_plain_nic().rate(|_| HostReads)?.rate;
        let host_reads_skewed = skewed.rate(|_| HostReads)?.rate;
        let split_reads_skewed = skewed.rate(|_| SplitReads)?.rate;
        let (rates, latencies) = single.join().expect("it does not panic")?;
        let [host_reads, split_reads, call_cache, cache_reads] = rates;
        let [host_reads_latency, split_reads_latency, call_cache_latency] = latencies;
        Ok(Peaks {
            host_reads,
            split_reads,
            call_cache,
            cache_reads,
            combined,
            switch,
            plain_nic,
            host_reads_skewed,
            split_reads_skewed,
            host_reads_latency,
            split_reads_latency,
            call_cache_latency,
        })
    })
}

/// Returns a result for each value, or the first error.
fn each<T: Copy, R, const N: usize>(
    values: [T; N],
    result: impl Fn(T) -> Result<R, KvError>,
) -> Result<[R; N], KvError> {
    let results: Vec<R> = values.into_iter().map(result).collect::<Result<_, _>>()?;
    Ok(results.try_into().ok().expect("one for each value"))
}
