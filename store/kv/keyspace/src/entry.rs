// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of images: a pair with its database and its time of expiry.
//!
//! ```text
//! 6 bytes      length of the rest of the entry behind the number of the database
//! 2 bytes      number of the database
//! 1 byte       kind in the low four bits; 0x80: has a time of expiry
//! 8 bytes      time of expiry in milliseconds since 1970, if it has one
//! 4 bytes      length of the key
//! key, and the value as `ValueRef::serialize` writes it
//! ```
//!
//! Numbers are little-endian. A value is one entry, whatever its size.

use freeport_kv_types::{Corrupt, Limits};

use crate::header::Kind;
use crate::transfer::Detached;
use crate::view::ValueRef;

/// A pair that was read from an image.
#[derive(Debug)]
pub struct ImageEntry<'a> {
    /// Number of its database.
    pub database: u16,
    /// Its key.
    pub key: &'a [u8],
    /// Its value, with the time of expiry.
    pub value: Detached,
}

const PREFIX_BYTES: usize = 8;
const LENGTH_BITS: u32 = 48;
const KIND: u8 = 0x0F;
const EXPIRES: u8 = 0x80;

/// Appends an entry.
pub(crate) fn write(
    (database, key): (u16, &[u8]),
    expires_ms: Option<u64>,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    let expires = if expires_ms.is_some() { EXPIRES } else { 0 };
    out.push(value.kind() as u8 | expires);
    if let Some(at) = expires_ms {
        out.extend_from_slice(&at.to_le_bytes());
    }
    let key_bytes = u32::try_from(key.len()).expect("keys have 512 MiB at most");
    out.extend_from_slice(&key_bytes.to_le_bytes());
    out.extend_from_slice(key);
    value.serialize(out);
    let length = (out.len() - start - PREFIX_BYTES) as u64;
    let prefix = length | u64::from(database) << LENGTH_BITS;
    out[start..start + PREFIX_BYTES].copy_from_slice(&prefix.to_le_bytes());
}

impl<'a> ImageEntry<'a> {
    /// Reads the first entry of some bytes, and shortens them by it; none: the bytes are empty.
    /// They are not trusted.
    ///
    /// # Errors
    /// The bytes do not begin with a whole entry; see also [`Detached::deserialize`].
    pub fn read(bytes: &mut &'a [u8], limits: &Limits) -> Result<Option<Self>, Corrupt> {
        let Some(RawEntry { database, key, bytes: all }) = RawEntry::read(bytes)? else {
            return Ok(None);
        };
        let head = Head::read(all)?;
        let kind = Kind::ALL.get(usize::from(head.kind));
        let Some(&kind) = kind else {
            return Err(Corrupt::at(PREFIX_BYTES, "an unknown kind of value"));
        };
        let at = all.len() - head.value.len();
        let mut value =
            Detached::deserialize(kind, head.value, limits).map_err(|error| error.behind(at))?;
        value.expires_ms = head.expires_ms;
        Ok(Some(Self { database, key, value }))
    }
}

/// An entry of an image whose value is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// Number of its database.
    pub database: u16,
    /// Its key.
    pub key: &'a [u8],
    /// All bytes of the entry.
    pub bytes: &'a [u8],
}

impl<'a> RawEntry<'a> {
    /// Reads the first entry of some bytes, and shortens them by it; none: the bytes are empty.
    /// They are not trusted.
    ///
    /// # Errors
    /// The bytes do not begin with an entry that has a whole key.
    pub fn read(bytes: &mut &'a [u8]) -> Result<Option<Self>, Corrupt> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let all = *bytes;
        let mut rest = all;
        let prefix = u64::from_le_bytes(take(&mut rest, all)?);
        let length = prefix & ((1 << LENGTH_BITS) - 1);
        if length > rest.len() as u64 {
            return Err(Corrupt::at(0, "an entry that is longer than the bytes"));
        }
        let (all, rest) = all.split_at(PREFIX_BYTES + length as usize);
        *bytes = rest;
        let key = Head::read(all)?.key;
        Ok(Some(Self { database: (prefix >> LENGTH_BITS) as u16, key, bytes: all }))
    }
}

/// An entry behind its prefix.
struct Head<'a> {
    kind: u8,
    expires_ms: Option<u64>,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads a whole entry.
    fn read(all: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = &all[PREFIX_BYTES..];
        let [first] = take(&mut rest, all)?;
        if first & !(KIND | EXPIRES) != 0 {
            return Err(Corrupt::at(PREFIX_BYTES, "an unknown kind of value"));
        }
        let expires_ms = match first & EXPIRES {
            0 => None,
            _ => Some(u64::from_le_bytes(take(&mut rest, all)?)),
        };
        let key_bytes = u32::from_le_bytes(take(&mut rest, all)?) as usize;
        let at = all.len() - rest.len();
        let (key, value) = rest
            .split_at_checked(key_bytes)
            .ok_or(Corrupt::at(at, "a key that is longer than its entry"))?;
        Ok(Self { kind: first & KIND, expires_ms, key, value })
    }
}

/// Takes some bytes from the front of `rest`, which ends `all`.
fn take<const BYTES: usize>(rest: &mut &[u8], all: &[u8]) -> Result<[u8; BYTES], Corrupt> {
    let at = all.len() - rest.len();
    let (bytes, after) =
        rest.split_first_chunk().ok_or(Corrupt::at(at, "the entry ends too early"))?;
    *rest = after;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(expires_ms: Option<u64>) -> Vec<u8> {
        let mut bytes = vec![];
        write((7, b"key"), expires_ms, ValueRef::String(b"value"), &mut bytes);
        bytes
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let bytes = [written(None), written(Some(99))].concat();
        let (mut rest, limits) = (&bytes[..], Limits::default());
        for expires_ms in [None, Some(99)] {
            let entry = ImageEntry::read(&mut rest, &limits).expect("sound").expect("one more");
            let parts = (entry.database, entry.key, entry.value.expires_ms);
            assert_eq!(parts, (7, &b"key"[..], expires_ms));
        }
        assert!(ImageEntry::read(&mut rest, &limits).expect("sound").is_none());
    }

    #[test]
    fn damaged_entries_are_refused() {
        let (bytes, limits) = (written(Some(5)), Limits::default());
        for length in 1..bytes.len() {
            assert!(ImageEntry::read(&mut &bytes[..length], &limits).is_err(), "{length} bytes");
        }
        let damaged = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            let error = ImageEntry::read(&mut &bytes[..], &limits).expect_err("it is damaged");
            (error.offset, error.reason)
        };
        assert_eq!(damaged(5, 0xFF), (0, "an entry that is longer than the bytes"));
        assert_eq!(damaged(0, 3), (9, "the entry ends too early"));
        assert_eq!(damaged(8, 0x8F), (8, "an unknown kind of value"));
        assert_eq!(damaged(8, 0xC0), (8, "an unknown kind of value"));
        assert_eq!(damaged(17, 200), (21, "a key that is longer than its entry"));
    }
}
