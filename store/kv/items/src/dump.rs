// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lru_crawler metadump`: a line for each item. A worker may have millions, so the list is made in
//! pieces, between which other requests are served. An item that is there all the time is listed,
//! and one that comes or goes meanwhile may be.

use std::io::Write;

use crate::item::{self, CLASS, FETCHED, Header, counted_bytes};
use crate::items::Items;
use crate::now::Now;

/// The part of a list of all items that is still to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    cursor: u64,
}

/// Chains of one piece at most: many may be empty.
const CHAINS: usize = 4_096;
/// Bytes of one piece; a chain more may follow.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of `stats cachedump` at most, as in the original.
const CACHE_DUMP_BYTES: usize = 2 << 20;
/// Chains that `stats cachedump` looks at.
const CACHE_DUMP_CHAINS: usize = 100_000;

impl Items {
    /// Appends the next lines of a list. Returns what is still to be made; none: this was all, and
    /// after the last worker's list `END` follows.
    pub fn dump(&self, dump: Dump, now: Now, output: &mut Vec<u8>) -> Option<Dump> {
        let (mut cursor, begin) = (dump.cursor, output.len());
        for _ in 0..CHAINS {
            cursor = self.engine.scan(cursor, |key, stored| {
                if !item::has_expired(stored.bytes, now) {
                    line(output, key, stored.bytes);
                }
            });
            if cursor == 0 {
                return None;
            }
            if output.len() - begin > PIECE_BYTES {
                break;
            }
        }
        Some(Dump { cursor })
    }

    /// Appends some keys with sizes and expiries; all for a count of 0.
    pub(crate) fn list_some(&self, count: u64, output: &mut Vec<u8>) {
        let (mut cursor, mut listed, begin) = (0, 0, output.len());
        for _ in 0..CACHE_DUMP_CHAINS {
            cursor = self.engine.scan(cursor, |key, stored| {
                if count != 0 && listed >= count {
                    return;
                }
                listed += 1;
                let (header, value) = Header::read(stored.bytes);
                output.extend_from_slice(b"ITEM ");
                output.extend_from_slice(key);
                let time = header.expires_s().unwrap_or(0);
                append(output, format_args!(" [{} b; {time} s]\r\n", value.len()));
            });
            let is_full = output.len() - begin > CACHE_DUMP_BYTES;
            if cursor == 0 || is_full || count != 0 && listed >= count {
                return;
            }
        }
    }
}

fn append(output: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    output.write_fmt(text).expect("a vector takes everything");
}

fn line(output: &mut Vec<u8>, key: &[u8], stored: &[u8]) {
    let (header, value) = Header::read(stored);
    output.extend_from_slice(b"key=");
    for byte in key {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                output.push(*byte);
            }
            _ => append(output, format_args!("%{byte:02X}")),
        }
    }
    let expiry = header.expires_s().map_or(-1, i64::from);
    let is_fetched = if header.is(FETCHED) { "yes" } else { "no" };
    let size = counted_bytes(key.len(), header.client_flags, value.len());
    append(
        output,
        format_args!(
            " exp={expiry} la={} cas={} fetch={is_fetched} cls={CLASS} size={size}\n",
            header.used_s, header.cas
        ),
    );
}
