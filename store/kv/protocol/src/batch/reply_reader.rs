// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading replies.

use super::reply::{HAS_VALUE, SAME_SIZE, STATUS, Status, WIDE};
use thiserror::Error;

const SAME_SIZE_VALUE: u8 = HAS_VALUE | SAME_SIZE;
const WIDE_VALUE: u8 = HAS_VALUE | WIDE;

/// Reply to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Result of the operation.
    pub status: Status,
    /// Value that the operation returns, or the text of an error.
    pub value: Option<&'a [u8]>,
}

/// A packet of replies breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("reply {reply}, at byte {offset} of the payload, is none of the batched protocol")]
pub struct MalformedReply {
    /// Number of the reply in its packet, from 0.
    pub reply: u16,
    /// Place in the payload, in bytes.
    pub offset: u32,
}

/// The replies of a packet, one after the other. The last item is an error if the packet breaks a
/// rule; replies before it are as the server wrote them.
#[derive(Clone, Debug)]
pub struct ReplyReader<'a> {
    payload: &'a [u8],
    rest: &'a [u8],
    number: u16,
    count: u16,
    /// Length of the last value; longer than any before the first one.
    last_value_bytes: usize,
}

impl<'a> ReplyReader<'a> {
    /// Reads `count` replies from a payload.
    #[inline]
    pub fn new(payload: &'a [u8], count: u16) -> Self {
        Self { payload, rest: payload, number: 0, count, last_value_bytes: usize::MAX }
    }

    #[inline]
    fn read(&mut self) -> Option<Reply<'a>> {
        let (&first, mut rest) = self.rest.split_first()?;
        let status = Status::from_code(first & STATUS)?;
        let mut value = None;
        match first & !STATUS {
            0 => {}
            flags => {
                match flags {
                    SAME_SIZE_VALUE => {}
                    HAS_VALUE => {
                        let (length, behind) = rest.split_first_chunk()?;
                        self.last_value_bytes = u16::from_le_bytes(*length).into();
                        rest = behind;
                    }
                    WIDE_VALUE => {
                        let (length, behind) = rest.split_first_chunk()?;
                        self.last_value_bytes = u32::from_le_bytes(*length) as usize;
                        rest = behind;
                    }
                    _ => return None,
                }
                let (bytes, behind) = rest.split_at_checked(self.last_value_bytes)?;
                (value, rest) = (Some(bytes), behind);
            }
        }
        self.rest = rest;
        Some(Reply { status, value })
    }

    #[cold]
    fn fail(&mut self) -> MalformedReply {
        let offset = (self.payload.len() - self.rest.len()) as u32;
        let reply = self.number;
        (self.number, self.count, self.rest) = (0, 0, &[]);
        MalformedReply { reply, offset }
    }
}

impl<'a> Iterator for ReplyReader<'a> {
    type Item = Result<Reply<'a>, MalformedReply>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.number == self.count {
            return if self.rest.is_empty() { None } else { Some(Err(self.fail())) };
        }
        Some(match self.read() {
            Some(reply) => {
                self.number += 1;
                Ok(reply)
            }
            None => Err(self.fail()),
        })
    }
}
