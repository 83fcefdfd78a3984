// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results as tables, as JSON with one object per line, and as CSV files.

use super::machine::Machine;
use super::rounds::Measurement;
use anyhow::Result;
use serde::Serialize;

/// Output of a bench.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Output {
    /// Results, for standard output.
    pub text: String,
    /// Remarks on the results, for standard error when the results are JSON lines.
    pub notes: String,
    /// Measurements that failed; the others succeeded.
    pub failures: Vec<String>,
}

/// Metric of most benches.
pub const PACKETS_PER_SECOND: &str = "pps";

/// How a figure was obtained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Measured by a clock on this machine.
    Measured,
    /// Counted in cycles of simulated hardware, at an assumed clock rate.
    Simulated,
    /// Calculated from a model.
    Modelled,
}

/// The traffic that the subjects of a case process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Traffic {
    /// Network frames.
    Frames {
        /// Frame size in bytes, without the frame check sequence.
        frame_bytes: usize,
    },
    /// Messages between processes.
    Messages {
        /// Bytes per message.
        message_bytes: usize,
        /// Where the processes of a pair run.
        placement: &'static str,
        /// Number of pairs of processes at the same time.
        pairs: usize,
    },
    /// Operations on a key-value store in the same process.
    Pairs {
        /// Bytes per key.
        key_bytes: usize,
        /// Bytes per value.
        value_bytes: usize,
        /// Number of pairs in the store.
        pairs: usize,
        /// How operations choose their keys.
        distribution: &'static str,
        /// Operations in a batch.
        batch: usize,
    },
    /// Operations on a key-value server.
    Operations {
        /// Bytes per key.
        key_bytes: usize,
        /// Bytes per value.
        value_bytes: usize,
        /// Number of pairs in the store.
        pairs: usize,
        /// How operations choose their keys.
        distribution: &'static str,
        /// Number of connections at the same time.
        connections: usize,
        /// Number of outstanding requests per connection.
        pipeline: usize,
    },
    /// Requests to a server.
    Requests {
        /// Bytes of the requested value.
        value_bytes: usize,
        /// Number of connections at the same time.
        connections: usize,
        /// Number of outstanding requests per connection.
        pipeline: usize,
        /// Threads or processes of the server.
        workers: usize,
        /// Where the server and the client run.
        placement: &'static str,
    },
}

impl Traffic {
    /// Returns the fields and their values, as columns of a CSV file.
    pub fn fields(&self) -> Vec<(String, String)> {
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) else {
            return vec![];
        };
        let text = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        fields.into_iter().map(|(name, value)| (name, text(value))).collect()
    }
}

/// A figure of Freeport beside that of one peer. Field names are those of the JSON lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Name of the bench.
    pub bench: String,
    /// Name of the case.
    pub case: String,
    /// Traffic of the case.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// See [`Kind`].
    pub kind: Kind,
    /// The value: the median, unless the metric says otherwise. A value that was not measured is
    /// NaN, and `null` in JSON.
    pub value: f64,
    /// Median of the rounds, or of the individual times.
    pub p50: f64,
    /// Value that 99 % of the rounds or times reach.
    pub p99: f64,
    /// Name of the peer; none where no peer can run.
    pub peer: Option<String>,
    /// Median of the peer.
    pub peer_value: Option<f64>,
    /// Freeport over the peer: above 1, Freeport is better.
    pub ratio: Option<f64>,
    /// Value that a publication reports for the same case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Why something was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// All measurements of one case.
#[derive(Clone, PartialEq, Debug)]
pub struct CaseResult {
    /// Name of the bench.
    pub bench: String,
    /// Name of the case.
    pub case: String,
    /// Frame size in bytes, without the frame check sequence.
    pub frame_bytes: usize,
    /// Name of the metric in JSON lines.
    pub metric: String,
    /// Freeport first, then the peers and the limit.
    pub measurements: Vec<Measurement>,
    /// Whether the first measurement is Freeport's; some cases have none yet.
    pub has_ours: bool,
    /// Packets per second that a publication reports for the same case.
    pub published: Option<f64>,
    /// Contents of each figure, and which peers could not run and why.
    pub notes: Vec<String>,
}

