// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results of rounds, as tables, as JSON lines, and as CSV rows.

use super::placement::Placement;
use super::wait::Wait;
use crate::harness::Measurement;
use crate::harness::histogram::Histogram;
use crate::harness::machine::Machine;
use crate::harness::report::{Kind, Line, Traffic, rounded, row};

/// A kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum PairCase {
    /// Round trips of messages
    Latency,
    /// Messages one way
    Throughput,
    /// A silence, and the first message after it
    Idle,
    /// Connections that are made and closed, to new listeners
    #[value(skip)]
    Connect,
    /// Connections that are made and closed, between processes that have connected before
    #[value(skip)]
    Reconnect,
}

impl PairCase {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Idle => "idle",
            Self::Connect => "connect",
            Self::Reconnect => "reconnect",
        }
    }
}

/// The setting of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    pub case: PairCase,
    pub placement: Placement,
    /// Number of pairs of processes at the same time.
    pub pairs: usize,
    /// Bytes per message.
    pub size: usize,
}

/// The rounds of one subject.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    pub name: &'static str,
    /// By round: the median round trip in microseconds, or millions of messages or connections per
    /// second.
    pub rounds: Measurement,
    /// All round trips.
    pub trips: Histogram,
    /// By round: the fraction of the time for which the waiting process used a processor.
    pub waiting: Measurement,
}

/// All subjects in one setting, Freeport first.
#[derive(Clone, PartialEq, Debug)]
pub struct PairResult {
    /// Name of the bench.
    pub bench: &'static str,
    pub setting: Setting,
    pub series: Vec<Series>,
}

impl Series {
    /// Creates an empty series.
    pub fn new(name: &'static str) -> Self {
        let rounds = Measurement { name: name.into(), rates: vec![] };
        Self { name, waiting: rounds.clone(), rounds, trips: Histogram::default() }
    }

    /// Returns a quantile of the round trips in microseconds; NaN if there are none.
    pub fn trip_us(&self, part: f64) -> f64 {
        if self.trips.is_empty() { f64::NAN } else { self.trips.quantile(part) / 1e3 }
    }

    /// Returns the value: the median round trip in microseconds, or millions of messages or
    /// connections per second. NaN if it was not measured.
    pub fn value(&self) -> f64 {
        if self.rounds.rates.is_empty() {
            return f64::NAN;
        }
        if self.trips.is_empty() { self.rounds.median() } else { self.trip_us(0.5) }
    }
}

