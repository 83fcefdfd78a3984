// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results with several metrics per round, as a table, as JSON lines, and as CSV rows.

use super::machine::Machine;
use super::report::{Kind, Line, Traffic, rounded, row};

/// A quantity that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Name in JSON lines and CSV files.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Whether higher values are better.
    pub is_rate: bool,
    /// Name in tables.
    pub title: &'static str,
}

/// Creates a metric of which higher values are better.
pub const fn rate(name: &'static str, unit: &'static str, title: &'static str) -> Metric {
    Metric { name, unit, is_rate: true, title }
}

/// Creates a metric of which lower values are better.
pub const fn cost(name: &'static str, unit: &'static str, title: &'static str) -> Metric {
    Metric { name, unit, is_rate: false, title }
}

/// One value for each metric.
pub type Round = Vec<f64>;

/// The rounds of one subject.
pub struct Series {
    /// Name of the subject.
    pub name: &'static str,
    /// Rounds in the order of measurement.
    pub rounds: Vec<Round>,
}

/// All subjects in one setting.
pub struct MetricResult {
    /// Name of the bench.
    pub bench: &'static str,
    /// Name of the case.
    pub case: String,
    /// Traffic of the case.
    pub traffic: Traffic,
    /// Metrics, in the order of the values of each round.
    pub metrics: &'static [Metric],
    /// Rounds by subject, Freeport first.
    pub series: Vec<Series>,
    /// Why the case was not measured.
    pub note: Option<String>,
}

impl Series {
    /// Returns the median of the rounds; NaN if there are none.
    pub fn median(&self, metric: usize) -> f64 {
        let values = self.sorted(metric);
        match values.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => values[count / 2],
            count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
        }
    }

    /// Returns the values of a metric in ascending order.
    pub fn sorted(&self, metric: usize) -> Vec<f64> {
        let mut values: Vec<f64> = self.rounds.iter().map(|round| round[metric]).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// Returns the value that 99 % of the rounds reach, or for costs do not exceed.
    pub fn reached(&self, metric: usize, is_rate: bool) -> f64 {
        let values = self.sorted(metric);
        let spare = values.len() / 100;
        let at = if is_rate { spare } else { values.len().saturating_sub(spare + 1) };
        values.get(at).copied().unwrap_or(f64::NAN)
    }
}

impl MetricResult {
    /// Formats the results as a table.
    pub fn text(&self) -> String {
        let mut text = format!("{}, measured, medians of rounds\n{:<26}", self.case, "");
        for it in &self.series {
            text += &format!(" {:>20}", it.name);
        }
        text += "\n";
        for (at, metric) in self.metrics.iter().enumerate() {
            text += &format!("  {:<24}", metric.title);
            for it in &self.series {
                text += &format!(" {:>20}", shown(it.median(at), metric.unit));
            }
            text += "\n";
        }
        text
    }

    /// Returns a line for each metric and peer, or one without a peer where there are none.
    pub fn lines(&self) -> Vec<Line> {
        let Some((ours, peers)) = self.series.split_first() else { return vec![] };
        let of_metric = |(at, metric): (usize, &Metric)| {
            let own = Line {
                bench: self.bench.into(),
                case: self.case.clone(),
                traffic: self.traffic,
                metric: metric.name.into(),
                unit: metric.unit.into(),
                kind: Kind::Measured,
                value: rounded(ours.median(at)),
                p50: rounded(ours.median(at)),
                p99: rounded(ours.reached(at, metric.is_rate)),
                peer: None,
                peer_value: None,
                ratio: None,
                published: None,
                note: self.note.clone(),
            };
            let beside = |peer: &Series| {
                let (value, other) = (ours.median(at), peer.median(at));
                let (more, less) = if metric.is_rate { (value, other) } else { (other, value) };
                let ratio = (less > 0.0 && !more.is_nan()).then(|| rounded(more / less));
                let peer = Some(peer.name.into());
                Line {
                    peer,
                    peer_value: Some(rounded(other)).filter(|it| !it.is_nan()),
                    ratio,
                    ..own.clone()
                }
            };
            match peers {
                [] => vec![own.clone()],
                peers => peers.iter().map(beside).collect(),
            }
        };
        self.metrics.iter().enumerate().flat_map(of_metric).collect()
    }
}

