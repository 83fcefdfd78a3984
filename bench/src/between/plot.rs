// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results as SVG: the distribution of round trips, a panel for each size and placement; and
//! throughput over size, a panel for each placement and number of pairs.

use super::results::{PairCase, PairResult, Series};
use crate::harness::machine::Machine;
use freeport_svg::chart::{Axis, Panel, svg};
use std::collections::BTreeMap;

/// Number of panels side by side.
const COLUMNS: usize = 2;
/// Quantile up to which the axis of round trips extends.
const SHOWN: f64 = 0.999;

/// Draws the distribution of round trips.
pub fn latencies(results: &[PairResult], machine: &Machine) -> String {
    let latencies = || results.iter().filter(|it| it.setting.case == PairCase::Latency);
    let shortest_first = {
        let mut sorted: Vec<&PairResult> = latencies().collect();
        sorted.sort_by_key(|it| it.setting.size);
        sorted
    };
    let all = || latencies().flat_map(|it| &it.series);
    let ends = all().flat_map(|it| [it.trip_us(0.0), it.trip_us(SHOWN)]);
    let time = Axis::logarithmic("us per round trip", ends);
    let part = Axis { label: "fraction".into(), range: (0.0, 1.0), is_logarithmic: false };
    let names = names(&latencies().collect::<Vec<_>>());
    let panels = shortest_first.into_iter().map(|result| Panel {
        title: format!("{} B, {}", result.setting.size, result.setting.placement.name()),
        x: time.clone(),
        y: part.clone(),
        lines: names
            .iter()
            .map(|name| result.of(name).map(distribution).unwrap_or_default())
            .collect(),
    });
    let title = "Round trips between two processes, measured: fraction that took no longer";
    svg(title, &names, &panels.collect::<Vec<_>>(), COLUMNS, &machine.line())
}

/// Returns the names of the subjects, Freeport first.
fn names(results: &[&PairResult]) -> Vec<&'static str> {
    let mut names = vec![];
    for it in results.iter().flat_map(|result| &result.series) {
        if !it.rounds.rates.is_empty() && !names.contains(&it.name) {
            names.push(it.name);
        }
    }
    names
}

fn distribution(series: &Series) -> Vec<(f64, f64)> {
    let all = series.trips.len() as f64;
    let mut line = vec![(series.trip_us(0.0), 0.0)];
    line.extend(series.trips.steps().map(|(time, reached)| (time / 1e3, reached as f64 / all)));
    line
}

/// Draws the throughput.
pub fn throughputs(results: &[PairResult], machine: &Machine) -> String {
    let throughputs = || results.iter().filter(|it| it.setting.case == PairCase::Throughput);
    let gigabytes = |size: usize, it: &Series| it.value() * size as f64 / 1e3;
    let size = Axis::logarithmic("bytes", throughputs().map(|it| it.setting.size as f64));
    let all = throughputs()
        .flat_map(|result| result.series.iter().map(move |it| gigabytes(result.setting.size, it)));
    let speed = Axis::logarithmic("GB/s", all);
    let mut panels: BTreeMap<(&str, usize), Vec<&PairResult>> = BTreeMap::new();
    for result in throughputs() {
        let key = (result.setting.placement.name(), result.setting.pairs);
        panels.entry(key).or_default().push(result);
    }
    let names = names(&throughputs().collect::<Vec<_>>());
    let panels = panels.into_iter().map(|((placement, pairs), mut results)| {
        results.sort_by_key(|it| it.setting.size);
        let line = |name: &&str| {
            let point = |it: &&PairResult| {
                Some((it.setting.size as f64, gigabytes(it.setting.size, it.of(name)?)))
            };
            results.iter().filter_map(point).collect()
        };
        let pairs = if pairs == 1 { "1 pair".into() } else { format!("{pairs} pairs") };
        Panel {
            title: format!("{pairs}, {placement}"),
            x: size.clone(),
            y: speed.clone(),
            lines: names.iter().map(line).collect(),
        }
    });
    let title = "Messages between processes, one way, measured: medians of rounds";
    svg(title, &names, &panels.collect::<Vec<_>>(), COLUMNS, &machine.line())
}