impl PairResult {
    /// Returns the value of a subject.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.of(name).map(Series::value)
    }

    /// Returns the rounds of a subject, if it was measured.
    pub fn of(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|it| it.name == name && !it.rounds.rates.is_empty())
    }

    /// Formats the results as a table.
    pub fn text(&self) -> String {
        let Setting { case, placement, pairs, size } = self.setting;
        let title = format!("{} of {size} B, {}", case.name(), placement.name());
        match case {
            PairCase::Latency => {
                format!("{title}, measured, us per round trip\n{}", self.trips_text())
            }
            PairCase::Idle => {
                let what = "us for the first round trip after silence";
                format!("{title}, measured, {what}\n{}", self.idle_text())
            }
            PairCase::Throughput => {
                let many = if pairs == 1 { "1 pair".into() } else { format!("{pairs} pairs") };
                let unit = "million messages a second";
                format!("{title}, {many}, measured, {unit}\n{}", self.rates_text())
            }
            PairCase::Connect | PairCase::Reconnect => {
                let whose = if case == PairCase::Connect { "first contact" } else { "made again" };
                let title = format!("connections made and closed, {whose}, {}", placement.name());
                format!("{title}, measured, each second\n{}", self.connections_text())
            }
        }
    }

    fn trips_text(&self) -> String {
        let ours = self.series.first().map_or(0.0, Series::value);
        let mut text = format!("{:<24}", "");
        text += "      p50       p99     p99.9    spread   this/ours\n";
        for it in self.measured() {
            text += &format!(
                "  {:<22}{:>9.3} {:>9.3} {:>9.3} {:>8.1}% {:>11}\n",
                it.name,
                it.value(),
                it.trip_us(0.99),
                it.trip_us(0.999),
                it.rounds.spread() * 100.0,
                times(it.value() / ours),
            );
        }
        text
    }

    fn idle_text(&self) -> String {
        let ours = self.series.first().map_or(0.0, Series::value);
        let mut text = format!("{:<24}", "");
        text += "      p50       p99   this/ours   processor while waiting\n";
        for it in self.measured() {
            text += &format!(
                "  {:<22}{:>9.3} {:>9.3} {:>11} {:>21.3} %\n",
                it.name,
                it.value(),
                it.trip_us(0.99),
                times(it.value() / ours),
                it.waiting.median() * 100.0,
            );
        }
        text
    }

    fn rates_text(&self) -> String {
        let ours = self.series.first().map_or(0.0, Series::value);
        let mut text = format!("{:<24}", "");
        text += "   median       p99    spread      GB/s   ours/this\n";
        for it in self.measured() {
            text += &format!(
                "  {:<22}{:>9.3} {:>9.3} {:>8.1}% {:>9.3} {:>11}\n",
                it.name,
                it.value(),
                it.rounds.reached_by_99_percent(),
                it.rounds.spread() * 100.0,
                it.value() * self.setting.size as f64 / 1e3,
                times(ours / it.value()),
            );
        }
        text
    }

    fn connections_text(&self) -> String {
        let ours = self.series.first().map_or(0.0, Series::value);
        let mut text = format!("{:<24}   median       p99    spread   ours/this\n", "");
        for it in self.measured() {
            text += &format!(
                "  {:<22}{:>9.0} {:>9.0} {:>8.1}% {:>11}\n",
                it.name,
                it.value() * 1e6,
                it.rounds.reached_by_99_percent() * 1e6,
                it.rounds.spread() * 100.0,
                times(ours / it.value()),
            );
        }
        text
    }

    /// Returns the subjects that were measured.
    fn measured(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|it| !it.rounds.rates.is_empty())
    }

    /// Returns a line for each metric and peer.
    pub fn lines(&self) -> Vec<Line> {
        let Some((ours, peers)) = self.series.split_first() else { return vec![] };
        let of_peer = |peer: &Series| {
            let both = self.figures(ours).into_iter().zip(self.figures(peer));
            both.map(|(ours, theirs)| self.line(&ours, peer.name, &theirs)).collect::<Vec<_>>()
        };
        peers.iter().flat_map(of_peer).collect()
    }

    fn figures(&self, it: &Series) -> Vec<Figure> {
        let (p50, p99) = match self.setting.case {
            _ if it.rounds.rates.is_empty() => (f64::NAN, f64::NAN),
            PairCase::Latency | PairCase::Idle => (it.value(), it.trip_us(0.99)),
            PairCase::Throughput | PairCase::Connect | PairCase::Reconnect => {
                (it.value(), it.rounds.reached_by_99_percent())
            }
        };
        let figure = |metric, unit, times: f64| {
            let (p50, p99) = (p50 * times, p99 * times);
            Figure { metric, unit, value: p50, p50, p99 }
        };
        match self.setting.case {
            PairCase::Latency => {
                let trip = figure("round_trip", "us", 1.0);
                let slow = figure("round_trip_p999", "us", 1.0);
                vec![trip, Figure { value: it.trip_us(0.999), ..slow }]
            }
            PairCase::Idle => {
                let part = it.waiting.median();
                let waiting = figure("processor_while_waiting", "processors", 1.0);
                let p99 = it.waiting.exceeded_by_1_percent();
                let first = figure("round_trip_after_idle", "us", 1.0);
                vec![first, Figure { value: part, p50: part, p99, ..waiting }]
            }
            PairCase::Throughput => {
                let gigabytes = self.setting.size as f64 / 1e3;
                vec![figure("messages", "messages/s", 1e6), figure("throughput", "GB/s", gigabytes)]
            }
            PairCase::Connect | PairCase::Reconnect => {
                vec![figure("connections", "connections/s", 1e6)]
            }
        }
    }

    fn line(&self, ours: &Figure, peer: &str, theirs: &Figure) -> Line {
        let Setting { case, placement, pairs, size } = self.setting;
        let (more, less) = match case {
            PairCase::Latency | PairCase::Idle => (theirs.value, ours.value),
            PairCase::Throughput | PairCase::Connect | PairCase::Reconnect => {
                (ours.value, theirs.value)
            }
        };
        Line {
            bench: self.bench.into(),
            case: case.name().into(),
            traffic: Traffic::Messages { message_bytes: size, placement: placement.word(), pairs },
            metric: ours.metric.into(),
            unit: ours.unit.into(),
            kind: Kind::Measured,
            value: rounded(ours.value),
            p50: rounded(ours.p50),
            p99: rounded(ours.p99),
            peer: Some(peer.into()),
            peer_value: Some(rounded(theirs.value)),
            ratio: (less > 0.0 && !more.is_nan()).then(|| rounded(more / less)),
            published: self.published(ours.metric),
            note: ours.value.is_nan().then(|| "not measured".into()),
        }
    }

    /// Returns SocksDirect's figures, table 6.2: its sockets between two processes of one machine.
    fn published(&self, metric: &str) -> Option<f64> {
        let Setting { placement, pairs, size, .. } = self.setting;
        match metric {
            _ if (size, pairs, placement) != (8, 1, Placement::Across) => None,
            "round_trip" => Some(0.30),
            "messages" => Some(22e6),
            _ => None,
        }
    }
}

/// The values of one subject in a line.
struct Figure {
    metric: &'static str,
    unit: &'static str,
    value: f64,
    p50: f64,
    p99: f64,
}

/// Formats a ratio, if both values were measured.
fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}x") } else { "-".into() }
}

/// Returns a note if more processes were measured at the same time than there are cores.
pub fn crowd(results: &[PairResult], cores: &[usize]) -> Option<String> {
    let is_crowded = |it: &PairResult| {
        it.setting.placement.wait(it.setting.pairs, cores) == Wait::Yield
            && it.setting.placement == Placement::Across
    };
    let cores = cores.len();
    let note = format!(
        "more processes than the {cores} cores share them: rings then yield while they wait"
    );
    results.iter().any(is_crowded).then_some(note)
}

