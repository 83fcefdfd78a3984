// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Latency and rate by size and path, a row of panels for each operation, as the study draws them.

use freeport_plan_model::estimate::Estimate;
use freeport_plan_model::simulator::Flow;
use freeport_plan_model::{Operation, Path};
use freeport_svg::chart::{Axis, Panel, svg as chart};

/// A quantity of an estimate.
type Value = fn(&Estimate) -> f64;

/// Draws the estimates with the smallest batch.
pub fn svg(device: &str, estimates: &[Estimate]) -> String {
    let paths: Vec<Path> = Path::ALL
        .into_iter()
        .filter(|path| estimates.iter().any(|it| it.request.path == *path))
        .collect();
    let least = estimates.iter().map(|it| it.request.batch).min().unwrap_or(1);
    let shown: Vec<&Estimate> =
        estimates.iter().filter(|it| it.request.batch == least && it.request.bytes > 0).collect();
    let mut panels = vec![];
    for operation in Operation::ALL {
        let of: Vec<&Estimate> =
            shown.iter().copied().filter(|it| it.request.operation == operation).collect();
        if of.is_empty() {
            continue;
        }
        let kinds: [(&str, &str, Value); 2] = [
            ("latency", "us", |it| it.single.median / 1000.0),
            ("rate", "M/s", |it| flow(it).rate),
        ];
        panels.extend(kinds.map(|(kind, unit, value)| {
            let line = |path: &Path| {
                let points = of.iter().filter(|it| it.request.path == *path);
                points.map(|it| (it.request.bytes as f64, value(it))).collect()
            };
            Panel {
                title: format!("{operation}: {kind}"),
                x: Axis::logarithmic("bytes", of.iter().map(|it| it.request.bytes as f64)),
                y: Axis::logarithmic(unit, of.iter().map(|it| value(it))),
                lines: paths.iter().map(line).collect(),
            }
        }));
    }
    let names: Vec<String> = paths.iter().map(|path| format!("path {path}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let origin = format!("simulated with the profile of {device}; latency of single requests");
    chart(&format!("Paths of {device}"), &names, &panels, 2, &origin)
}

fn flow(estimate: &Estimate) -> Flow {
    estimate.full.flows[0]
}
