// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line.

/// Output of `--help`.
pub const HELP: &str = "\
Builds and runs the tests of Freeport

Usage: cargo run -p freeport-test-runner -- [OPTIONS] [FILTER]...

A FILTER is a part of package::binary::test; with several, tests that match any of them run.

Options:
      --long       larger inputs, more seeds, and the tests that only a long run includes
      --part PART  only the tests of one part: sockets, xdp, packets, fabric, store or house
      --again      also binaries that have passed since the last change to anything they use
      --list       print the jobs, and run nothing
  -h, --help       print this

Example:
  cargo run -p freeport-test-runner -- --part xdp
  cargo run -p freeport-test-runner -- --again cli::accelerated::redis
";

/// Parsed arguments.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Arguments {
    pub long: bool,
    pub part: Option<String>,
    pub again: bool,
    pub list: bool,
    pub help: bool,
    pub filters: Vec<String>,
}

impl Arguments {
    /// Parses words.
    ///
    /// # Errors
    /// A message about an option that does not exist or lacks its value.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--long" => parsed.long = true,
                "--again" => parsed.again = true,
                "--list" => parsed.list = true,
                "-h" | "--help" => parsed.help = true,
                "--part" => parsed.part = Some(words.next().ok_or("--part needs a name")?),
                _ if word.starts_with('-') => {
                    return Err(format!("unknown option {word}; --help lists the options"));
                }
                _ => parsed.filters.push(word),
            }
        }
        Ok(parsed)
    }

    /// Returns whether a test, `package::binary::test`, matches the filters.
    pub fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Arguments, String> {
        Arguments::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_and_filters_come_in_any_order() {
        let parsed = parse("redis --part sockets --long nginx").expect("all of them exist");
        assert_eq!((parsed.long, parsed.part.as_deref()), (true, Some("sockets")));
        assert!(parsed.wants("freeport-cli::accelerated::nginx::files"));
        assert!(!parsed.wants("freeport-cli::accelerated::memcached::all"));
        assert!(parse("").expect("nothing is needed").wants("anything"));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("--log"), Err("unknown option --log; --help lists the options".into()));
        assert_eq!(parse("--part"), Err("--part needs a name".into()));
    }
}