/// Returns the values of every round as CSV, with machine, commit and date in each row.
pub fn csv(results: &[PairResult], machine: &Machine) -> String {
    let mut text = String::from(
        "bench,case,message_bytes,placement,pairs,metric,unit,subject,round,value,kind,machine,\
         commit,date\n",
    );
    for result in results {
        let Setting { case, placement, pairs, size } = result.setting;
        let (metric, unit, times) = match case {
            PairCase::Latency => ("round_trip", "us", 1.0),
            PairCase::Idle => ("round_trip_after_idle", "us", 1.0),
            PairCase::Throughput => ("messages", "messages/s", 1e6),
            PairCase::Connect | PairCase::Reconnect => ("connections", "connections/s", 1e6),
        };
        for it in &result.series {
            for (round, value) in it.rounds.rates.iter().enumerate() {
                let fields = [
                    result.bench.into(),
                    case.name().into(),
                    size.to_string(),
                    placement.word().into(),
                    pairs.to_string(),
                    metric.into(),
                    unit.into(),
                    it.name.into(),
                    (round + 1).to_string(),
                    rounded(value * times).to_string(),
                    "measured".into(),
                ];
                text += &row(fields, machine);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn latency() -> PairResult {
        let series = |name, times: [u64; 3]| {
            let mut own = Series::new(name);
            times.iter().for_each(|ns| own.trips.add(Duration::from_nanos(*ns)));
            own.rounds.rates = times.map(|ns| ns as f64 / 1e3).into();
            own
        };
        let setting =
            Setting { case: PairCase::Latency, placement: Placement::Across, pairs: 1, size: 8 };
        let ours = series("freeport", [100, 102, 120]);
        PairResult {
            bench: "fabric",
            setting,
            series: vec![ours, series("TCP", [1_020, 1_021, 1_022])],
        }
    }

    fn throughput() -> PairResult {
        let series = |name, rates: [f64; 3]| {
            let mut own = Series::new(name);
            own.rounds.rates = rates.into();
            own
        };
        let setting = Setting {
            case: PairCase::Throughput,
            placement: Placement::Same,
            pairs: 2,
            size: 1_000,
        };
        let ours = series("freeport", [30.0, 20.0, 10.0]);
        PairResult { bench: "fabric", setting, series: vec![ours, series("TCP", [2.0, 1.0, 3.0])] }
    }

    #[test]
    fn above_1_is_better_for_us_for_times_and_for_rates() {
        let lines = latency().lines();
        assert_eq!((lines[0].value, lines[0].p99, lines[0].published), (0.102, 0.12, Some(0.3)));
        let ratio = lines[0].ratio.expect("a peer");
        assert!((9.9..10.1).contains(&ratio), "{ratio}");
        assert_eq!((lines[1].metric.as_str(), lines[1].value), ("round_trip_p999", 0.12));
        let lines = throughput().lines();
        assert_eq!((lines[0].value, lines[0].p99, lines[0].ratio), (20e6, 10e6, Some(10.0)));
        assert_eq!((lines[1].value, lines[1].peer_value), (20.0, Some(2.0)));
    }

    #[test]
    fn a_line_has_the_fields_of_the_contract() {
        let json = serde_json::to_string(&throughput().lines()[1]).expect("plain data");
        assert_eq!(
            json,
            "{\"bench\":\"fabric\",\"case\":\"throughput\",\"message_bytes\":1000,\
             \"placement\":\"same\",\"pairs\":2,\"metric\":\"throughput\",\"unit\":\"GB/s\",\
             \"kind\":\"measured\",\"value\":20.0,\"p50\":20.0,\"p99\":10.0,\"peer\":\"TCP\",\
             \"peer_value\":2.0,\"ratio\":10.0}"
        );
    }

    #[test]
    fn without_ours_there_is_no_figure_and_no_ratio() {
        let mut result = latency();
        result.series[0] = Series::new("freeport");
        let text = result.text();
        assert!(text.lines().count() == 3 && text.ends_with("          -\n"), "{text}");
        let json = serde_json::to_string(&result.lines()[0]).expect("plain data");
        let ends = "\"peer\":\"TCP\",\"peer_value\":1.0195,\"ratio\":null,\"published\":0.3,\
                    \"note\":\"not measured\"}";
        assert!(
            json.contains("\"value\":null,\"p50\":null,\"p99\":null") && json.ends_with(ends),
            "{json}"
        );
    }

    #[test]
    fn tables_and_rows_have_every_subject() {
        assert_eq!(latency().text().lines().count(), 4);
        assert!(throughput().text().contains("2 pairs"));
        let machine = Machine { machine: "m".into(), commit: "c".into(), date: "d".into() };
        let rows = csv(&[latency(), throughput()], &machine);
        assert_eq!(rows.lines().count(), 1 + 2 * 2 * 3);
        let expected =
            "fabric,throughput,1000,same,2,messages,messages/s,TCP,2,1000000,measured,m,c,d";
        assert!(rows.lines().any(|row| row == expected), "{rows}");
    }
}
