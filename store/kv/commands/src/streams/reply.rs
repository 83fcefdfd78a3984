// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ids and entries in replies.

use std::io::Write;

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::StreamId;
use freeport_kv_types::stream::{Fields, StreamEntry};

/// Bytes of the longest id: two numbers of 64 bits and what is between them.
const LONGEST_ID: usize = 41;

/// An id.
pub fn id(reply: &mut Writer<'_>, id: StreamId) {
    let mut text = [0; LONGEST_ID];
    let mut rest = &mut text[..];
    write!(rest, "{id}").expect("the text has room for the longest id");
    let bytes = LONGEST_ID - rest.len();
    reply.bulk(&text[..bytes]);
}

/// An entry: its id and its fields.
pub fn entry(reply: &mut Writer<'_>, StreamEntry { id, fields }: StreamEntry<'_>) {
    reply.array(2);
    self::id(reply, id);
    self::fields(reply, fields);
}

/// Names and values in turn.
pub fn fields(reply: &mut Writer<'_>, fields: Fields<'_>) {
    reply.array(2 * fields.len());
    for (name, value) in fields {
        reply.bulk(name);
        value.with_bytes(|value| reply.bulk(value));
    }
}

/// Entries as an array.
pub fn entries<'a>(reply: &mut Writer<'_>, entries: impl Iterator<Item = StreamEntry<'a>>) {
    let start = reply.len();
    let mut count = 0;
    for entry in entries {
        self::entry(reply, entry);
        count += 1;
    }
    reply.before(start, |reply| reply.array(count));
}

/// A number that may be unknown.
pub fn optional(reply: &mut Writer<'_>, number: Option<i64>) {
    match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

/// A count. Counts above the range of replies wrap, as in Redis: clients can set some of them.
pub fn count(reply: &mut Writer<'_>, count: u64) {
    reply.integer(count as i64);
}

/// The name of a value in a map.
pub fn name(reply: &mut Writer<'_>, name: &str) {
    reply.bulk(name.as_bytes());
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::resp::Version;

    use super::*;

    #[test]
    fn the_longest_id_has_room() {
        let mut output = vec![];
        id(&mut Writer::new(&mut output, Version::Two), StreamId::MAX);
        assert_eq!(output, b"$41\r\n18446744073709551615-18446744073709551615\r\n");
    }
}
