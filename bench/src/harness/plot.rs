// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bar plot of results as SVG: a group of bars for each case and a bar for each subject. The
//! length of a bar is the median; a line spans the worst to the best round.

use super::drawing::{Tenths, finish, page, text};
use super::machine::Machine;
use super::report::CaseResult;
use super::rounds::Measurement;

const WIDTH: f64 = 820.0;
const LEFT: f64 = 230.0;
const RIGHT: f64 = 90.0;
const BAR: f64 = 20.0;
const ROW: f64 = 27.0;
const GROUP_GAP: f64 = 34.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 44.0;
const COLOURS: [&str; 4] = ["#1c6dd0", "#d9822b", "#8a8f98", "#3f9e6e"];

/// Bars of one case.
pub struct Group {
    /// Title above the bars.
    pub title: String,
    /// Bars from top to bottom.
    pub bars: Vec<Measurement>,
}

/// Draws results in frames per second.
pub fn svg(title: &str, results: &[CaseResult], machine: &Machine) -> String {
    let group = |it: &CaseResult| Group {
        title: format!("{} {} {} B", it.bench, it.case, it.frame_bytes),
        bars: it.measurements.clone(),
    };
    let groups: Vec<Group> = results.iter().map(group).collect();
    bars(title, "million frames a second", &groups, machine)
}

/// Draws groups of bars, all to one scale.
pub fn bars(title: &str, unit: &str, groups: &[Group], machine: &Machine) -> String {
    let measurements = || groups.iter().flat_map(|group| group.bars.iter());
    let highest = measurements().flat_map(|it| &it.rates).fold(0.0, |most: f64, it| most.max(*it));
    let scale = (WIDTH - LEFT - RIGHT) / highest.max(f64::MIN_POSITIVE);
    let rows = measurements().count() as f64;
    let height = TOP + rows * ROW + groups.len() as f64 * GROUP_GAP + BOTTOM;
    let mut out = page((WIDTH, height), 13, title);
    let axis = format!("{unit}, measured: median, and worst to best round");
    text(&mut out, (16.0, 46.0), "start", "normal", &axis);
    let mut y = TOP;
    for group in groups {
        y += GROUP_GAP;
        text(&mut out, (16.0, y - 10.0), "start", "bold", &group.title);
        for (at, it) in group.bars.iter().enumerate() {
            let (median, colour) = (it.median(), COLOURS[at % COLOURS.len()]);
            let low = it.rates.iter().copied().fold(median, f64::min) * scale;
            let high = it.rates.iter().copied().fold(median, f64::max) * scale;
            let (length, middle) = (median * scale, y + BAR / 2.0);
            text(&mut out, (LEFT - 10.0, middle + 5.0), "end", "normal", &it.name);
            out.element(
                "rect",
                &[
                    ("x", &LEFT),
                    ("y", &Tenths(y)),
                    ("width", &Tenths(length)),
                    ("height", &BAR),
                    ("fill", &colour),
                ],
            );
            let spread = format!("M{:.1} {middle:.1}H{:.1}", LEFT + low, LEFT + high);
            out.element("path", &[("d", &spread), ("stroke", &"#000000"), ("stroke-width", &1.5)]);
            let figure = format!("{median:.1}");
            let x = LEFT + high.max(length) + 8.0;
            text(&mut out, (x, middle + 5.0), "start", "normal", &figure);
            y += ROW;
        }
    }
    finish(out, height - 16.0, machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_median() {
        let measurement =
            |name: &str, rate: f64| Measurement { name: name.into(), rates: vec![rate; 3] };
        let results = [CaseResult {
            bench: "nf".into(),
            case: "forward".into(),
            metric: "pps".into(),
            frame_bytes: 64,
            measurements: vec![measurement("a<b", 40.0), measurement("c", 10.0)],
            has_ours: true,
            published: None,
            notes: vec![],
        }];
        let machine = Machine { machine: "m".into(), commit: "c".into(), date: "d".into() };
        let svg = svg("t", &results, &machine);
        let widths: Vec<f64> = svg
            .split("width=\"")
            .filter_map(|part| part.split('"').next()?.parse().ok())
            .filter(|width| *width != WIDTH && *width != 1.5)
            .collect();
        assert_eq!(widths, [500.0, 125.0]);
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
        assert!(svg.contains("m; commit c; d"));
    }
}
