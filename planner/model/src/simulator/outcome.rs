// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of a simulation.

/// Results of one load.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Flow {
    /// Completed requests that were measured.
    pub completed: u64,
    /// Requests per second, in millions.
    pub rate: f64,
    /// Payload in Gbit/s.
    pub goodput: f64,
    /// Mean latency in nanoseconds, from posting on.
    pub mean: f64,
    /// Median latency in nanoseconds.
    pub median: f64,
    /// The latency in nanoseconds that 1 % of all requests exceed.
    pub p99: f64,
    /// Requests per second that were offered, in millions; none for as many as possible.
    pub offered: Option<f64>,
    /// Requests completed since the beginning, in millions per second of the whole simulation:
    /// never more than an analytic bound.
    pub rate_from_start: f64,
}

/// Use of a resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Use {
    /// The resource.
    pub name: &'static str,
    /// Busy time or held credits as a share of what is there: 0 to 1.
    pub share: f64,
}

/// Payload on a link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCount {
    /// Bytes of payload.
    pub bytes: u64,
    /// Packets with payload.
    pub packets: u64,
}

/// Results of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Results of the loads, in their order.
    pub flows: Vec<Flow>,
    /// Use of all resources, the busiest first.
    pub uses: Vec<Use>,
    /// Payload on links in the measured time, by names of resources.
    pub links: Vec<(&'static str, LinkCount)>,
    /// Simulated time that was measured, in nanoseconds.
    pub time: f64,
    /// Whether all loads completed enough requests; if not, the results say little.
    pub is_steady: bool,
    /// Number of events.
    pub events: u64,
}

/// Use from which on a resource is the limit.
const LIMITS_FROM: f64 = 0.9;

impl Outcome {
    /// Returns the name of the resource that limits the rate; if none is busy, requests wait only
    /// for their own latency, or no more are offered.
    pub fn bottleneck(&self) -> &'static str {
        let is_met = |flow: &Flow| flow.offered.is_some_and(|offered| flow.rate > 0.98 * offered);
        if self.flows.iter().all(is_met) {
            return "offered load";
        }
        match self.uses.first() {
            Some(first) if first.share >= LIMITS_FROM => first.name,
            _ => "latency of requests in flight",
        }
    }
}

/// Returns mean, median and 99th percentile of latencies in picoseconds, as nanoseconds.
pub(super) fn latencies(samples: &mut [u64]) -> (f64, f64, f64) {
    if samples.is_empty() {
        return (0.0, 0.0, 0.0);
    }
    samples.sort_unstable();
    let sum: u128 = samples.iter().map(|&sample| u128::from(sample)).sum();
    let at = |share: f64| samples[((samples.len() - 1) as f64 * share).round() as usize] as f64;
    (sum as f64 / samples.len() as f64 / 1000.0, at(0.5) / 1000.0, at(0.99) / 1000.0)
}