impl CaseResult {
    /// Returns a line for each peer, or one line without a peer if there are none. Without a
    /// measurement of Freeport there are no lines.
    pub fn lines(&self) -> Vec<Line> {
        let ours = self.measurements.split_first().filter(|_| self.has_ours);
        let Some((ours, peers)) = ours else { return vec![] };
        let alone = Line {
            bench: self.bench.clone(),
            case: self.case.clone(),
            traffic: Traffic::Frames { frame_bytes: self.frame_bytes },
            metric: self.metric.clone(),
            unit: "packets/s".into(),
            kind: Kind::Measured,
            value: per_second(ours.median()),
            p50: per_second(ours.median()),
            p99: per_second(ours.reached_by_99_percent()),
            peer: None,
            peer_value: None,
            ratio: None,
            published: self.published,
            note: None,
        };
        if peers.is_empty() {
            return vec![alone];
        }
        let beside = |peer: &Measurement| Line {
            peer: Some(peer.name.clone()),
            peer_value: Some(per_second(peer.median())),
            ratio: (peer.median() > 0.0).then(|| ours.median() / peer.median()),
            ..alone.clone()
        };
        peers.iter().map(beside).collect()
    }

    /// Formats the measurements as a table.
    pub fn text(&self) -> String {
        let what = format!("{} {}, frames of {} B", self.bench, self.case, self.frame_bytes);
        let metric = match self.metric.as_str() {
            PACKETS_PER_SECOND => String::new(),
            metric => format!(" ({metric})"),
        };
        let mut text = format!("{what}, measured, million packets a second{metric}\n");
        let ours = self.measurements.first().filter(|_| self.has_ours);
        let ours = ours.map(Measurement::median);
        text += "                          median       p99    spread   ns/packet   ours/this\n";
        for it in &self.measurements {
            let median = it.median();
            let ratio = ours
                .map_or("-".into(), |ours| format!("{:.2}x", ours / median.max(f64::MIN_POSITIVE)));
            text += &format!(
                "  {:<22} {median:>9.2} {:>9.2} {:>8.1}% {:>11.2} {ratio:>11}\n",
                it.name,
                it.reached_by_99_percent(),
                it.spread() * 100.0,
                1e3 / median.max(f64::MIN_POSITIVE),
            );
        }
        for note in &self.notes {
            text += &format!("  - {note}\n");
        }
        text
    }
}

/// Returns JSON lines with the notes on standard error, or tables that include the notes.
///
/// # Errors
/// A result cannot be written as JSON.
pub fn output(results: &[CaseResult], machine: &Machine, as_json: bool) -> Result<Output> {
    let mut output = Output::default();
    if !as_json {
        for result in results {
            output.text += &(result.text() + "\n");
        }
        let place = format!("{}; commit {}; {}\n", machine.machine, machine.commit, machine.date);
        output.text += &place;
        return Ok(output);
    }
    for result in results {
        for line in result.lines() {
            output.text += &(serde_json::to_string(&line)? + "\n");
        }
        for note in &result.notes {
            output.notes +=
                &format!("{} {} {} B: {note}\n", result.bench, result.case, result.frame_bytes);
        }
    }
    Ok(output)
}

/// Returns JSON lines with the notes on standard error, or tables followed by the notes.
///
/// # Errors
/// A result cannot be written as JSON.
pub fn tables_or_lines(
    tables: impl Iterator<Item = String>,
    lines: impl Iterator<Item = Line>,
    notes: &[String],
    machine: &Machine,
    as_json: bool,
) -> Result<Output> {
    let mut output = Output::default();
    if as_json {
        for line in lines {
            output.text += &(serde_json::to_string(&line)? + "\n");
        }
        output.notes = notes.iter().map(|note| format!("{note}\n")).collect();
        return Ok(output);
    }
    tables.for_each(|table| output.text += &(table + "\n"));
    notes.iter().for_each(|note| output.text += &format!("- {note}\n"));
    let place = format!("{}; commit {}; {}\n", machine.machine, machine.commit, machine.date);
    output.text += &place;
    Ok(output)
}

