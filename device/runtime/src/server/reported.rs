// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The newest output lines of printf, log and breakpoint probes, numbered, so that several clients
//! can follow them and each notices what it has missed.

use serde_json::{Value, json};
use std::collections::VecDeque;

/// Maximum number of lines kept.
const MOST_LINES: usize = 65_536;
/// Maximum number of their bytes.
const MOST_BYTES: usize = 8 << 20;
/// Maximum number of lines in one answer.
const MOST_LINES_OF_AN_ANSWER: usize = 4_096;

/// A line and its instance.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    instance: String,
    text: String,
}

/// Lines in order; the oldest are dropped when there are too many.
#[derive(Clone, Debug, Default)]
pub struct ReportLog {
    lines: VecDeque<Line>,
    bytes: usize,
    /// Number of the first line that is kept.
    first: u64,
    /// Lines that the device dropped before they reached the log.
    lost: u64,
}

impl ReportLog {
    /// Appends a line.
    pub fn push(&mut self, instance: &str, text: &str) {
        let line = Line { instance: instance.to_owned(), text: text.trim_end().to_owned() };
        self.bytes += line.bytes();
        self.lines.push_back(line);
        while self.lines.len() > MOST_LINES || self.bytes > MOST_BYTES {
            let Some(gone) = self.lines.pop_front() else { break };
            self.bytes -= gone.bytes();
            self.first += 1;
        }
    }

    /// Counts lines that the device dropped.
    pub fn lose(&mut self, lines: u64) {
        self.lost += lines;
    }

    /// Returns some lines from number `since` on, with the number to continue from, the number of
    /// lines already removed from the log, and the number dropped in the device since the start.
    pub fn since(&self, since: u64) -> Value {
        let end = self.first + self.lines.len() as u64;
        let from = since.clamp(self.first, end);
        let missed = from.saturating_sub(since.min(from));
        let lines = self.lines.iter().skip((from - self.first) as usize);
        let lines = lines.take(MOST_LINES_OF_AN_ANSWER);
        let lines: Vec<Value> =
            lines.map(|it| json!({"instance": it.instance, "text": it.text})).collect();
        let next = from + lines.len() as u64;
        json!({
            "lines": lines, "next": next, "missed": missed, "lost": self.lost,
            "is_last": next == end,
        })
    }
}

impl Line {
    fn bytes(&self) -> usize {
        self.instance.len() + self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_sees_what_is_new_to_it_and_what_it_missed() {
        let mut log = ReportLog::default();
        log.push("a", "one\n");
        log.push("b", "two");
        let all = log.since(0);
        let expected = json!([{"instance": "a", "text": "one"}, {"instance": "b", "text": "two"}]);
        assert_eq!(
            (&all["lines"], &all["next"], &all["missed"]),
            (&expected, &json!(2), &json!(0))
        );
        assert_eq!(log.since(2)["lines"], json!([]));
        assert_eq!(log.since(9)["next"], json!(2), "a number from another process");
        for number in 0..MOST_LINES {
            log.push("c", &number.to_string());
        }
        log.lose(3);
        let rest = log.since(1);
        assert_eq!((&rest["missed"], &rest["lost"]), (&json!(1), &json!(3)));
        assert_eq!(rest["lines"].as_array().unwrap().len(), MOST_LINES_OF_AN_ANSWER);
        assert_eq!((&rest["lines"][0]["text"], &rest["is_last"]), (&json!("0"), &json!(false)));
    }

    #[test]
    fn long_lines_are_bounded_in_bytes() {
        let mut log = ReportLog::default();
        let long = "x".repeat(1 << 20);
        (0..20).for_each(|_| log.push("a", &long));
        assert!(log.bytes <= MOST_BYTES && log.lines.len() == 7, "{}", log.lines.len());
    }
}
