// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Differences that formatting makes in a text: the old lines and the new lines. Both texts have
//! the same characters except for blanks, so matching positions are found by counting.

use std::fmt;

/// Lines that are replaced by others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Number of the first line in the old text, from 1.
    pub line: usize,
    /// Old lines.
    pub before: Vec<String>,
    /// New lines.
    pub after: Vec<String>,
}

/// Returns the changes between two texts that differ only in blanks.
pub fn changes(before: &str, after: &str) -> Vec<Change> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut changes: Vec<Change> = vec![];
    let (mut at, mut to) = (0, 0);
    while at < old.len() || to < new.len() {
        let (at_end, to_end) = next_equal_place(&old, &new, at, to);
        let change = change_between(&old[at..at_end], &new[to..to_end], at);
        match (&change, changes.last_mut()) {
            (Some(change), Some(last)) if last.line + last.before.len() == change.line => {
                last.before.extend_from_slice(&change.before);
                last.after.extend_from_slice(&change.after);
            }
            (Some(change), _) => changes.push(change.clone()),
            (None, _) => {}
        }
        (at, to) = (at_end, to_end);
    }
    changes
}

/// Returns the next lines in both texts before which the same number of characters have occurred.
fn next_equal_place(old: &[&str], new: &[&str], at: usize, to: usize) -> (usize, usize) {
    let (mut at, mut to) = (at, to);
    let (mut old_count, mut new_count) = (0, 0);
    let mut is_first = true;
    while is_first || old_count != new_count {
        let takes_old = at < old.len() && (is_first || old_count <= new_count || to == new.len());
        let takes_new = to < new.len() && (is_first || old_count >= new_count || at == old.len());
        if takes_old {
            old_count += characters(old[at]);
            at += 1;
        }
        if takes_new {
            new_count += characters(new[to]);
            to += 1;
        }
        if !takes_old && !takes_new {
            break;
        }
        is_first = false;
    }
    (at, to)
}

fn characters(line: &str) -> usize {
    line.chars().filter(|it| !it.is_whitespace()).count()
}

/// Returns the change between two sequences of lines, without the equal lines at both ends; `start`
/// lines precede the sequences.
fn change_between(old: &[&str], new: &[&str], start: usize) -> Option<Change> {
    let head = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[head..], &new[head..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let tail = pairs.take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let shown = |lines: &[&str]| lines.iter().map(|line| visible(line)).collect();
    let change = Change { line: start + head + 1, before: shown(old), after: shown(new) };
    (!old.is_empty() || !new.is_empty()).then_some(change)
}

/// Formats a line with visible trailing blanks, and a mark if its line end is missing.
fn visible(line: &str) -> String {
    let (line, end) = match line.strip_suffix('\n') {
        Some(line) => (line, ""),
        None => (line, " (no line end)"),
    };
    let (line, end) = match line.strip_suffix('\r') {
        Some(line) => (line, "\\r"),
        None => (line, end),
    };
    let code = line.trim_end_matches([' ', '\t']);
    let blanks = line[code.len()..].replace(' ', "\u{b7}").replace('\t', "\\t");
    format!("{code}{blanks}{end}")
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.before {
            writeln!(out, "-{line}")?;
        }
        for line in &self.after {
            writeln!(out, "+{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let all = changes(before, after);
        all.iter().map(|change| format!("{}\n{change}", change.line)).collect()
    }

    #[test]
    fn equal_texts_have_no_changes() {
        assert_eq!(shown("", ""), "");
        assert_eq!(shown("a\n\nb\n", "a\n\nb\n"), "");
    }

    #[test]
    fn each_change_has_its_line() {
        assert_eq!(shown("a\n b\nc\nd e\n", "a\nb\nc\nd  e\n"), "2\n- b\n+b\n4\n-d e\n+d  e\n");
        assert_eq!(shown("a;b;c;\nd;\n", "a;\nb;\nc;\nd;\n"), "1\n-a;b;c;\n+a;\n+b;\n+c;\n");
        assert_eq!(shown("a\nb\nc\n", "a b\n c\n"), "1\n-a\n-b\n-c\n+a b\n+ c\n");
    }

    #[test]
    fn blank_lines_come_and_go() {
        assert_eq!(shown("a\n\n\nb\n\n", "a\n\nb\n"), "3\n-\n5\n-\n");
        assert_eq!(shown("a\nb\n", "a\n\nb\n"), "2\n+\n");
        assert_eq!(shown("\n\na\n b\n", "a\nb\n"), "1\n-\n-\n4\n- b\n+b\n");
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(
            shown("a \nb\t\nc", "a\nb\nc\n"),
            "1\n-a·\n-b\\t\n-c (no line end)\n+a\n+b\n+c\n"
        );
        assert_eq!(shown("a\r\nb\n", "a\r\nb\r\n"), "2\n-b\n+b\\r\n");
    }
}
