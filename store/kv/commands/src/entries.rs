// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of values in replies. An element that is stored as an integer is written as its text.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::Entry;

/// A string.
#[inline]
pub fn bulk(reply: &mut Writer<'_>, entry: Entry<'_>) {
    entry.with_bytes(|bytes| reply.bulk(bytes));
}

/// A string, or the absence of one.
#[inline]
pub fn bulk_or_null(reply: &mut Writer<'_>, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => bulk(reply, entry),
        None => reply.null(),
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::resp::Version;

    use super::*;

    #[test]
    fn integers_are_written_as_text() {
        let mut output = vec![];
        let mut reply = Writer::new(&mut output, Version::Two);
        bulk(&mut reply, Entry::Integer(-7));
        bulk_or_null(&mut reply, Some(Entry::Bytes(b"x")));
        bulk_or_null(&mut reply, None);
        assert_eq!(output, b"$2\r\n-7\r\n$1\r\nx\r\n$-1\r\n");
    }
}
