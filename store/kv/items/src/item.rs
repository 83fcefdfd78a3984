// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An item as the engine has it: a header of ten bytes, and up to eleven more for what few items
//! have, before the value. The original has 56 bytes.
//!
//! ```text
//! 1 byte       marks, and which of the parts below are there
//! 4 bytes      time of the last use, in seconds since 1970
//! 4 bytes      time of expiry, if the item was given one; 0: it does not expire any more
//! 4 bytes      client flags, if not 0
//! 5 or 8 bytes CAS number; a long one only after 2^40 changes
//! ```

use crate::now::Now;

/// The item was fetched.
pub(crate) const FETCHED: u8 = 0x01;
/// The item was marked as stale.
pub(crate) const STALE: u8 = 0x02;
/// A client was told to renew the item.
pub(crate) const HAS_WINNER: u8 = 0x04;
/// The item was stored with a binary key.
pub(crate) const BINARY_KEY: u8 = 0x08;
const MARKS: u8 = FETCHED | STALE | HAS_WINNER | BINARY_KEY;
const HAS_EXPIRY: u8 = 0x10;
const HAS_CLIENT_FLAGS: u8 = 0x20;
const HAS_LONG_CAS: u8 = 0x40;

const USED: usize = 1;
const EXPIRY: usize = 5;
const SHORT_CAS_BYTES: usize = 5;

/// Bytes of a header at most.
pub(crate) const HEADER_BYTES_MAX: usize = 21;

/// Class of all items: blocks of memory have no classes that an operator has to know.
pub(crate) const CLASS: u32 = 1;

/// The parts of an item besides its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// [`FETCHED`], [`STALE`], [`HAS_WINNER`], [`BINARY_KEY`].
    pub marks: u8,
    /// Time of the last use.
    pub used_s: u32,
    /// Time of expiry; 0 if it does not expire. None: there never was one.
    pub expiry: Option<u32>,
    /// Number that the client keeps with the value.
    pub client_flags: u32,
    /// CAS number.
    pub cas: u64,
}

impl Header {
    /// An item has a mark.
    #[inline]
    pub fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// When the item expires, if it does.
    #[inline]
    pub fn expires_s(&self) -> Option<u32> {
        self.expiry.filter(|time| *time != 0)
    }

    /// Time to live, if the item expires.
    pub fn ttl_s(&self, now: Now) -> Option<u32> {
        self.expires_s().map(|time| time.saturating_sub(now.0))
    }

    /// Time since the last use.
    pub fn idle_s(&self, now: Now) -> u32 {
        now.0.saturating_sub(self.used_s)
    }

    /// Appends the header.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES_MAX];
        let mut length = EXPIRY;
        let mut parts = self.marks & MARKS;
        bytes[USED..EXPIRY].copy_from_slice(&self.used_s.to_le_bytes());
        if let Some(time) = self.expiry {
            parts |= HAS_EXPIRY;
            bytes[length..length + 4].copy_from_slice(&time.to_le_bytes());
            length += 4;
        }
        if self.client_flags != 0 {
            parts |= HAS_CLIENT_FLAGS;
            bytes[length..length + 4].copy_from_slice(&self.client_flags.to_le_bytes());
            length += 4;
        }
        // A short number has zeros above, which the value overwrites.
        bytes[length..length + 8].copy_from_slice(&self.cas.to_le_bytes());
        if self.cas >> (8 * SHORT_CAS_BYTES) != 0 {
            parts |= HAS_LONG_CAS;
            length += 8;
        } else {
            length += SHORT_CAS_BYTES;
        }
        bytes[0] = parts;
        out.extend_from_slice(&bytes[..length]);
    }

    /// Reads the header of a stored item, and returns the value behind it.
    ///
    /// # Panics
    /// If the bytes are not those of an item: only this crate stores any.
    #[inline]
    pub fn read(stored: &[u8]) -> (Self, &[u8]) {
        Self::parse(stored).expect("the engine has only what was written by this module")
    }

    #[inline]
    fn parse(stored: &[u8]) -> Option<(Self, &[u8])> {
        let (&parts, rest) = stored.split_first()?;
        let (used, mut rest) = rest.split_first_chunk()?;
        let mut header =
            Self { marks: parts & MARKS, used_s: u32::from_le_bytes(*used), ..Self::default() };
        if parts & HAS_EXPIRY != 0 {
            let (time, after) = rest.split_first_chunk()?;
            (header.expiry, rest) = (Some(u32::from_le_bytes(*time)), after);
        }
        if parts & HAS_CLIENT_FLAGS != 0 {
            let (flags, after) = rest.split_first_chunk()?;
            (header.client_flags, rest) = (u32::from_le_bytes(*flags), after);
        }
        if parts & HAS_LONG_CAS != 0 {
            let (cas, after) = rest.split_first_chunk()?;
            (header.cas, rest) = (u64::from_le_bytes(*cas), after);
        } else {
            let (low, after) = rest.split_first_chunk::<4>()?;
            let (high, after) = after.split_first()?;
            header.cas = u64::from(u32::from_le_bytes(*low)) | u64::from(*high) << 32;
            rest = after;
        }
        Some((header, rest))
    }
}

