// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs as text.

use std::fmt;

/// Lines of a program, without comments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The calls, in order.
    pub lines: Vec<String>,
}

impl Program {
    /// Parses a text: empty lines and lines that begin with `#` are ignored.
    pub fn parse(text: &str) -> Self {
        let says = |line: &&str| !line.is_empty() && !line.starts_with('#');
        Self { lines: text.lines().map(str::trim).filter(says).map(str::to_owned).collect() }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let program = Program::parse("# seed 1\n\na0 pair s1 s2\n  a0 send s1 5\n");
        assert_eq!(program.lines, ["a0 pair s1 s2", "a0 send s1 5"]);
        assert_eq!(Program::parse(&program.to_string()), program);
    }
}
