// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the rounds gave: as a table, as lines for programs, and as rows.

use super::measure::{METRICS, Metric, Round};
use crate::machine::Machine;
use crate::report::{Kind, Line, Traffic, row};

/// The longest frames: those of bulk transfers.
pub const FRAME_BYTES: usize = 1_514;

/// The rounds of one network.
pub struct Series {
    pub name: &'static str,
    pub rounds: Vec<Round>,
}

/// All networks of an application, ours first.
pub struct AppResult {
    pub app: &'static str,
    pub series: Vec<Series>,
}

impl Series {
    pub fn median(&self, metric: usize) -> f64 {
        let values = self.sorted(metric);
        match values.len() {
            0 => 0.0,
            count if count % 2 == 1 => values[count / 2],
            count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
        }
    }

    /// From the worst round to the best, or the other way round.
    pub fn sorted(&self, metric: usize) -> Vec<f64> {
        let mut values: Vec<f64> = self.rounds.iter().map(|round| round[metric]).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// What 99 of a hundred rounds reached, or stayed below.
    fn reached(&self, metric: usize) -> f64 {
        let values = self.sorted(metric);
        let spare = values.len() / 100;
        let at =
            if METRICS[metric].is_rate { spare } else { values.len().saturating_sub(spare + 1) };
        values.get(at).copied().unwrap_or_default()
    }
}

impl AppResult {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{}, measured, medians of rounds\n{:<26}", self.app, "");
        for it in &self.series {
            text += &format!(" {:>20}", it.name);
        }
        text += "\n";
        for (at, metric) in METRICS.iter().enumerate() {
            text += &format!("  {:<24}", metric.title);
            for it in &self.series {
                text += &format!(" {:>20}", shown(it.median(at), metric));
            }
            text += "\n";
        }
        text
    }

    /// A line for each metric and peer.
    pub fn lines(&self) -> Vec<Line> {
        let Some((ours, peers)) = self.series.split_first() else { return vec![] };
        let of_metric = |(at, metric): (usize, &Metric)| {
            let own = Line {
                bench: "apps".into(),
                case: self.app.into(),
                traffic: Traffic::Frames { frame_bytes: FRAME_BYTES },
                metric: metric.name.into(),
                unit: metric.unit.into(),
                kind: Kind::Measured,
                value: ours.median(at),
                p50: ours.median(at),
                p99: ours.reached(at),
                peer: None,
                peer_value: None,
                ratio: None,
                published: None,
            };
            let beside = move |peer: &Series| {
                let (value, other) = (ours.median(at), peer.median(at));
                let (more, less) = if metric.is_rate { (value, other) } else { (other, value) };
                let ratio = (less > 0.0).then(|| more / less);
                let peer = Some(peer.name.into());
                Line { peer, peer_value: Some(other), ratio, ..own.clone() }
            };
            peers.iter().map(beside).collect::<Vec<_>>()
        };
        METRICS.iter().enumerate().flat_map(of_metric).collect()
    }
}

fn shown(value: f64, metric: &Metric) -> String {
    let digits = usize::from(value < 100.0 && value.fract() != 0.0);
    format!("{value:.digits$} {}", metric.unit)
}

/// The values of every round, with the machine, commit and date in each row.
pub fn csv(results: &[AppResult], machine: &Machine) -> String {
    let mut text =
        String::from("bench,case,metric,unit,subject,round,value,kind,machine,commit,date\n");
    for result in results {
        for it in &result.series {
            for (number, round) in it.rounds.iter().enumerate() {
                for (metric, value) in METRICS.iter().zip(round) {
                    let fields = [
                        "apps".into(),
                        result.app.into(),
                        metric.name.into(),
                        metric.unit.into(),
                        it.name.into(),
                        (number + 1).to_string(),
                        format!("{value:.1}"),
                        "measured".into(),
                    ];
                    text += &row(fields, machine);
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> AppResult {
        let round = |rate: f64, time: f64| {
            let mut round = [0.0; METRICS.len()];
            (round[0], round[1]) = (rate, time);
            round
        };
        let series = |name, rounds: [(f64, f64); 3]| Series {
            name,
            rounds: rounds.map(|(rate, time)| round(rate, time)).into(),
        };
        let ours = series("freeport", [(100.0, 20.0), (300.0, 10.0), (200.0, 40.0)]);
        let peer = series("kernel, plain", [(400.0, 10.0), (400.0, 10.0), (400.0, 10.0)]);
        AppResult { app: "firewall", series: vec![ours, peer] }
    }

    #[test]
    fn above_1_is_better_for_us_for_rates_and_for_times() {
        let lines = sample().lines();
        assert_eq!((lines[0].value, lines[0].p99, lines[0].ratio), (200.0, 100.0, Some(0.5)));
        assert_eq!((lines[1].value, lines[1].p99, lines[1].ratio), (20.0, 40.0, Some(0.5)));
        assert_eq!(lines.len(), METRICS.len());
        assert_eq!(lines[2].ratio, None, "nothing is over 0");
    }

    #[test]
    fn the_table_and_the_rows_have_every_metric() {
        let text = sample().text();
        assert_eq!(text.lines().count(), 2 + METRICS.len());
        assert!(text.contains("200 requests/s"), "{text}");
        let machine = Machine { machine: "m".into(), commit: "c".into(), date: "d".into() };
        let rows = csv(&[sample()], &machine);
        assert_eq!(rows.lines().count(), 1 + 2 * 3 * METRICS.len());
        let expected = "apps,firewall,http_fresh,requests/s,freeport,2,300.0,measured,m,c,d";
        assert!(rows.lines().any(|row| row == expected), "{rows}");
    }
}
