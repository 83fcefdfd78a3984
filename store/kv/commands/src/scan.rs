// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of a value in parts: the words of `HSCAN` and its like, and their reply.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::{Entry, pattern};

use crate::arguments::{integer, is};
use crate::error::Error;

/// Elements that a call returns if the client does not say how many.
const USUAL_COUNT: usize = 10;

/// Words behind the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// About how many elements a call looks at.
    pub count: usize,
    /// Names that are returned; all without one.
    pub pattern: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Reads the words `MATCH pattern` and `COUNT number`.
    ///
    /// # Errors
    /// Other words, or a number below 1.
    pub fn parse(words: &[&'a [u8]]) -> Result<Self, Error> {
        let mut options = Self { count: USUAL_COUNT, pattern: None };
        for words in words.chunks(2) {
            match *words {
                [word, number] if is(word, "count") => {
                    let number = integer(number)?;
                    options.count =
                        usize::try_from(number).ok().filter(|n| *n > 0).ok_or(Error::SYNTAX)?;
                }
                // That one matches all names, also the empty one.
                [word, pattern] if is(word, "match") => {
                    options.pattern = (pattern != b"*").then_some(pattern);
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(options)
    }

    /// A name is returned.
    pub fn takes(&self, name: Entry<'_>) -> bool {
        self.pattern.is_none_or(|pattern| name.with_bytes(|name| pattern::matches(pattern, name)))
    }
}

/// The next cursor, and the header of an array of `values`, which follow.
pub fn header(reply: &mut Writer<'_>, cursor: u64, values: usize) {
    reply.array(2);
    reply.bulk(cursor.to_string().as_bytes());
    reply.array(values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_pairs_and_the_last_counts() {
        let words: [&[u8]; 6] = [b"match", b"a*", b"COUNT", b"5", b"Match", b"*"];
        assert_eq!(Options::parse(&words), Ok(Options { count: 5, pattern: None }));
        let options = Options::parse(&words[..4]).expect("words are right");
        assert!(options.takes(Entry::new(b"ab")) && !options.takes(Entry::new(b"12")));
        assert_eq!(Options::parse(&words[..3]), Err(Error::SYNTAX));
        assert_eq!(Options::parse(&[b"count", b"0"]), Err(Error::SYNTAX));
        assert_eq!(Options::parse(&[b"count", b"x"]), Err(Error::NOT_AN_INTEGER));
        assert_eq!(Options::parse(&[b"type", b"string"]), Err(Error::SYNTAX));
    }
}
