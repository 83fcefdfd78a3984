// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Line-by-line comparison of two transcripts.

/// Returns the difference of the second text from the first, line by line; `None` if they are
/// equal. Lines only in the first begin with `-`, lines only in the second with `+`.
pub fn difference(first: &str, second: &str) -> Option<String> {
    if first == second {
        return None;
    }
    let (first, second): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
    let common = common_lines(&first, &second);
    let (mut at, mut other) = (0, 0);
    let mut lines = vec![];
    while at < first.len() || other < second.len() {
        if at < first.len() && other < second.len() && first[at] == second[other] {
            lines.push(format!("  {}", first[at]));
            (at, other) = (at + 1, other + 1);
        } else if other == second.len()
            || (at < first.len() && common[at + 1][other] >= common[at][other + 1])
        {
            lines.push(format!("- {}", first[at]));
            at += 1;
        } else {
            lines.push(format!("+ {}", second[other]));
            other += 1;
        }
    }
    Some(lines.join("\n"))
}

/// Returns, for each pair of positions, the number of common lines from there on.
fn common_lines(first: &[&str], second: &[&str]) -> Vec<Vec<usize>> {
    let mut common = vec![vec![0; second.len() + 1]; first.len() + 1];
    for at in (0..first.len()).rev() {
        for other in (0..second.len()).rev() {
            common[at][other] = if first[at] == second[other] {
                common[at + 1][other + 1] + 1
            } else {
                common[at + 1][other].max(common[at][other + 1])
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_do_not_differ() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    }

    #[test]
    fn what_is_only_in_one_is_marked() {
        let shown = difference("a\nb\nc\n", "a\nx\nc\ny\n");
        assert_eq!(shown.as_deref(), Some("  a\n- b\n+ x\n  c\n+ y"));
    }

    #[test]
    fn a_text_that_ends_early_differs() {
        assert_eq!(difference("a\nb\n", "a\n").as_deref(), Some("  a\n- b"));
        assert_eq!(difference("", "a\n").as_deref(), Some("+ a"));
    }
}