/// Returns the values of every round as CSV, with machine, commit and date in each row.
pub fn csv(results: &[CaseResult], machine: &Machine) -> String {
    let mut text =
        String::from("bench,case,frame_bytes,subject,round,pps,kind,machine,commit,date\n");
    for result in results {
        for it in &result.measurements {
            for (round, rate) in it.rates.iter().enumerate() {
                let fields = [
                    result.bench.clone(),
                    result.case.clone(),
                    result.frame_bytes.to_string(),
                    it.name.clone(),
                    (round + 1).to_string(),
                    format!("{:.0}", per_second(*rate)),
                    "measured".into(),
                ];
                text += &row(fields, machine);
            }
        }
    }
    text
}

/// Converts millions of packets per second to whole packets per second.
fn per_second(millions: f64) -> f64 {
    (millions * 1e6).round()
}

/// Rounds to six digits; further digits are noise.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Returns a row of a CSV file: the fields of a value, then machine, commit and date.
pub(crate) fn row(fields: impl IntoIterator<Item = String>, machine: &Machine) -> String {
    let Machine { machine, commit, date } = machine.clone();
    let fields = fields.into_iter().chain([machine, commit, date]);
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

/// Quotes a field of a CSV file where necessary (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> CaseResult {
        let measurement =
            |name: &str, rates: &[f64]| Measurement { name: name.into(), rates: rates.to_vec() };
        CaseResult {
            bench: "nf".into(),
            case: "forward".into(),
            frame_bytes: 64,
            metric: PACKETS_PER_SECOND.into(),
            measurements: vec![
                measurement("freeport", &[10.0, 12.0, 11.0]),
                measurement("kernel, XDP", &[5.0, 5.5, 6.0]),
            ],
            has_ours: true,
            published: None,
            notes: vec!["sizes exclude the FCS".into()],
        }
    }

    #[test]
    fn a_line_has_exactly_the_fields_of_the_contract() {
        let lines = sample().lines();
        let json = serde_json::to_string(&lines[0]).expect("plain data");
        assert_eq!(
            json,
            "{\"bench\":\"nf\",\"case\":\"forward\",\"frame_bytes\":64,\"metric\":\"pps\",\
             \"unit\":\"packets/s\",\"kind\":\"measured\",\"value\":11000000.0,\
             \"p50\":11000000.0,\"p99\":10000000.0,\"peer\":\"kernel, XDP\",\
             \"peer_value\":5500000.0,\"ratio\":2.0}"
        );
    }

    #[test]
    fn without_a_peer_there_is_one_line_that_says_so() {
        let mut result = sample();
        result.measurements.truncate(1);
        let lines = result.lines();
        assert_eq!((lines.len(), &lines[0].peer, lines[0].ratio), (1, &None, None));
    }

    #[test]
    fn without_ours_there_is_no_line_and_the_table_has_no_ratio() {
        let result = CaseResult { has_ours: false, ..sample() };
        assert_eq!(result.lines(), []);
        assert!(result.text().lines().nth(2).is_some_and(|line| line.ends_with('-')));
    }

    #[test]
    fn a_published_figure_is_in_every_line() {
        let lines = CaseResult { published: Some(5e6), ..sample() }.lines();
        let json = serde_json::to_string(&lines[0]).expect("plain data");
        assert!(json.ends_with(",\"published\":5000000.0}"), "{json}");
    }

    #[test]
    fn rows_quote_what_has_a_comma() {
        let machine = Machine {
            machine: "a \"fast\" one, 2 cores".into(),
            commit: "abc".into(),
            date: "2026-11-21".into(),
        };
        let text = csv(&[sample()], &machine);
        let row = text.lines().nth(4).expect("a header and six rows");
        let expected = "nf,forward,64,\"kernel, XDP\",1,5000000,measured,\
                        \"a \"\"fast\"\" one, 2 cores\",abc,2026-11-21";
        assert_eq!((row, text.lines().count()), (expected, 7));
    }
}
