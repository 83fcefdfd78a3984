// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies to classic requests, appended to the bytes that a connection sends. Requests of one
//! connection are answered in order.

use super::decimal::push;

/// A reply of one fixed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A value was stored.
    Stored,
    /// The condition of `add` or `replace` does not hold.
    NotStored,
    /// The item has another CAS number.
    Exists,
    /// There is no such key.
    NotFound,
    /// A key was removed.
    Deleted,
    /// A key has a new expiry.
    Touched,
    /// Done.
    Ok,
    /// End of values or statistics.
    End,
    /// Statistics were reset.
    Reset,
    /// The command or its words are unknown.
    Error,
    /// The value is no number of 64 bits.
    NonNumeric,
    /// A value cannot be stored.
    OutOfMemoryStoring,
    /// A number cannot be stored.
    OutOfMemory,
    /// `flush_all` is disabled.
    FlushNotAllowed,
    /// `shutdown` is disabled.
    ShutdownNotEnabled,
    /// `shutdown` has another word than `graceful`.
    ShutdownMode,
    /// `cache_memlimit` has fewer than 8 MiB.
    MemoryLimitTooSmall,
    /// `cache_memlimit` cannot be applied.
    MemoryLimitFailed,
}

impl Line {
    /// The line with its end.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Stored => b"STORED\r\n",
            Self::NotStored => b"NOT_STORED\r\n",
            Self::Exists => b"EXISTS\r\n",
            Self::NotFound => b"NOT_FOUND\r\n",
            Self::Deleted => b"DELETED\r\n",
            Self::Touched => b"TOUCHED\r\n",
            Self::Ok => b"OK\r\n",
            Self::End => b"END\r\n",
            Self::Reset => b"RESET\r\n",
            Self::Error => b"ERROR\r\n",
            Self::NonNumeric => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            Self::OutOfMemoryStoring => b"SERVER_ERROR out of memory storing object\r\n",
            Self::OutOfMemory => b"SERVER_ERROR out of memory\r\n",
            Self::FlushNotAllowed => b"CLIENT_ERROR flush_all not allowed\r\n",
            Self::ShutdownNotEnabled => b"ERROR: shutdown not enabled\r\n",
            Self::ShutdownMode => b"CLIENT_ERROR invalid shutdown mode\r\n",
            Self::MemoryLimitTooSmall => {
                b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"
            }
            Self::MemoryLimitFailed => {
                b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"
            }
        }
    }
}

/// Appends a fixed line.
#[inline]
pub fn line(out: &mut Vec<u8>, line: Line) {
    out.extend_from_slice(line.bytes());
}

/// Appends the new number of `incr` or `decr`.
#[inline]
pub fn number(out: &mut Vec<u8>, number: u64) {
    push(out, number);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line before a value. The value and the end of a line have to follow, for example
/// from where the value is stored. `cas` belongs to `gets` and `gats`.
#[inline]
pub fn value_header(
    out: &mut Vec<u8>,
    key: &[u8],
    client_flags: u32,
    value_bytes: usize,
    cas: Option<u64>,
) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    push(out, client_flags.into());
    out.push(b' ');
    push(out, value_bytes as u64);
    if let Some(cas) = cas {
        out.push(b' ');
        push(out, cas);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a value with the line before it. After the last one follows [`Line::End`].
#[inline]
pub fn value(out: &mut Vec<u8>, key: &[u8], client_flags: u32, value: &[u8], cas: Option<u64>) {
    value_header(out, key, client_flags, value.len(), cas);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a line of statistics. After the last one follows [`Line::End`].
pub fn stat(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in ["STAT ", name, " ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends a line of statistics with a number.
pub fn stat_number(out: &mut Vec<u8>, name: &str, value: u64) {
    for part in ["STAT ", name, " "] {
        out.extend_from_slice(part.as_bytes());
    }
    number(out, value);
}

/// Appends the version of the server.
pub fn version(out: &mut Vec<u8>, version: &str) {
    for part in ["VERSION ", version, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_form_of_the_protocol() {
        let mut out = vec![];
        value(&mut out, b"key", 0, b"", None);
        value(&mut out, b"k", 4_294_967_295, b"a\r\nb", Some(u64::MAX));
        line(&mut out, Line::End);
        number(&mut out, 0);
        stat(&mut out, "pid", "1");
        stat_number(&mut out, "curr_items", 120);
        version(&mut out, "1.6.18");
        let text = "VALUE key 0 0\r\n\r\nVALUE k 4294967295 4 18446744073709551615\r\na\r\nb\r\n\
            END\r\n0\r\nSTAT pid 1\r\nSTAT curr_items 120\r\nVERSION 1.6.18\r\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }
}
