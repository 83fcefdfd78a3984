// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Integers of any width inside a string: BITFIELD. All of its words are read before the first of
//! its operations takes place.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::bitfield::{self, FieldType, Overflow};
use freeport_kv_types::{Limits, number};

use super::OFFSET_OUT_OF_RANGE;
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// An operation on one integer.
struct Operation {
    kind: FieldType,
    offset: u64,
    action: Action,
}

/// Effect of an operation.
enum Action {
    Get,
    Set { value: i64, overflow: Overflow },
    Increment { by: i64, overflow: Overflow },
}

/// All operations of a command.
struct Operations {
    list: Vec<Operation>,
    /// Bytes that a string needs for those that write; none if there are none.
    length: Option<usize>,
}

/// `BITFIELD key` and then `GET type offset`, `SET type offset value`, `INCRBY type offset number`
/// or `OVERFLOW WRAP | SAT | FAIL`, in any order and number.
pub fn bitfield(call: &mut Call<'_>) -> Result<(), Error> {
    let operations = Operations::read(call)?;
    match operations.length {
        None => read_only(call, &operations),
        Some(length) => write(call, &operations, length),
    }
}

/// `BITFIELD_RO key [GET type offset]...`.
pub fn bitfield_ro(call: &mut Call<'_>) -> Result<(), Error> {
    const ONLY_GET: Error = Error::fixed("ERR BITFIELD_RO only supports the GET subcommand");
    let operations = Operations::read(call)?;
    if operations.length.is_some() {
        return Err(ONLY_GET);
    }
    read_only(call, &operations)
}

fn read_only(call: &mut Call<'_>, operations: &Operations) -> Result<(), Error> {
    let bytes = call.database.string(call.arguments[1])?.unwrap_or_default();
    call.reply.array(operations.list.len());
    for operation in &operations.list {
        call.reply.integer(bitfield::get(bytes, operation.kind, operation.offset));
    }
    Ok(())
}

/// An integer that does not fit, and that `OVERFLOW FAIL` leaves alone, can still have made the
/// string longer. That is a change too.
fn write(call: &mut Call<'_>, operations: &Operations, length: usize) -> Result<(), Error> {
    let key = call.arguments[1];
    let old_length = call.database.string(key)?.map_or(0, <[u8]>::len);
    let reply = &mut call.reply;
    reply.array(operations.list.len());
    let is_changed = call.database.edit_string(key, length, |bytes| {
        let mut is_changed = old_length < length;
        for operation in &operations.list {
            is_changed |= operation.run(bytes, reply);
        }
        is_changed
    })?;
    if is_changed {
        call.database.changed(key, Class::String, "setbit");
    }
    Ok(())
}

impl Operation {
    /// Replies with the result, and returns whether the integer is another one.
    fn run(&self, bytes: &mut [u8], reply: &mut Writer<'_>) -> bool {
        let (kind, offset) = (self.kind, self.offset);
        let old = bitfield::get(bytes, kind, offset);
        let result = match self.action {
            Action::Get => Some(old),
            Action::Set { value, overflow } => {
                bitfield::set_within(bytes, kind, offset, value, overflow)
            }
            Action::Increment { by, overflow } => {
                bitfield::increment_within(bytes, kind, offset, by, overflow)
            }
        };
        match result {
            Some(result) => reply.integer(result),
            None => reply.null(),
        }
        bitfield::get(bytes, kind, offset) != old
    }
}

impl Operations {
    fn read(call: &Call<'_>) -> Result<Self, Error> {
        let limits = call.database.limits(call.arguments[1]);
        let (mut list, mut length) = (vec![], None);
        let mut overflow = Overflow::default();
        let mut words = &call.arguments[2..];
        while let [word, rest @ ..] = words {
            words = match *rest {
                [kind, offset, ref rest @ ..] if is(word, "GET") => {
                    let (kind, offset, _) = read_place(limits, kind, offset)?;
                    list.push(Operation { kind, offset, action: Action::Get });
                    rest
                }
                [kind, offset, value, ref rest @ ..] if is(word, "SET") || is(word, "INCRBY") => {
                    let (kind, offset, end) = read_place(limits, kind, offset)?;
                    let value = integer(value)?;
                    let action = match is(word, "SET") {
                        true => Action::Set { value, overflow },
                        false => Action::Increment { by: value, overflow },
                    };
                    list.push(Operation { kind, offset, action });
                    length = length.max(Some(end));
                    rest
                }
                [word_of_overflow, ref rest @ ..] if is(word, "OVERFLOW") => {
                    overflow = read_overflow(word_of_overflow)?;
                    rest
                }
                _ => return Err(Error::SYNTAX),
            };
        }
        Ok(Self { list, length })
    }
}

/// Reads type and offset of an integer; also the end of its bytes. An offset such as `#2` counts
/// integers of that type.
fn read_place(
    limits: &Limits,
    kind: &[u8],
    offset: &[u8],
) -> Result<(FieldType, u64, usize), Error> {
    let kind = FieldType::parse(kind).map_err(Error::of)?;
    let offset = match offset.strip_prefix(b"#") {
        None => number::parse_integer(offset),
        Some(index) => {
            number::parse_integer(index).and_then(|index| index.checked_mul(kind.bits().into()))
        }
    };
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    let offset = offset.ok_or(OFFSET_OUT_OF_RANGE)?;
    let end = bitfield::end(limits, kind, offset).map_err(|_| OFFSET_OUT_OF_RANGE)?;
    Ok((kind, offset, end))
}

fn read_overflow(word: &[u8]) -> Result<Overflow, Error> {
    const INVALID: Error = Error::fixed("ERR Invalid OVERFLOW type specified");
    let overflows =
        [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let named = overflows.into_iter().find(|(name, _)| is(word, name));
    Ok(named.ok_or(INVALID)?.1)
}
