// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `tests/schedule.txt`: how each test runs. A row names a package, a binary of it, or tests of
//! that binary by the beginning of their names; the longest matching row applies.

use anyhow::{Context, bail};
use std::path::Path;

/// How the tests of a row are divided into processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Runs {
    /// All tests of the row in one process.
    Whole,
    /// Each test in a process of its own.
    Each,
    /// All tests of the row in one process, while nothing else runs.
    Alone,
}

/// A row of the schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Beginning of `package::binary::test`.
    pub pattern: String,
    /// Part of the tree that `--part` selects.
    pub part: String,
    pub runs: Runs,
    /// Number of cores that one of its processes keeps busy: small if it mostly waits.
    pub cores: f64,
    /// Approximate duration of a process in seconds. Longer ones start first.
    pub seconds: f64,
}

/// All rows, in the order of the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    rows: Vec<Row>,
}

impl Schedule {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, or an invalid line, with its number.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let rows = lines.map(|(line, number)| row(line).with_context(|| format!("line {number}")));
        Ok(Self { rows: rows.collect::<anyhow::Result<_>>()? })
    }

    /// Returns the row of a test, `package::binary::test`.
    ///
    /// # Errors
    /// No row matches: a new package needs one.
    pub fn row(&self, test: &str) -> anyhow::Result<&Row> {
        let fits = |row: &&Row| {
            let rest = test.strip_prefix(row.pattern.as_str());
            // A binary's name is matched whole; a test's may be cut anywhere.
            let is_test = row.pattern.matches("::").count() > 1;
            rest.is_some_and(|rest| is_test || rest.is_empty() || rest.starts_with("::"))
        };
        let row = self.rows.iter().filter(fits).max_by_key(|row| row.pattern.len());
        row.with_context(|| format!("tests/schedule.txt has no row for {test}"))
    }

    /// Checks that a part exists.
    ///
    /// # Errors
    /// The part does not exist; lists those that do.
    pub fn check_part(&self, part: Option<&str>) -> anyhow::Result<()> {
        let Some(part) = part else { return Ok(()) };
        if self.rows.iter().any(|row| row.part == part) {
            return Ok(());
        }
        let mut parts: Vec<&str> = self.rows.iter().map(|row| row.part.as_str()).collect();
        parts.sort_unstable();
        parts.dedup();
        bail!("no part {part}; the parts are {}", parts.join(", "));
    }
}

fn row(line: &str) -> anyhow::Result<Row> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let [pattern, part, runs, cores, seconds] = cells[..] else {
        bail!("a row has five cells: test, part, runs, cores, seconds");
    };
    let runs = match runs {
        "whole" => Runs::Whole,
        "each" => Runs::Each,
        "alone" => Runs::Alone,
        _ => bail!("`{runs}` is none of whole, each, alone"),
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|it| *it > 0.0 && it.is_finite());
    let number = |text| number(text).with_context(|| format!("`{text}` is no positive number"));
    let (cores, seconds) = (number(cores)?, number(seconds)?);
    Ok(Row { pattern: pattern.into(), part: part.into(), runs, cores, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# test part runs cores seconds\n\ncli packets whole 1 5\n\
        cli::accelerated sockets each 0.5 8\ncli::accelerated::scale sockets alone 2 20\n";

    #[test]
    fn the_longest_row_that_fits_holds() {
        let schedule = Schedule::parse(TEXT).expect("it is right");
        let pattern = |test| schedule.row(test).map(|row| row.pattern.as_str()).ok();
        assert_eq!(pattern("cli::help::a"), Some("cli"));
        assert_eq!(pattern("cli::accelerated::redis::b"), Some("cli::accelerated"));
        assert_eq!(pattern("cli::accelerated::scale::c"), Some("cli::accelerated::scale"));
        assert_eq!(pattern("cli::accelerated_more::d"), Some("cli"));
        assert_eq!(pattern("client::lib::e"), None);
        assert_eq!(schedule.row("cli::help::a").expect("a row").runs, Runs::Whole);
        assert!(schedule.check_part(Some("sockets")).is_ok());
        let error = schedule.check_part(Some("socket")).expect_err("no such part");
        assert_eq!(error.to_string(), "no part socket; the parts are packets, sockets");
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        for (line, why) in [
            ("cli packets whole 1", "a row has five cells: test, part, runs, cores, seconds"),
            ("cli packets often 1 5", "`often` is none of whole, each, alone"),
            ("cli packets whole 0 5", "`0` is no positive number"),
            ("cli packets whole 1 soon", "`soon` is no positive number"),
        ] {
            let error = Schedule::parse(&format!("# top\n{line}\n")).expect_err("it is wrong");
            assert_eq!(format!("{error:#}"), format!("line 2: {why}"));
        }
    }
}
