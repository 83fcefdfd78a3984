// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the keys of a command are among its arguments.

use crate::arguments::integer;
use crate::error::Error;

/// Positions of keys among the arguments of a command; the name has position 0.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// There are none.
    None,
    /// Every `step`-th argument from `first` to `last`. A negative `last` counts from the end.
    Range {
        /// Position of the first key.
        first: usize,
        /// Position of the last key, or of the place for it; -1 is the last argument.
        last: isize,
        /// Distance between keys.
        step: usize,
    },
    /// A number of keys at position `count`, and then that number of keys. One more key is at
    /// `target`, if that is not 0.
    Counted {
        /// Position of the number of keys.
        count: usize,
        /// Position of a key that is written, or 0.
        target: usize,
    },
    /// A function finds the positions, for commands whose keys follow some word.
    Found(fn(&[&[u8]]) -> Vec<usize>),
    /// The first argument, and those that a function finds. Some calls need all keys besides,
    /// because they make names of keys from values.
    Made {
        /// Finds positions of keys behind the first argument.
        find: fn(&[&[u8]]) -> Vec<usize>,
        /// The command with these arguments makes names of keys.
        needs_all: fn(&[&[u8]]) -> bool,
    },
    /// The command needs all keys that there are.
    All,
    /// Calls that a function accepts need all keys that there are, and others none.
    AllFor(fn(&[&[u8]]) -> bool),
}

impl Keys {
    /// One key, at position 1.
    pub const FIRST: Self = Self::Range { first: 1, last: 1, step: 1 };
    /// All arguments are keys.
    pub const REST: Self = Self::Range { first: 1, last: -1, step: 1 };
    /// Keys at positions 1 and 2.
    pub const TWO: Self = Self::Range { first: 1, last: 2, step: 1 };

    /// A command with these arguments needs the shards of all keys, whatever positions
    /// [`Keys::visit`] finds.
    pub fn needs_all(&self, arguments: &[&[u8]]) -> bool {
        match self {
            Self::All => true,
            Self::Made { needs_all, .. } | Self::AllFor(needs_all) => needs_all(arguments),
            _ => false,
        }
    }

    /// Calls `visit` with the position of each key. Keys of a malformed command may be left out;
    /// the command itself refuses it, in its own words.
    ///
    /// # Errors
    /// The number of keys is above that of the arguments. Those that exist have been visited.
    pub fn visit(&self, arguments: &[&[u8]], mut visit: impl FnMut(usize)) -> Result<(), Error> {
        match *self {
            Self::None | Self::All | Self::AllFor(_) => {}
            Self::Range { first, last, step } => {
                let end = match last {
                    0.. => last.unsigned_abs(),
                    _ => arguments.len().saturating_sub(last.unsigned_abs()),
                };
                (first..=end.min(arguments.len().saturating_sub(1))).step_by(step).for_each(visit);
            }
            Self::Counted { count, target } => {
                if target != 0 && target < arguments.len() {
                    visit(target);
                }
                let Some(number) = arguments.get(count) else { return Ok(()) };
                // The command has its own words for a number that is none.
                let Ok(number) = integer(number) else { return Ok(()) };
                let number = usize::try_from(number).unwrap_or(0);
                let given = arguments.len() - count - 1;
                (count + 1..=count + number.min(given)).for_each(visit);
                if number > given {
                    return Err(Error::TOO_MANY_KEYS);
                }
            }
            Self::Made { find, .. } => {
                (1..arguments.len().min(2)).chain(find(arguments)).for_each(visit);
            }
            Self::Found(find) => find(arguments).into_iter().for_each(visit),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(keys: Keys, line: &str) -> Vec<usize> {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut found = vec![];
        keys.visit(&arguments, |at| found.push(at)).expect("numbers are in range");
        found
    }

    #[test]
    fn keys_are_where_the_kind_says() {
        assert_eq!(positions(Keys::FIRST, "get a"), [1]);
        assert_eq!(positions(Keys::REST, "del a b c"), [1, 2, 3]);
        assert_eq!(positions(Keys::Range { first: 1, last: -1, step: 2 }, "mset a 1 b 2"), [1, 3]);
        assert_eq!(positions(Keys::Range { first: 1, last: -2, step: 1 }, "blpop a b 0"), [1, 2]);
        let counted = Keys::Counted { count: 2, target: 1 };
        assert_eq!(positions(counted, "zunionstore to 2 a b"), [1, 3, 4]);
        assert_eq!(positions(counted, "zunionstore to x a b"), [1]);
        assert_eq!(positions(Keys::TWO, "rename a"), [1]);
        assert!(positions(Keys::All, "flushall").is_empty());
    }

    #[test]
    fn more_keys_than_arguments_are_an_error_but_those_that_exist_are_visited() {
        let arguments: [&[u8]; 5] = [b"zinterstore", b"to", b"5", b"a", b"b"];
        let keys = Keys::Counted { count: 2, target: 1 };
        let mut found = vec![];
        assert!(keys.visit(&arguments, |at| found.push(at)).is_err());
        assert_eq!(found, [1, 3, 4]);
    }
}
