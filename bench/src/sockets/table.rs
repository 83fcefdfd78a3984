// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The applications for people: a line for each, plain and accelerated beside each other, and a
//! drawing.

use super::applications::Cell;
use super::launcher::Mode;
use crate::harness::Measurement;
use crate::machine::Machine;
use crate::metrics::{MetricResult, Series};
use crate::plot::{self, Group};

/// Of the first column.
const TITLE: usize = 34;

/// Requests to servers.
pub fn of_requests<'a>(rows: impl Iterator<Item = (String, &'a MetricResult)>) -> String {
    let head = "   requests/s: plain  freeport   ratio   p50 us: plain, freeport   p99 us: plain, \
                freeport   cpu us each: plain, freeport\n";
    let mut text = format!("{:TITLE$}{head}", "");
    for (title, result) in rows {
        text += &format!("  {title:<32}");
        let [plain, ours] = both(result);
        if let Some(reason) = result.note.as_ref().filter(|_| plain.rounds.is_empty()) {
            text += &format!("   {reason}\n");
            continue;
        }
        let pair = |metric| [plain.median(metric), ours.median(metric)].map(|it| shown(it, 1));
        let rates = [plain, ours].map(|it| shown(it.median(0), 0));
        let [p50, p99] = [1, 2].map(pair);
        // Seconds for a million are microseconds for one.
        let processor = [plain, ours].map(|it| shown(it.median(3) + it.median(4), 2));
        text += &format!(
            "{:>20}{:>10}{:>8}{:>16}{:>10}{:>16}{:>10}{:>20}{:>10}\n",
            rates[0],
            rates[1],
            ratio(ours.median(0), plain.median(0)),
            p50[0],
            p50[1],
            p99[0],
            p99[1],
            processor[0],
            processor[1],
        );
    }
    text
}

/// Bulk transfers.
pub fn of_bytes<'a>(rows: impl Iterator<Item = (String, &'a MetricResult)>) -> String {
    let head = "         GB/s: plain  freeport   ratio   cpu s each GB: plain, freeport\n";
    let mut text = format!("{:TITLE$}{head}", "");
    for (title, result) in rows {
        text += &format!("  {title:<32}");
        let [plain, ours] = both(result);
        if let Some(reason) = result.note.as_ref().filter(|_| plain.rounds.is_empty()) {
            text += &format!("   {reason}\n");
            continue;
        }
        let processor = [plain, ours].map(|it| shown(it.median(1) + it.median(2), 3));
        text += &format!(
            "{:>20}{:>10}{:>8}{:>23}{:>10}\n",
            shown(plain.median(0), 2),
            shown(ours.median(0), 2),
            ratio(ours.median(0), plain.median(0)),
            processor[0],
            processor[1],
        );
    }
    text
}

/// Draws how many times the plain median each round reached.
pub fn drawing(results: &[(Cell, MetricResult)], machine: &Machine) -> String {
    let groups = results.iter().filter_map(|(cell, result)| {
        let [plain, _] = both(result);
        let unit = plain.median(0);
        let bar = |it: &Series| Measurement {
            name: it.name.into(),
            rates: it.rounds.iter().map(|round| round[0] / unit).collect(),
        };
        let measured = result.series.iter().filter(|it| !it.rounds.is_empty());
        let bars: Vec<Measurement> = measured.map(bar).collect();
        (unit > 0.0).then(|| Group { title: cell.title(), bars })
    });
    let title = "Unmodified programs with accelerated sockets";
    let unit = "requests or bytes a second, times the plain median";
    plot::bars(title, unit, &groups.collect::<Vec<_>>(), machine)
}

fn both(result: &MetricResult) -> [&Series; 2] {
    static NOBODY: Series = Series { name: "", rounds: vec![] };
    let of = |mode: Mode| result.series.iter().find(|it| it.name == mode.name());
    [Mode::Plain, Mode::Accelerated].map(|mode| of(mode).unwrap_or(&NOBODY))
}

fn shown(value: f64, digits: usize) -> String {
    if value.is_nan() { "-".into() } else { format!("{value:.digits$}") }
}

fn ratio(ours: f64, plain: f64) -> String {
    match ours / plain {
        ratio if ratio.is_finite() => format!("{ratio:.2}x"),
        _ => "-".into(),
    }
}
