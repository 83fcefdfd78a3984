// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks and traces as text.

use std::fmt;

/// A walk: the kind of its connection, and its steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// `tcp` or `unix`.
    pub kind: &'static str,
    /// Steps, such as `A.send=5`.
    pub steps: Vec<String>,
}

/// Trace of a walk: a line for each step.
pub type Trace = Vec<String>;

impl Walk {
    /// Parses a line; `None` if it is no walk.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next()?;
        let kind = ["tcp", "unix"].into_iter().find(|it| *it == kind)?;
        Some(Self { kind, steps: words.map(str::to_owned).collect() })
    }

    /// Returns the walk without one of its steps.
    #[must_use]
    pub fn without(&self, step: usize) -> Self {
        let mut shorter = self.clone();
        shorter.steps.remove(step);
        shorter
    }

    /// Returns the first steps of the walk.
    #[must_use]
    pub fn first(&self, steps: usize) -> Self {
        let mut shorter = self.clone();
        shorter.steps.truncate(steps);
        shorter
    }
}

impl fmt::Display for Walk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.steps.join(" "))
    }
}

/// Parses the traces of several walks from the program's output.
pub fn traces(printed: &str) -> Vec<Trace> {
    let mut traces: Vec<Trace> = vec![];
    for line in printed.lines() {
        if line.starts_with("walk ") {
            traces.push(vec![]);
        } else if let Some(last) = traces.last_mut() {
            last.push(line.to_owned());
        }
    }
    traces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_its_text() {
        let text = "unix A.send=5 B.wr";
        let walk = Walk::parse(text).unwrap();
        assert_eq!(walk.to_string(), text);
        assert_eq!(walk.without(0).to_string(), "unix B.wr");
        assert_eq!(walk.first(1).to_string(), "unix A.send=5");
        assert_eq!(Walk::parse("udp A.wr"), None);
    }

    #[test]
    fn traces_begin_with_their_walks() {
        let printed = "walk tcp A.wr\nA.wr=0: 0\nwalk tcp\nwalk tcp B.wr\nB.wr=0: 0\n";
        assert_eq!(traces(printed), [vec!["A.wr=0: 0"], vec![], vec!["B.wr=0: 0"]]);
    }
}
