// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of servers as a table: a row for each subject, with its rate beside that of ours.

use crate::harness::metrics::{MetricResult, Series};
use crate::harness::report::Traffic;

/// Formats the rates and latencies of all subjects in one setting.
pub fn of_rates(result: &MetricResult) -> String {
    let mut text = format!("{}, measured, medians of rounds\n{:<24}", title(result), "");
    text += "        op/s         p99   spread  ours/this    p50 us    p99 us  server us\n";
    let ours = result.series.first().map_or(f64::NAN, |ours| ours.median(0));
    for it in &result.series {
        let [rate, p50, p99, processor] = [0, 1, 2, 3].map(|metric| it.median(metric));
        let [rate_shown, reached] = [rate, it.reached(0, true)].map(|value| shown(value, 0, ""));
        let (spread, ratio) = (shown(spread(it) * 100.0, 1, "%"), shown(ours / rate, 2, "x"));
        let [p50, p99] = [p50, p99].map(|value| shown(value, 1, ""));
        let name = format!("  {:<22}", it.name);
        text += &format!("{name}{rate_shown:>12}{reached:>12}{spread:>9}{ratio:>11}");
        text += &format!("{p50:>10}{p99:>10}{:>11}\n", shown(processor, 2, ""));
    }
    if let Some(note) = &result.note {
        text += &format!("  - {note}\n");
    }
    text
}

/// Describes a result by its case and setting.
pub fn title(result: &MetricResult) -> String {
    match result.traffic {
        Traffic::Operations {
            key_bytes, value_bytes, distribution, connections, pipeline, ..
        } => format!(
            "{}, {key_bytes} + {value_bytes} B, {distribution}, {connections} connections of \
             {pipeline}",
            result.case
        ),
        _ => result.case.clone(),
    }
}

/// The distance from the worst round to the best, as a part of the median.
fn spread(series: &Series) -> f64 {
    let rates = series.sorted(0);
    match (rates.first(), rates.last()) {
        (Some(worst), Some(best)) => (best - worst) / series.median(0),
        _ => f64::NAN,
    }
}

/// A number with its unit, or a dash.
fn shown(value: f64, digits: usize, unit: &str) -> String {
    if value.is_finite() { format!("{value:.digits$}{unit}") } else { "-".into() }
}

#[cfg(test)]
mod tests {
    use super::super::OF_SERVERS;
    use super::*;

    #[test]
    fn subjects_are_beside_ours_and_what_is_missing_is_a_dash() {
        let series = |name, rates: &[f64]| Series {
            name,
            rounds: rates.iter().map(|rate| vec![*rate, 10.0, 20.0, f64::NAN]).collect(),
        };
        let traffic = Traffic::Operations {
            key_bytes: 8,
            value_bytes: 2,
            pairs: 10,
            distribution: "zipf",
            connections: 50,
            pipeline: 16,
        };
        let result = MetricResult {
            bench: "kv",
            case: "resp-ycsb-c".into(),
            traffic,
            metrics: &OF_SERVERS,
            series: vec![series("freeport", &[300.0, 200.0, 250.0]), series("redis", &[100.0])],
            note: Some("a remark".into()),
        };
        let text = of_rates(&result);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let figures = ["freeport", "250", "200", "40.0%", "1.00x", "10.0", "20.0", "-"];
        assert_eq!(rows[2], figures, "{text}");
        assert_eq!(rows[3][..5], ["redis", "100", "100", "0.0%", "2.50x"], "{text}");
        assert!(text.starts_with("resp-ycsb-c, 8 + 2 B, zipf, 50 connections of 16,"), "{text}");
        assert!(text.ends_with("  - a remark\n"), "{text}");
        let empty = MetricResult { series: vec![series("freeport", &[])], ..result };
        assert!(!of_rates(&empty).contains("NaN"));
    }
}
