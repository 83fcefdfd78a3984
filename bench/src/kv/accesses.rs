// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory accesses per operation, beside what the publication reports for pairs kept inline and in
//! blocks, and beside two other hash tables (KV-Direct, accesses per operation).
//!
//! Real tables of a few MiB are filled and used, and count the lines that they touch. The number of
//! accesses does not depend on the size of memory.

use crate::harness::report::{Kind, Line, Traffic, rounded};
use anyhow::Result;
use freeport_kv_study::sweep::{Bench, Costs, Row};
use freeport_kv_study::workload::Sizes;

/// Accesses of each table, size and utilisation.
#[derive(Default)]
pub struct Accesses {
    rows: Vec<Row>,
    bench: Bench,
}

/// Bytes of pairs, the utilisations for each, and the engine's inline threshold.
const TRIALS: [(usize, &[f64], usize); 5] = [
    (5, &[0.5], 5),
    (10, &[0.2, 0.3, 0.4, 0.5, 0.6, 0.7], 10),
    (15, &[0.5], 15),
    (62, &[0.3, 0.5, 0.6, 0.7, 0.75], 20),
    (254, &[0.3, 0.5, 0.7, 0.8, 0.85], 20),
];
const QUICK_TRIALS: usize = 2;
const OPERATIONS: u64 = 50_000;
const QUICK_OPERATIONS: u64 = 5_000;

/// A kind of operation, its costs in a trial, and what the publication says of it for pairs in
/// buckets and in blocks at a utilisation of a half: "most GETs one, most PUTs two" accesses.
type Column = (&'static str, fn(&Costs) -> f64, Option<(f64, f64)>);
const COLUMNS: [Column; 5] = [
    ("get", |costs| costs.get_hit.mean(), Some((1.0, 2.0))),
    ("get_miss", |costs| costs.get_miss.mean(), None),
    ("put", |costs| costs.update.mean(), Some((2.0, 3.0))),
    ("insert", |costs| costs.insert.mean(), None),
    ("delete", |costs| costs.delete.mean(), None),
];

/// Fills and measures the tables.
///
/// # Errors
/// None so far; trials that a table refuses are rows with the reason.
pub fn measure(is_quick: bool, progress: &mut dyn FnMut(&str)) -> Result<Accesses> {
    let operations = if is_quick { QUICK_OPERATIONS } else { OPERATIONS };
    let bench = Bench { operations, ..Bench::default() };
    let trials = if is_quick { &TRIALS[..QUICK_TRIALS] } else { &TRIALS };
    let mut rows = vec![];
    for (bytes, utilisations, threshold) in trials {
        progress(&format!("memory accesses, pairs of {bytes} B"));
        rows.extend(bench.side_by_side(&Sizes::fixed(*bytes), utilisations, *threshold));
    }
    Ok(Accesses { rows, bench })
}

impl Accesses {
    /// Costs of each table, size and utilisation.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// A table, if anything was measured.
    pub fn text(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let mib = self.bench.memory_bytes >> 20;
        let mut text = format!("accesses, counted, means of operations on tables of {mib} MiB\n");
        text += "  pair B  used  index  table      ";
        COLUMNS.iter().for_each(|(name, ..)| text += &format!(" {name:>9}"));
        text += "  variance of put\n";
        for row in &self.rows {
            text += &format!(
                "  {:>6} {:>4.0}% {:>5.0}%  {:<10}",
                row.pair_bytes,
                row.utilisation * 100.0,
                row.index_ratio * 100.0,
                row.table,
            );
            match &row.costs {
                Ok(costs) => {
                    COLUMNS.iter().for_each(|(_, of, _)| text += &format!(" {:>9.2}", of(costs)));
                    text += &format!(" {:>16.2}\n", costs.update.variance());
                }
                Err(reason) => text += &format!(" {reason}\n"),
            }
        }
        Some(text + "  published, at 50 %: get 1, put 2 for pairs in buckets; one more in blocks\n")
    }

    /// A line for each operation of the engine, beside each rival that holds as much.
    pub fn lines(&self) -> Vec<Line> {
        // The engine begins each trial.
        let trials = self.rows.chunk_by(|_, next| next.table != "engine");
        trials.flat_map(|rows| self.lines_of(rows)).collect()
    }

    fn lines_of(&self, rows: &[Row]) -> Vec<Line> {
        let [engine, rivals @ ..] = rows else { return vec![] };
        let Ok(costs) = &engine.costs else { return vec![] };
        let mut lines = vec![];
        for (metric, of, published) in COLUMNS {
            let value = rounded(of(costs));
            let is_inline = engine.pair_bytes as usize <= engine.inline_threshold;
            let published = published.filter(|_| engine.utilisation == 0.5);
            let own = Line {
                bench: "kv".into(),
                case: "accesses".into(),
                traffic: self.traffic(engine),
                metric: metric.into(),
                unit: format!("accesses at {:.0} % of memory", engine.utilisation * 100.0),
                kind: Kind::Measured,
                value,
                p50: value,
                p99: value,
                peer: None,
                peer_value: None,
                ratio: None,
                published: published.map(|(inline, block)| if is_inline { inline } else { block }),
                note: None,
            };
            lines.extend(rivals.iter().map(|rival| {
                let other = rival.costs.as_ref().ok().map(|costs| rounded(of(costs)));
                Line {
                    peer: Some(rival.table.into()),
                    peer_value: other,
                    ratio: other.map(|other| rounded(other / value)),
                    note: rival.costs.as_ref().err().map(ToString::to_string),
                    ..own.clone()
                }
            }));
        }
        lines
    }

    fn traffic(&self, row: &Row) -> Traffic {
        let pair_bytes = row.pair_bytes as usize;
        let key_bytes = self.bench.trial(&Sizes::fixed(pair_bytes), 0.5).keys().bytes();
        Traffic::Pairs {
            key_bytes,
            value_bytes: pair_bytes - key_bytes,
            pairs: (self.bench.memory_bytes as f64 * row.utilisation / row.pair_bytes) as usize,
            distribution: "uniform",
            batch: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_has_lines_with_published_figures_at_one_half() {
        let accesses = measure(true, &mut |_| ()).expect("tables are made");
        let lines = accesses.lines();
        assert_eq!(lines.len(), 7 * COLUMNS.len() * 3);
        let get = lines
            .iter()
            .find(|line| line.metric == "get" && line.published.is_some())
            .expect("pairs of 5 B at 50 %");
        assert_eq!(get.published, Some(1.0));
        assert!((1.0..1.15).contains(&get.value), "{}", get.value);
        let text = accesses.text().expect("there are rows");
        assert_eq!(text.lines().count(), 2 + 28 + 1, "{text}");
    }
}
