// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drawings of the results: rates as bars, and memory accesses against the utilisation of memory.

use super::case::OPS;
use super::servers::{self, OF_SERVERS};
use crate::harness::Measurement;
use crate::harness::machine::Machine;
use crate::harness::metrics::{Metric, MetricResult, Series};
use crate::harness::plot::{self, Group};
use crate::harness::report::Traffic;
use freeport_kv_study::sweep::{Costs, Row};
use freeport_svg::chart::{self, Axis, Panel};

/// Draws the operations per second of every case; none if there are none.
pub fn rates(results: &[MetricResult], machine: &Machine) -> Option<String> {
    let title = |it: &MetricResult| match it.traffic {
        Traffic::Pairs { key_bytes, value_bytes, distribution, .. } => {
            Some(format!("{}, {key_bytes} + {value_bytes} B, {distribution}", it.case))
        }
        _ => None,
    };
    bars("The key-value engine in memory", &OPS, results, title, machine)
}

/// Draws the operations per second of servers with one protocol; none if there are none.
pub fn servers(results: &[MetricResult], machine: &Machine) -> Option<String> {
    let title = |it: &MetricResult| (!servers::is_batched(&it.case)).then(|| servers::title(it));
    bars("Key-value servers", &OF_SERVERS, results, title, machine)
}

/// Draws the operations per second of servers with the batched protocol; none if there are none.
pub fn batches(results: &[MetricResult], machine: &Machine) -> Option<String> {
    let title = |it: &MetricResult| servers::is_batched(&it.case).then(|| servers::title(it));
    bars("The batched protocol", &OF_SERVERS, results, title, machine)
}

/// Draws the first metric of all results that have these metrics and a title.
fn bars(
    heading: &str,
    metrics: &[Metric],
    results: &[MetricResult],
    title: impl Fn(&MetricResult) -> Option<String>,
    machine: &Machine,
) -> Option<String> {
    let bar = |series: &Series| Measurement {
        name: series.name.into(),
        rates: series.rounds.iter().map(|round| round[0]).collect(),
    };
    let group = |it: &MetricResult| {
        let measured = it.series.iter().filter(|series| !series.rounds.is_empty());
        Some(Group { title: title(it)?, bars: measured.map(bar).collect() })
    };
    let of_metrics = results.iter().filter(|it| it.metrics == metrics);
    let groups: Vec<Group> = of_metrics.filter_map(group).collect();
    (!groups.is_empty()).then(|| plot::bars(heading, metrics[0].unit, &groups, machine))
}

/// A kind of operation with its mean costs.
type Operation = (&'static str, fn(&Costs) -> f64);
const OPERATIONS: [Operation; 2] =
    [("get", |costs| costs.get_hit.mean()), ("put", |costs| costs.update.mean())];

/// Draws mean accesses against utilisation, a panel for each size of pairs and operation, of sizes
/// with several utilisations; none if there is none.
pub fn accesses(rows: &[Row], machine: &Machine) -> Option<String> {
    let mut tables: Vec<&'static str> = vec![];
    let mut sizes: Vec<f64> = vec![];
    for row in rows {
        if !tables.contains(&row.table) {
            tables.push(row.table);
        }
        if !sizes.contains(&row.pair_bytes) {
            sizes.push(row.pair_bytes);
        }
    }
    let line = |size: f64, table: &str, of: fn(&Costs) -> f64| -> Vec<(f64, f64)> {
        let its = rows.iter().filter(|row| row.pair_bytes == size && row.table == table);
        let point = |row: &Row| Some((row.utilisation * 100.0, of(row.costs.as_ref().ok()?)));
        its.filter_map(point).collect()
    };
    let panel = |(size, (name, of)): (f64, Operation)| {
        let lines: Vec<_> = tables.iter().map(|table| line(size, table, of)).collect();
        let points = lines.iter().flatten();
        let highest = points.map(|point| point.1).fold(0.0, f64::max);
        let has_line = lines.iter().any(|line| line.len() > 1);
        has_line.then(|| Panel {
            title: format!("{name}, pairs of {size} B"),
            x: axis("% of memory used by pairs", (0.0, 100.0)),
            y: axis("accesses", (0.0, highest.ceil() + 1.0)),
            lines,
        })
    };
    let settings = sizes.iter().flat_map(|&size| OPERATIONS.map(|operation| (size, operation)));
    let panels: Vec<Panel> = settings.filter_map(panel).collect();
    let title = "Memory accesses per operation, counted";
    (!panels.is_empty()).then(|| chart::svg(title, &tables, &panels, 2, &machine.line()))
}

fn axis(label: &str, range: (f64, f64)) -> Axis {
    Axis { label: label.into(), range, is_logarithmic: false }
}
