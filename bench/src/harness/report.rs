// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results: as text, as one JSON object a line, and as a file with comma-separated values.

use super::machine::Machine;
use super::rounds::Measurement;
use anyhow::Result;
use serde::Serialize;

/// What there is to print.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Output {
    /// For standard output: the results.
    pub text: String,
    /// For standard error: what people need to know of them, where the results are for programs.
    pub notes: String,
    /// What could not be measured although it should; the rest was.
    pub failures: Vec<String>,
}

/// What is counted in most benches.
pub const PACKETS_PER_SECOND: &str = "pps";

/// Where a figure comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A clock on this machine.
    Measured,
    /// A cycle count of simulated hardware, with an assumed clock.
    Simulated,
    /// A calculation.
    Modelled,
}

/// What the subjects of a case have to work on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Traffic {
    /// Frames of a network.
    Frames {
        /// Bytes of each, without the frame check sequence.
        frame_bytes: usize,
    },
    /// Messages between processes.
    Messages {
        /// Bytes of each.
        message_bytes: usize,
        /// Where the processes of a pair are.
        placement: &'static str,
        /// Pairs of processes at once.
        pairs: usize,
    },
    /// Requests to a server.
    Requests {
        /// Bytes of what is asked for.
        value_bytes: usize,
        /// Connections at once.
        connections: usize,
        /// Requests that wait for an answer at once on each.
        pipeline: usize,
        /// Threads or processes of the server.
        workers: usize,
        /// Where the server and who asks are.
        placement: &'static str,
    },
}

impl Traffic {
    /// Its fields and their values, as the columns of a file of values.
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

/// One figure beside its peer's. The names are those of the JSON lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// The group of cases.
    pub bench: String,
    /// What was done.
    pub case: String,
    /// On what.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// What is counted.
    pub metric: String,
    /// In what.
    pub unit: String,
    /// See [`Kind`].
    pub kind: Kind,
    /// The figure: the median, unless the metric says otherwise. What was not measured is not a
    /// number, and `null` in JSON.
    pub value: f64,
    /// The median of the rounds, or of the single times.
    pub p50: f64,
    /// What 99 of a hundred of them reached.
    pub p99: f64,
    /// With whom it is compared; none where the peer cannot run.
    pub peer: Option<String>,
    /// The peer's median.
    pub peer_value: Option<f64>,
    /// Ours over the peer's: above 1 is better for us.
    pub ratio: Option<f64>,
    /// What a publication reports for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Why something was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Everything measured in one case.
#[derive(Clone, PartialEq, Debug)]
pub struct CaseResult {
    /// The group of cases.
    pub bench: String,
    /// What was done.
    pub case: String,
    /// On frames of how many bytes, without the frame check sequence.
    pub frame_bytes: usize,
    /// What is counted, as in the JSON lines.
    pub metric: String,
    /// Ours first, then the peers and the limit.
    pub measurements: Vec<Measurement>,
    /// Whether the first of them is ours: there may be none yet.
    pub has_ours: bool,
    /// Packets a second that a publication reports for the same.
    pub published: Option<f64>,
    /// What each figure includes, and which peers could not run and why.
    pub notes: Vec<String>,
}

impl CaseResult {
    /// A line for each peer; one without a peer where there is none, and none without ours.
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

    /// A table for people.
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

/// Lines for programs stand alone; what people need to know goes beside them.
///
/// # Errors
/// A result that cannot be written as JSON.
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

/// Tables and notes for people, or lines for programs, with the notes beside them.
///
/// # Errors
/// A result that cannot be written as JSON.
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

/// The values of every round, with the machine, commit and date in each row.
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

/// Whole packets a second, from the millions that are measured.
fn per_second(millions: f64) -> f64 {
    (millions * 1e6).round()
}

/// To six digits: more would be noise.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A row of a comma-separated file: the fields of a value, and where and when it was measured.
pub(crate) fn row(fields: impl IntoIterator<Item = String>, machine: &Machine) -> String {
    let Machine { machine, commit, date } = machine.clone();
    let fields = fields.into_iter().chain([machine, commit, date]);
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

/// A field of a comma-separated file (RFC 4180).
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
