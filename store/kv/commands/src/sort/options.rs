// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `SORT`, and the keys among them.

use std::ops::Range;

use super::pattern::Pattern;
use crate::arguments::{integer, is};
use crate::error::Error;
use crate::keys::Keys;

/// The key that is sorted, the destination, and all keys if a pattern names some.
pub const KEYS: Keys = Keys::Made {
    find: |arguments| {
        let targets = words(arguments).filter(|(at, _)| is(arguments[*at], "store"));
        targets.map(|(at, _)| at + 1).last().into_iter().collect()
    },
    needs_all: |arguments| {
        words(arguments).any(|(at, values)| {
            let is_pattern = is(arguments[at], "by") || is(arguments[at], "get");
            is_pattern && values.iter().any(|value| value.contains(&b'*'))
        })
    },
};

/// Positions of options, each with its values.
fn words<'a>(arguments: &'a [&'a [u8]]) -> impl Iterator<Item = (usize, &'a [&'a [u8]])> {
    let mut at = 2;
    std::iter::from_fn(move || {
        let word = arguments.get(at)?;
        let values = match () {
            () if is(word, "limit") => 2,
            () if is(word, "store") || is(word, "by") || is(word, "get") => 1,
            () => 0,
        };
        let found = (at, arguments.get(at + 1..=at + values)?);
        at += 1 + values;
        Some(found)
    })
}

/// An option by which values become names of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `BY` with a pattern.
    By,
    /// `GET`; as in Redis, with whatever pattern.
    Get,
}

/// The first option of `SORT` or `SORT_RO` by which values become names of keys.
pub fn naming(arguments: &[&[u8]]) -> Option<Naming> {
    words(arguments).find_map(|(at, values)| match arguments[at] {
        word if is(word, "by") && values[0].contains(&b'*') => Some(Naming::By),
        word if is(word, "get") => Some(Naming::Get),
        _ => None,
    })
}

/// Options.
#[derive(Debug)]
pub struct Options<'a> {
    /// The largest comes first.
    pub is_descending: bool,
    /// Elements or weights are compared as texts.
    pub is_alphabetic: bool,
    /// Where the weights are, if not in the elements.
    pub by: Option<Pattern<'a>>,
    /// The values that are returned for each element; none: the element itself.
    pub gets: Vec<Pattern<'a>>,
    /// The key that gets the result.
    pub target: Option<&'a [u8]>,
    offset: i64,
    count: i64,
}

impl<'a> Options<'a> {
    /// Reads arguments of `SORT`, or of `SORT_RO`, which may not store.
    ///
    /// # Errors
    /// They are malformed.
    pub fn parse(arguments: &[&'a [u8]], may_store: bool) -> Result<Self, Error> {
        let mut options = Self {
            is_descending: false,
            is_alphabetic: false,
            by: None,
            gets: vec![],
            target: None,
            offset: 0,
            count: -1,
        };
        let mut words = &arguments[2..];
        while let [word, rest @ ..] = words {
            words = match rest {
                rest if is(word, "asc") => {
                    options.is_descending = false;
                    rest
                }
                rest if is(word, "desc") => {
                    options.is_descending = true;
                    rest
                }
                rest if is(word, "alpha") => {
                    options.is_alphabetic = true;
                    rest
                }
                [offset, count, rest @ ..] if is(word, "limit") => {
                    (options.offset, options.count) = (integer(offset)?, integer(count)?);
                    rest
                }
                [target, rest @ ..] if may_store && is(word, "store") => {
                    options.target = Some(target);
                    rest
                }
                [pattern, rest @ ..] if is(word, "by") => {
                    options.by = Some(match Pattern::parse(pattern) {
                        // Without a place for the element, nothing is sorted.
                        Pattern::Itself => Pattern::Nothing,
                        pattern => pattern,
                    });
                    rest
                }
                [pattern, rest @ ..] if is(word, "get") => {
                    options.gets.push(Pattern::parse(pattern));
                    rest
                }
                _ => return Err(Error::SYNTAX),
            };
        }
        Ok(options)
    }

    /// The wanted places among this number of elements.
    pub fn range(&self, elements: usize) -> Range<usize> {
        let within = |number: i64| usize::try_from(number).unwrap_or(0).min(elements);
        let start = within(self.offset);
        let end = if self.count < 0 { elements } else { elements.min(start + within(self.count)) };
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn ranges_lie_within_the_elements() {
        let range = |line: &str| {
            Options::parse(&arguments(line), true).expect("the line is right").range(5)
        };
        assert_eq!(range("sort k"), 0..5);
        assert_eq!(range("sort k limit 1 2"), 1..3);
        assert_eq!(range("sort k limit -3 2"), 0..2);
        assert_eq!(range("sort k limit 3 -1"), 3..5);
        assert_eq!(range("sort k limit 3 9223372036854775807"), 3..5);
        assert_eq!(range("sort k limit 9 2"), 5..5);
    }

    #[test]
    fn patterns_need_all_keys() {
        let needs_all = |line: &str| KEYS.needs_all(&arguments(line));
        assert!(!needs_all("sort k by nosort get # limit 0 *"));
        assert!(!needs_all("sort k store by* desc"));
        assert!(needs_all("sort k limit 0 5 by w_*"));
        assert!(needs_all("sort k by nosort get x get *->f"));
        assert!(!needs_all("sort k by"));
    }

    #[test]
    fn the_last_destination_counts() {
        let positions = |line: &str| {
            let mut found = vec![];
            KEYS.visit(&arguments(line), |at| found.push(at)).expect("nothing is counted");
            found
        };
        assert_eq!(positions("sort k"), [1]);
        assert_eq!(positions("sort k get store store a store b"), [1, 7]);
        assert_eq!(positions("sort k limit store store"), [1]);
    }
}