/// Whether a stored item has expired, without a look at the rest of its header.
#[inline]
pub(crate) fn has_expired(stored: &[u8], now: Now) -> bool {
    if stored[0] & HAS_EXPIRY == 0 {
        return false;
    }
    let time = stored[EXPIRY..].first_chunk().map_or(0, |time| u32::from_le_bytes(*time));
    time != 0 && time <= now.0
}

/// Notes the use of a stored item. Most items are used again in the same second, and are not
/// written then.
#[inline]
pub(crate) fn note_use(stored: &mut [u8], now: Now, marks: u8) {
    if stored[0] & marks != marks {
        stored[0] |= marks;
    }
    let used = &mut stored[USED..EXPIRY];
    if *used != now.0.to_le_bytes() {
        used.copy_from_slice(&now.0.to_le_bytes());
    }
}

/// Changes the expiry of a stored item in place. False: it has no room for one.
pub(crate) fn set_expiry(stored: &mut [u8], time_s: Option<u32>) -> bool {
    if stored[0] & HAS_EXPIRY == 0 {
        return time_s.is_none();
    }
    stored[EXPIRY..EXPIRY + 4].copy_from_slice(&time_s.unwrap_or(0).to_le_bytes());
    true
}

/// Size of an item as the original counts it: a header of 48 bytes, a CAS number, a zero byte
/// after the key, client flags other than 0, and the end of a line. Limits and reports are in these
/// bytes.
pub(crate) fn counted_bytes(key_bytes: usize, client_flags: u32, value_bytes: usize) -> usize {
    let client_flags_bytes = if client_flags == 0 { 0 } else { 4 };
    48 + 8 + key_bytes + 1 + client_flags_bytes + value_bytes + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> impl Iterator<Item = Header> {
        let numbers = [0, 1, (1 << 40) - 1, 1 << 40, u64::MAX];
        let expiries = [None, Some(0), Some(1), Some(u32::MAX)];
        numbers.into_iter().flat_map(move |cas| {
            expiries.into_iter().flat_map(move |expiry| {
                [(0, 0), (FETCHED, 1), (MARKS, u32::MAX)].map(|(marks, client_flags)| Header {
                    marks,
                    used_s: 77,
                    expiry,
                    client_flags,
                    cas,
                })
            })
        })
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        for header in headers() {
            let mut stored = vec![];
            header.write(&mut stored);
            assert!(stored.len() <= HEADER_BYTES_MAX);
            stored.extend_from_slice(b"value");
            assert_eq!(Header::read(&stored), (header, &b"value"[..]));
        }
    }

    #[test]
    fn a_usual_header_has_ten_bytes() {
        let mut stored = vec![];
        Header { cas: 1_000_000, used_s: u32::MAX, ..Header::default() }.write(&mut stored);
        assert_eq!(stored.len(), 10);
    }

    #[test]
    fn uses_and_expiries_change_in_place() {
        for header in headers() {
            let mut stored = vec![];
            header.write(&mut stored);
            stored.extend_from_slice(b"value");
            note_use(&mut stored, Now(80), FETCHED);
            let has_room = set_expiry(&mut stored, Some(90));
            assert_eq!(has_room, header.expiry.is_some());
            let marks = header.marks | FETCHED;
            let expiry = header.expiry.map(|_| 90);
            let expected = Header { marks, used_s: 80, expiry, ..header };
            assert_eq!(Header::read(&stored), (expected, &b"value"[..]));
            assert_eq!(has_expired(&stored, Now(90)), has_room);
            assert!(!has_expired(&stored, Now(89)));
            assert!(set_expiry(&mut stored, None) && !has_expired(&stored, Now(u32::MAX)));
            assert_eq!(Header::read(&stored).0.ttl_s(Now(80)), None);
        }
    }
}
