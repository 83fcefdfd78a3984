// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results as SVG: bars for each application and metric, each metric to its own scale, and below
//! them the steps around the rule inserted under load.

use super::live::{Live, STEP};
use super::measure::METRICS;
use crate::harness::drawing::{Drawing, Tenths, finish, page, text};
use crate::harness::machine::Machine;
use crate::harness::metrics::MetricResult;

const WIDTH: f64 = 900.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 40.0;
/// Width of a column of bars, one for each application.
const COLUMN: f64 = WIDTH / 2.0;
const LABEL: f64 = 150.0;
const FIGURE: f64 = 110.0;
const BAR: f64 = 12.0;
const GROUP_GAP: f64 = 24.0;
const STEPS_HEIGHT: f64 = 150.0;
const COLOURS: [&str; 3] = ["#1c6dd0", "#d9822b", "#8a8f98"];
/// Metrics in the drawing; the others are in the table only.
const DRAWN: [&str; 8] = [
    "http_fresh",
    "http_fresh_p99",
    "http_kept",
    "http_kept_p99",
    "tcp_up",
    "tcp_down",
    "ping_p50",
    "ping_p99",
];

/// Draws the results.
pub fn svg(results: &[MetricResult], live: Option<&Live>, machine: &Machine) -> String {
    let series = results.iter().map(|it| it.series.len()).max().unwrap_or_default();
    let group = series as f64 * (BAR + 2.0) + GROUP_GAP;
    let bars = TOP + GROUP_GAP + DRAWN.len() as f64 * group;
    let steps = if live.is_some() { STEPS_HEIGHT + 2.0 * GROUP_GAP } else { 0.0 };
    let height = bars + steps + BOTTOM;
    let mut out = page((WIDTH, height), 12, "Applications on real traffic between hosts");
    let axis = "measured: median, and worst to best round; each metric has its own scale";
    text(&mut out, (16.0, 46.0), "start", "normal", axis);
    for (at, result) in results.iter().enumerate() {
        let x = at as f64 * COLUMN + 16.0;
        text(&mut out, (x, TOP + 14.0), "start", "bold", &result.case);
        draw_column(&mut out, result, (x, TOP + GROUP_GAP), group);
    }
    if let Some(live) = live {
        draw_timeline(&mut out, live, bars + GROUP_GAP);
    }
    finish(out, height - 14.0, machine)
}

/// Draws the bars of an application.
fn draw_column(out: &mut Drawing, result: &MetricResult, (x, top): (f64, f64), group: f64) {
    let drawn = METRICS.iter().enumerate().filter(|(_, it)| DRAWN.contains(&it.name));
    for (place, (at, metric)) in drawn.enumerate() {
        let mut y = top + place as f64 * group + GROUP_GAP - 6.0;
        let title = format!("{} ({})", metric.name, metric.unit);
        text(out, (x, y - 4.0), "start", "normal", &title);
        let all = result.series.iter().flat_map(|it| it.sorted(at));
        let highest = all.fold(f64::MIN_POSITIVE, f64::max);
        let scale = (COLUMN - LABEL - FIGURE) / highest;
        for (number, it) in result.series.iter().enumerate() {
            let (values, median) = (it.sorted(at), it.median(at));
            let [low, high] = [values.first(), values.last()].map(|it| it.map_or(0.0, |it| *it));
            let (left, middle) = (x + LABEL, y + BAR / 2.0);
            text(out, (left - 6.0, middle + 4.0), "end", "normal", it.name);
            out.element(
                "rect",
                &[
                    ("x", &left),
                    ("y", &Tenths(y)),
                    ("width", &Tenths(median * scale)),
                    ("height", &BAR),
                    ("fill", &COLOURS[number % COLOURS.len()]),
                ],
            );
            let (from, to) = (left + low * scale, left + high * scale);
            let spread = format!("M{from:.1} {middle:.1}H{to:.1}");
            out.element("path", &[("d", &spread), ("stroke", &"#000000")]);
            let end = left + high.max(median) * scale + 6.0;
            text(out, (end, middle + 4.0), "start", "normal", &format!("{median:.0}"));
            y += BAR + 2.0;
        }
    }
}

/// Draws a transfer and the concurrent requests, before and after the rule.
fn draw_timeline(out: &mut Drawing, live: &Live, top: f64) {
    let title = format!(
        "a rule inserted under load: the call took {:.0} us; a step is {} ms",
        live.call.as_secs_f64() * 1e6,
        STEP.as_millis()
    );
    text(out, (16.0, top), "start", "bold", &title);
    let (left, width) = (70.0, WIDTH - 140.0);
    let (base, room) = (top + STEPS_HEIGHT, STEPS_HEIGHT - 30.0);
    let step = width / live.steps.len().max(1) as f64;
    let rule = left + (live.at as f64 + 0.5) * step;
    let rule = format!("M{rule:.1} {:.1}V{base:.1}", base - room);
    out.element("path", &[("d", &rule), ("stroke", &"#b3261e"), ("stroke-dasharray", &"4 3")]);
    let axis = format!("M{left} {base:.1}h{width}");
    out.element("path", &[("d", &axis), ("stroke", &"#000000")]);
    let lines: [(&str, Vec<f64>); 2] = [
        ("MB/s", live.steps.iter().map(|step| step.0).collect()),
        ("requests/s", live.steps.iter().map(|step| step.1).collect()),
    ];
    for (number, (unit, values)) in lines.iter().enumerate() {
        let highest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let points = values.iter().enumerate().map(|(at, value)| {
            let (x, y) = (left + (at as f64 + 0.5) * step, base - value / highest * room);
            format!("{x:.1},{y:.1}")
        });
        let points = points.collect::<Vec<_>>().join(" ");
        let colour = COLOURS[number];
        out.element("polyline", &[("points", &points), ("fill", &"none"), ("stroke", &colour)]);
        let x = if number == 0 { 16.0 } else { WIDTH - 16.0 };
        let anchor = if number == 0 { "start" } else { "end" };
        let scale = format!("{highest:.0} {unit}");
        text(out, (x, base - room - 6.0), anchor, "normal", &scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::metrics::Series;
    use crate::harness::report::Traffic;
    use std::time::Duration;

    #[test]
    fn a_bar_is_as_long_as_its_median_and_the_rule_is_at_its_step() {
        let mut round = vec![1.0; METRICS.len()];
        round[0] = 50.0;
        let ours = Series { name: "freeport", rounds: vec![round.clone(); 3] };
        round[0] = 100.0;
        let peer = Series { name: "kernel", rounds: vec![round.clone(); 3] };
        let results = [MetricResult {
            bench: "apps",
            case: "firewall".into(),
            traffic: Traffic::Frames { frame_bytes: 64 },
            metrics: &METRICS,
            series: vec![ours, peer],
            note: None,
        }];
        let live = Live {
            call: Duration::from_micros(70),
            first_answer: Duration::from_millis(1),
            steps: vec![(5.0, 100.0), (10.0, 50.0)],
            at: 1,
        };
        let machine = Machine { machine: "m".into(), commit: "c".into(), date: "d".into() };
        let drawing = svg(&results, Some(&live), &machine);
        assert!(drawing.contains("width=\"95.0\"") && drawing.contains("width=\"190.0\""));
        assert!(drawing.contains("<path d=\"M640.0 "), "{drawing}");
        assert!(drawing.contains("took 70 us"));
        assert_eq!(drawing.matches("<polyline").count(), 2);
    }
}
