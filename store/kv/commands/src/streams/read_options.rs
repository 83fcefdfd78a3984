// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `XREAD` and `XREADGROUP`, and where the keys are among them.

use freeport_kv_keyspace::Kind;
use freeport_kv_types::StreamId;

use crate::arguments::{deadline_after_ms, integer, is};
use crate::call::Call;
use crate::effects::Block;
use crate::error::Error;
use crate::keys::Keys;

/// Keys are behind the word `STREAMS`, followed by as many ids.
pub const KEYS: Keys = Keys::Found(|arguments| {
    let streams = streams_at(arguments).unwrap_or(arguments.len());
    (streams..streams + (arguments.len() - streams) / 2).collect()
});

/// Position behind `STREAMS`, if the options before it are well-formed.
fn streams_at(arguments: &[&[u8]]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = arguments.get(at) {
        at += match () {
            () if is(word, "streams") => return Some(at + 1),
            () if is(word, "block") || is(word, "count") => 2,
            () if is(word, "group") => 3,
            () if is(word, "noack") => 1,
            () => return None,
        };
    }
    None
}

/// Options of both commands.
#[derive(Debug)]
pub struct Read<'a> {
    /// The command waits, and until when.
    deadline_ms: Option<Option<u64>>,
    /// Most entries of each stream; 0 is no limit.
    pub count: u64,
    /// New entries do not become pending.
    pub is_acknowledged: bool,
    /// The reader, if the words name one.
    pub member: Option<Member<'a>>,
    /// Position of the first key.
    keys_at: usize,
    keys: &'a [&'a [u8]],
    /// Texts of the ids, as many as keys.
    pub ids: &'a [&'a [u8]],
}

/// A consumer of a group.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Name of the group.
    pub group: &'a [u8],
    /// Its own name.
    pub consumer: &'a [u8],
}

impl<'a> Read<'a> {
    /// Reads the arguments of `XREADGROUP` (`is_group`) or of `XREAD`.
    ///
    /// # Errors
    /// They are malformed.
    pub fn parse(arguments: &'a [&'a [u8]], is_group: bool, now_ms: u64) -> Result<Self, Error> {
        let mut read = Self {
            deadline_ms: None,
            count: 0,
            is_acknowledged: false,
            member: None,
            keys_at: 0,
            keys: &[],
            ids: &[],
        };
        let mut at = 1;
        while read.keys_at == 0 {
            match &arguments[at..] {
                [word, value, ..] if is(word, "block") => {
                    read.deadline_ms = Some(deadline_after_ms(value, now_ms)?);
                    at += 2;
                }
                [word, value, ..] if is(word, "count") => {
                    read.count = u64::try_from(integer(value)?).unwrap_or(0);
                    at += 2;
                }
                [word, rest @ ..] if is(word, "streams") && !rest.is_empty() => {
                    if !rest.len().is_multiple_of(2) {
                        return Err(unbalanced(is_group));
                    }
                    read.keys_at = at + 1;
                    (read.keys, read.ids) = rest.split_at(rest.len() / 2);
                }
                [word, group, consumer, ..] if is(word, "group") => {
                    if !is_group {
                        return Err(only_for_groups("GROUP"));
                    }
                    read.member = Some(Member { group, consumer });
                    at += 3;
                }
                [word, ..] if is(word, "noack") => {
                    if !is_group {
                        return Err(only_for_groups("NOACK"));
                    }
                    read.is_acknowledged = true;
                    at += 1;
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(read)
    }

    /// Keys, each with the text of its id.
    pub fn streams(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.keys.iter().copied().zip(self.ids.iter().copied())
    }

    /// Waits, or replies that there is nothing. `ids` are those of a later execution, where they
    /// differ.
    pub fn wait(&self, call: &mut Call<'_>, ids: Option<&[StreamId]>) {
        let arguments = ids.map(|ids| {
            let before_ids = &call.arguments[..self.keys_at + self.keys.len()];
            let texts = ids.iter().map(|id| id.to_string().into_bytes());
            before_ids.iter().map(|word| word.to_vec()).chain(texts).collect()
        });
        let Some(deadline_ms) = self.deadline_ms else { return call.reply.null_array() };
        call.block(Block {
            keys: (self.keys_at..self.keys_at + self.keys.len()).collect(),
            kind: Kind::Stream,
            wakes_on_removal: self.member.is_some(),
            deadline_ms,
            is_null_string: false,
            arguments,
        });
    }
}

fn unbalanced(is_group: bool) -> Error {
    let (command, id) = if is_group { ("xreadgroup", '>') } else { ("xread", '$') };
    Error::new(format!(
        "ERR Unbalanced '{command}' list of streams: for each stream key an ID or '{id}' must be \
         specified."
    ))
}

fn only_for_groups(option: &str) -> Error {
    Error::new(format!(
        "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_behind_a_word() {
        let positions = |line: &str| {
            let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let mut found = vec![];
            KEYS.visit(&arguments, |at| found.push(at)).expect("nothing is counted");
            found
        };
        assert_eq!(positions("xread streams a b 0 0"), [2, 3]);
        assert_eq!(positions("xread count streams block 5 STREAMS a 0"), [6]);
        assert_eq!(positions("xreadgroup group streams c noack streams a >"), [6]);
        let none: [usize; 0] = [];
        assert_eq!(positions("xread streams"), none);
        assert_eq!(positions("xread other streams a 0"), none);
        assert_eq!(positions("xread count"), none);
    }
}
