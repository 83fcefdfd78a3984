// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of applications, with plain and accelerated results side by side, and their drawing.

use super::applications::Cell;
use super::launcher::Mode;
use crate::harness::Measurement;
use crate::harness::machine::Machine;
use crate::harness::metrics::{MetricResult, Series};
use crate::harness::plot::{self, Group};

/// Width of the first column.
const TITLE: usize = 36;

/// Formats the results of servers.
pub fn of_requests<'a>(rows: impl Iterator<Item = (String, &'a MetricResult)>) -> String {
    let groups =
        format!("{:>28}{:>18}{:>18}{:>18}", "requests/s", "p50 us", "p99 us", "cpu us each");
    let pair = format!("{:>9}{:>9}", "plain", "freeport");
    let rates = format!("{:>10}{:>10}{:>8}", "plain", "freeport", "ratio");
    let mut text = format!("{:TITLE$}{groups}\n{:TITLE$}{rates}{pair}{pair}{pair}\n", "", "");
    for (title, result) in rows {
        let [plain, ours] = both(result);
        let pair =
            |figure: &dyn Fn(&Series) -> String| format!("{:>9}{:>9}", figure(plain), figure(ours));
        let figures = compared(plain, ours, 0)
            + &pair(&|it| shown(it.median(1), 1))
            + &pair(&|it| shown(it.median(2), 1))
            // Seconds per million requests are microseconds per request.
            + &pair(&|it| shown(it.median(3) + it.median(4), 2));
        text += &line(&title, result, &figures);
    }
    text
}

/// Formats the results of bulk transfers.
pub fn of_bytes<'a>(rows: impl Iterator<Item = (String, &'a MetricResult)>) -> String {
    let groups = format!("{:>28}{:>18}", "GB/s", "cpu s each GB");
    let rates = format!("{:>10}{:>10}{:>8}", "plain", "freeport", "ratio");
    let pair = format!("{:>9}{:>9}", "plain", "freeport");
    let mut text = format!("{:TITLE$}{groups}\n{:TITLE$}{rates}{pair}\n", "", "");
    for (title, result) in rows {
        let [plain, ours] = both(result);
        let [plain_cpu, ours_cpu] = [plain, ours].map(|it| shown(it.median(1) + it.median(2), 3));
        let figures = compared(plain, ours, 2) + &format!("{plain_cpu:>9}{ours_cpu:>9}");
        text += &line(&title, result, &figures);
    }
    text
}

/// Formats the first value of both modes, and their ratio.
fn compared(plain: &Series, ours: &Series, digits: usize) -> String {
    let [plain, ours] = [plain, ours].map(|it| it.median(0));
    let ratio = Some(ours / plain).filter(|it| it.is_finite());
    let ratio = ratio.map_or("-".into(), |it| format!("{it:.2}x"));
    format!("{:>10}{:>10}{ratio:>8}", shown(plain, digits), shown(ours, digits))
}

/// Formats a row, or the reason why there are no values.
fn line(title: &str, result: &MetricResult, figures: &str) -> String {
    let is_empty = result.series.iter().all(|it| it.rounds.is_empty());
    match &result.note {
        Some(reason) if is_empty => format!("  {title:<34}   {reason}\n"),
        Some(doubt) => format!("  {title:<34}{figures}   {doubt}\n"),
        None => format!("  {title:<34}{figures}\n"),
    }
}

/// Draws the rounds, relative to the plain median.
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

#[cfg(test)]
mod tests {
    use super::super::Case;
    use super::super::cells;
    use super::*;
    use crate::harness::machine::Machine;

    fn sample(plain: &[f64], ours: &[f64], note: Option<&str>) -> (Cell, MetricResult) {
        let cell = cells::of(Case::Redis, true, 2)[0];
        let mut result = cell.nothing();
        let rounds =
            |rates: &[f64]| rates.iter().map(|it| vec![*it, 20.0, 30.0, 1.5, 0.5]).collect();
        (result.series[0].rounds, result.series[1].rounds) = (rounds(ours), rounds(plain));
        result.note = note.map(str::to_owned);
        (cell, result)
    }

    fn text(rows: &[(Cell, MetricResult)]) -> String {
        of_requests(rows.iter().map(|(cell, result)| (cell.title(), result)))
    }

    #[test]
    fn plain_and_ours_are_beside_each_other() {
        let text = text(&[sample(&[100.0, 300.0, 200.0], &[500.0], None)]);
        let row: Vec<&str> = text.lines().nth(2).unwrap_or_default().split_whitespace().collect();
        let figures = ["200", "500", "2.50x", "20.0", "20.0", "30.0", "30.0", "2.00", "2.00"];
        assert!(row.ends_with(&figures), "{text}");
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let doubt = sample(&[100.0], &[], Some("nothing was accelerated"));
        let text = text(&[sample(&[], &[], Some("it is not installed")), doubt]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert!(lines[0].ends_with("   it is not installed"), "{text}");
        assert!(lines[1].contains(" 100 ") && lines[1].ends_with("nothing was accelerated"));
        assert!(!text.contains("NaN"), "{text}");
    }

    #[test]
    fn bars_are_times_the_plain_median() {
        let machine = Machine { machine: "m".into(), commit: "c".into(), date: "d".into() };
        let rows = [sample(&[100.0], &[250.0], None), sample(&[], &[], Some("missing"))];
        let drawing = drawing(&rows, &machine);
        assert_eq!((drawing.matches(">2.5<").count(), drawing.matches(">1.0<").count()), (1, 1));
    }
}