/// Formats a value with its unit for a table.
fn shown(value: f64, unit: &str) -> String {
    if value.is_nan() {
        return "-".into();
    }
    let digits = match value {
        _ if value.fract() == 0.0 => 0,
        ..1.0 => 3,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Returns the values of every round as CSV, with machine, commit and date in each row. Each
/// setting that any result has is a column; it is empty for the other results.
pub fn csv(results: &[&MetricResult], machine: &Machine) -> String {
    let settings = setting_names(results);
    let columns: String = settings.iter().map(|name| format!("{name},")).collect();
    let mut text =
        format!("bench,case,{columns}metric,unit,subject,round,value,kind,machine,commit,date\n");
    for result in results {
        let has = result.traffic.fields();
        let value = |name: &String| has.iter().find(|it| it.0 == *name).map(|it| it.1.clone());
        let setting = settings.iter().map(|name| value(name).unwrap_or_default());
        let setting: Vec<String> =
            [result.bench.into(), result.case.clone()].into_iter().chain(setting).collect();
        for it in &result.series {
            for (number, round) in it.rounds.iter().enumerate() {
                for (metric, value) in result.metrics.iter().zip(round) {
                    let fields = [
                        metric.name.into(),
                        metric.unit.into(),
                        it.name.into(),
                        (number + 1).to_string(),
                        rounded(*value).to_string(),
                        "measured".into(),
                    ];
                    text += &row(setting.iter().cloned().chain(fields), machine);
                }
            }
        }
    }
    text
}

/// Returns the name of every setting once, in order of appearance.
fn setting_names(results: &[&MetricResult]) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for (name, _) in results.iter().flat_map(|it| it.traffic.fields()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: [Metric; 3] = [
        rate("http_fresh", "requests/s", "HTTP"),
        cost("ping", "us", "ping"),
        cost("lost", "frames", "lost"),
    ];

    fn sample() -> MetricResult {
        let round = |rate: f64, time: f64| {
            let mut round = vec![0.0; METRICS.len()];
            (round[0], round[1]) = (rate, time);
            round
        };
        let series = |name, rounds: [(f64, f64); 3]| Series {
            name,
            rounds: rounds.map(|(rate, time)| round(rate, time)).into(),
        };
        let ours = series("freeport", [(100.0, 20.0), (300.0, 10.0), (200.0, 40.0)]);
        let peer = series("kernel, plain", [(400.0, 10.0), (400.0, 10.0), (400.0, 10.0)]);
        MetricResult {
            bench: "apps",
            case: "firewall".into(),
            traffic: Traffic::Frames { frame_bytes: 64 },
            metrics: &METRICS,
            series: vec![ours, peer],
            note: None,
        }
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
        let rows = csv(&[&sample()], &machine);
        assert_eq!(rows.lines().count(), 1 + 2 * 3 * METRICS.len());
        let expected = "apps,firewall,64,http_fresh,requests/s,freeport,2,300,measured,m,c,d";
        assert!(rows.lines().any(|row| row == expected), "{rows}");
    }

    #[test]
    fn rows_of_different_settings_have_the_same_columns() {
        let death = MetricResult {
            case: "death, in recv".into(),
            traffic: Traffic::Messages { message_bytes: 8, placement: "anywhere", pairs: 1 },
            ..sample()
        };
        let machine = Machine { machine: "m, of 2".into(), commit: "c".into(), date: "d".into() };
        let rows = csv(&[&sample(), &death], &machine);
        let (heads, rows) = rows.split_once('\n').unwrap();
        assert!(heads.starts_with("bench,case,frame_bytes,message_bytes,pairs,placement,metric,"));
        let tail = "ping,us,freeport,2,10,measured,\"m, of 2\",c,d";
        for expected in ["firewall,64,,,", "\"death, in recv\",,8,1,anywhere"] {
            let expected = format!("apps,{expected},{tail}");
            assert!(rows.lines().any(|row| row == expected), "{expected}: {rows}");
        }
    }
}
