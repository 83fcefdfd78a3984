// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The project's aims for the engine, reported beside the measured values.

use crate::between::aims::at_least;
use crate::harness::metrics::MetricResult;
use crate::harness::report::Traffic;

/// Returns a line for each aim whose values were measured.
pub fn aims(results: &[MetricResult]) -> Vec<String> {
    let ten_bytes = |case: &'static str, aim: f64, what: &'static str| {
        let result = results.iter().find(|it| {
            let is_small = matches!(
                it.traffic,
                Traffic::Pairs { key_bytes, value_bytes, distribution: "zipf", .. }
                    if key_bytes + value_bytes == 10
            );
            it.case == case && is_small
        })?;
        Some(at_least(result.series.first()?.median(0), aim, what))
    };
    let vectors = || {
        let result = results.iter().find(|it| {
            let is_kib = matches!(it.traffic, Traffic::Pairs { value_bytes: 1024, .. });
            it.case == "engine-vector-add-memory" && is_kib
        })?;
        Some(at_least(result.series.first()?.median(0), 10.0, "GB/s, add to vectors of 1 KiB"))
    };
    let one_key = || {
        let of = |case: &str| {
            let result = results.iter().find(|it| it.case == case)?;
            Some(result.series.first()?.median(0))
        };
        let times = of("engine-add-one-key")? / of("engine-add")?;
        Some(at_least(times, 1.0, "times the rate of drawn keys, fetch-and-add on one key"))
    };
    [
        ten_bytes("engine-get", 40.0, "M gets a second, 10-byte pairs, Zipf"),
        ten_bytes("engine-put", 25.0, "M puts a second, 10-byte pairs, Zipf"),
        one_key(),
        vectors(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
