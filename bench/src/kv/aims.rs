// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The project's aims for the engine and for the batched protocol, reported beside the measured
//! values.

use super::load::contents::Workload;
use super::servers::Kind;
use crate::between::aims::at_least;
use crate::harness::metrics::MetricResult;
use crate::harness::report::Traffic;
use std::collections::BTreeSet;

/// Aims for the rate over the fabric, in rates of a peer at its best.
const OF_FABRIC: [(Kind, f64); 2] = [(Kind::Redis, 10.0), (Kind::Memcached, 5.0)];

/// Returns a line for each aim of the fabric whose values were measured. Each workload and size
/// counts with the batch that suits it best.
pub fn of_fabric(results: &[MetricResult]) -> Vec<String> {
    let mut lines = vec![];
    for workload in [Workload::A, Workload::B, Workload::C] {
        let case = format!("fabric-{}", workload.name());
        let its: Vec<_> = results.iter().filter(|it| it.case == case).collect();
        let sizes: BTreeSet<_> = its.iter().filter_map(|it| value_bytes(it)).collect();
        for (bytes, (peer, aim)) in
            sizes.into_iter().flat_map(|bytes| OF_FABRIC.map(|aim| (bytes, aim)))
        {
            let of_size = its.iter().filter(|it| value_bytes(it) == Some(bytes));
            let times = of_size.filter_map(|it| times(it, peer.name())).reduce(f64::max);
            let name = peer.name();
            let what = format!("times the rate of {name}, {case}, values of {bytes} B");
            lines.extend(times.map(|times| at_least(times, aim, &what)));
        }
    }
    lines
}

fn value_bytes(result: &MetricResult) -> Option<usize> {
    match result.traffic {
        Traffic::Operations { value_bytes, .. } => Some(value_bytes),
        _ => None,
    }
}

/// The rate of ours in rates of a peer, if both were measured.
fn times(result: &MetricResult, peer: &str) -> Option<f64> {
    let ours = result.series.first()?;
    let its = result.series.iter().find(|series| series.name == peer)?;
    let times = ours.median(0) / its.median(0);
    times.is_finite().then_some(times)
}

/// Returns a line for each aim of the engine whose values were measured.
pub fn of_engine(results: &[MetricResult]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::super::servers::OF_SERVERS;
    use super::*;
    use crate::harness::metrics::Series;

    #[test]
    fn the_best_batch_of_each_size_counts() {
        let series = |name, rate: Option<f64>| Series {
            name,
            rounds: rate.into_iter().map(|rate| vec![rate; OF_SERVERS.len()]).collect(),
        };
        let result = |value_bytes, pipeline, ours, redis| MetricResult {
            bench: "kv",
            case: "fabric-ycsb-c".into(),
            traffic: Traffic::Operations {
                key_bytes: 8,
                value_bytes,
                pairs: 10,
                distribution: "zipf",
                connections: 4,
                pipeline,
            },
            metrics: &OF_SERVERS,
            series: vec![
                series("freeport", Some(ours)),
                series("redis", Some(redis)),
                series("memcached", None),
            ],
            note: None,
        };
        let results =
            [result(2, 16, 50.0, 10.0), result(2, 64, 110.0, 10.0), result(92, 64, 95.0, 10.0)];
        let lines = of_fabric(&results);
        let [small, large] = &lines[..] else { panic!("{lines:?}") };
        assert!(small.starts_with("11.00 times the rate of redis, fabric-ycsb-c"), "{small}");
        assert!(small.ends_with("met") && large.ends_with("missed"), "{lines:?}");
        assert!(large.contains("values of 92 B"), "{large}");
    }
}
