// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the output of a test binary.

/// Counts of one process.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
    /// Names of the failed tests.
    pub failures: Vec<String>,
}

/// Parses the last summary; `None` if the process ended before it printed one.
pub fn read(printed: &str) -> Option<Counts> {
    let is_summary = |line: &&str| line.contains("test result: ");
    let summary = printed.lines().rev().find(is_summary)?.split_once("test result: ")?.1;
    let number = |what: &str| {
        let words: Vec<&str> = summary.split([' ', ';', '.']).collect();
        let found = words.windows(2).find(|pair| pair[1] == what)?;
        found[0].parse().ok()
    };
    let failures = printed.rsplit_once("\nfailures:\n").map_or("", |(_, rest)| rest);
    let failures = failures.lines().map_while(|line| line.strip_prefix("    "));
    Some(Counts {
        passed: number("passed")?,
        failed: number("failed")?,
        ignored: number("ignored")?,
        failures: failures.map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_summary_counts() {
        let printed = "\nrunning 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\
            test d ... ignored, long\n\nfailures:\n\n---- b::c stdout ----\nno\n\n\nfailures:\n    \
            b::c\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; \
            4 filtered out; finished in 0.01s\n\n";
        let counts = read(printed).expect("a summary");
        let expected =
            Counts { passed: 1, failed: 1, ignored: 1, failures: vec!["b::c".to_owned()] };
        assert_eq!(counts, expected);
        let good = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(read(good).expect("a summary").passed, 2);
        assert_eq!(read("running 1 test\nthread panicked: abort\n"), None);
    }
}
