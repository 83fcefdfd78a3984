// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Suggestions for misspelled names.

/// Returns the nearest of `names`: equal except for case, or with at most one edit for every three
/// characters. Shorter names match only by case.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let most = name.chars().count() / 3;
    let near = names.into_iter().filter(|other| *other != name).filter_map(|other| {
        let edits = match other.eq_ignore_ascii_case(name) {
            true => 0,
            false => Some(distance(name, other)).filter(|edits| *edits <= most)?,
        };
        Some((edits, other))
    });
    near.min().map(|(_, other)| other)
}

/// Returns help that suggests the similar name, or else `otherwise`.
pub fn did_you_mean(near: Option<&str>, otherwise: impl Into<String>) -> String {
    near.map_or_else(|| otherwise.into(), |near| format!("did you mean `{near}`?"))
}

/// Returns the number of edits between two names: insert, delete, replace, or swap two neighbours.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    // A length difference this large exceeds the limit; names may be long.
    if left.len().abs_diff(right.len()) > left.len() / 3 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = vec![];
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, a) in left.iter().enumerate() {
        let mut next = vec![at + 1];
        for (to, b) in right.iter().enumerate() {
            let replaced = row[to] + usize::from(a != b);
            let mut edits = replaced.min(row[to + 1] + 1).min(next[to] + 1);
            if at > 0 && to > 0 && left[at - 1] == *b && right[to - 1] == *a {
                edits = edits.min(before[to - 1] + 1);
            }
            next.push(edits);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_for_three_characters_is_near() {
        let names = ["Count", "E", "to_tor", "set_output_port", "ab"];
        let near = |name| nearest(name, names);
        assert_eq!(near("Cuont"), Some("Count"));
        assert_eq!(near("COUNT"), Some("Count"));
        assert_eq!(near("to_torr"), Some("to_tor"));
        assert_eq!(near("set_outptu_port"), Some("set_output_port"));
        assert_eq!(near("e"), Some("E"), "nothing but the case");
        for far in ["i", "x", "ac", "Counting", "discount", "Count", ""] {
            assert_eq!(near(far), None, "{far}");
        }
    }
}
