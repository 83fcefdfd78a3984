// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reduces a program that shows a difference.

use super::program::Program;

/// Removes lines and reduces numbers as long as the rest still `shows` the difference; tries at
/// most `looks` programs.
pub fn shrink(program: &Program, looks: usize, mut shows: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut left = looks;
    let mut keeps = |candidate: &Program| {
        left = left.saturating_sub(1);
        (left > 0).then(|| shows(candidate))
    };
    let mut changed = true;
    while changed {
        changed = false;
        let mut size = best.lines.len().div_ceil(2).max(1);
        loop {
            let Some(found) = without_runs(&mut best, size, &mut keeps) else { return best };
            changed |= found;
            if size == 1 {
                break;
            }
            size = size.div_ceil(2);
        }
        let Some(found) = with_less(&mut best, &mut keeps) else { return best };
        changed |= found;
    }
    best
}

/// Removes runs of `size` lines; returns whether any was removed, or `None` if the limit is
/// reached.
fn without_runs(
    best: &mut Program,
    size: usize,
    keeps: &mut impl FnMut(&Program) -> Option<bool>,
) -> Option<bool> {
    let (mut found, mut end) = (false, best.lines.len());
    while end > 0 {
        let start = end.saturating_sub(size);
        let mut candidate = best.clone();
        candidate.lines.drain(start..end);
        if keeps(&candidate)? {
            *best = candidate;
            found = true;
        }
        end = start;
    }
    Some(found)
}

/// Reduces numbers: to 1, otherwise to half.
fn with_less(best: &mut Program, keeps: &mut impl FnMut(&Program) -> Option<bool>) -> Option<bool> {
    let mut found = false;
    for line in 0..best.lines.len() {
        let words = best.lines[line].split(' ').count();
        for word in 2..words {
            let text = best.lines[line].split(' ').nth(word).unwrap_or_default();
            let Some(number) = text.parse::<u64>().ok().filter(|number| *number > 2) else {
                continue;
            };
            for smaller in [1, number / 2] {
                let mut candidate = best.clone();
                candidate.lines[line] = with_word(&best.lines[line], word, smaller);
                if keeps(&candidate)? {
                    *best = candidate;
                    found = true;
                    break;
                }
            }
        }
    }
    Some(found)
}

fn with_word(line: &str, at: usize, number: u64) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    words[at] = number.to_string();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs_two(program: &Program) -> bool {
        let has = |text: &str| program.lines.iter().any(|line| line.starts_with(text));
        has("a0 send") && has("a1 close")
    }

    #[test]
    fn what_is_not_needed_goes() {
        let text = "a0 pair s1 s2\na0 send s1 900 0\na1 recv s2 5 0\na1 close s2\na0 exit\n";
        let small = shrink(&Program::parse(text), 1000, needs_two);
        assert_eq!(small.lines, ["a0 send s1 1 0", "a1 close s2"]);
    }

    #[test]
    fn it_ends_after_so_many_looks() {
        let mut looks = 0;
        let text = "a0 send\n".repeat(64);
        shrink(&Program::parse(&text), 10, |_| {
            looks += 1;
            false
        });
        assert_eq!(looks, 9);
    }
}
