// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header of a tagged value.
//!
//! ```text
//! byte 0       kind in the low four bits; 0x40: large; 0x80: has an expiry
//! 8 bytes      time of expiry in milliseconds since 1970, if it has one
//! 4 bytes      number of the large value, if it is large; else the packed bytes
//! ```

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Bytes.
    String = 0,
    /// Fields with values.
    Hash = 1,
    /// A sequence of byte strings.
    List = 2,
    /// Different byte strings.
    Set = 3,
    /// Byte strings with scores.
    SortedSet = 4,
    /// A log of entries, with consumer groups.
    Stream = 5,
}

impl Kind {
    /// All kinds, each at its number.
    pub const ALL: [Self; 6] =
        [Self::String, Self::Hash, Self::List, Self::Set, Self::SortedSet, Self::Stream];

    /// Name, as TYPE prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
        }
    }
}

/// Effect of a write on the time of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The value does not expire.
    Never,
    /// It expires at this time, in milliseconds since 1970.
    AtMs(u64),
    /// It expires when the value before would have.
    Keep,
}

/// Properties of a value besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Type of the value.
    pub kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// A value as the engine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored<'a> {
    /// Its properties.
    pub header: Header,
    /// Where its contents are.
    pub body: Body<'a>,
}

/// Contents of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// These bytes.
    Packed(&'a [u8]),
    /// The large value of this number.
    Large(u32),
}

const KIND: u8 = 0x0F;
const LARGE: u8 = 0x40;
const EXPIRES: u8 = 0x80;

impl Header {
    /// A string without an expiry, which needs no header.
    pub const PLAIN: Self = Self { kind: Kind::String, expires_ms: None };

    /// Its time has passed.
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at <= now_ms)
    }

    /// Appends the header of a value with this body, and the number of a large one.
    pub fn write(&self, large: Option<u32>, out: &mut Vec<u8>) {
        let mut first = self.kind as u8;
        if large.is_some() {
            first |= LARGE;
        }
        if self.expires_ms.is_some() {
            first |= EXPIRES;
        }
        out.push(first);
        if let Some(at) = self.expires_ms {
            out.extend_from_slice(&at.to_le_bytes());
        }
        if let Some(number) = large {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

impl<'a> Stored<'a> {
    /// Reads a value of the engine, which only this crate writes.
    pub fn read(value: freeport_kv_engine::Value<'a>) -> Self {
        if !value.is_tagged {
            return Self { header: Header::PLAIN, body: Body::Packed(value.bytes) };
        }
        Self::read_tagged(value.bytes)
            .expect("tagged values have the header they were written with")
    }

    fn read_tagged(bytes: &'a [u8]) -> Option<Self> {
        let (&first, mut rest) = bytes.split_first()?;
        let kind = *Kind::ALL.get(usize::from(first & KIND))?;
        let mut expires_ms = None;
        if first & EXPIRES != 0 {
            let (at, after) = rest.split_first_chunk()?;
            expires_ms = Some(u64::from_le_bytes(*at));
            rest = after;
        }
        let body = match first & LARGE {
            0 => Body::Packed(rest),
            _ => Body::Large(u32::from_le_bytes(*rest.first_chunk()?)),
        };
        Some(Self { header: Header { kind, expires_ms }, body })
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_engine::Value;

    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        for kind in Kind::ALL {
            for expires_ms in [None, Some(0), Some(1 << 40), Some(u64::MAX)] {
                for large in [None, Some(0), Some(u32::MAX)] {
                    let header = Header { kind, expires_ms };
                    let mut bytes = vec![];
                    header.write(large, &mut bytes);
                    let body = match large {
                        Some(number) => Body::Large(number),
                        None => {
                            bytes.extend_from_slice(b"rest");
                            Body::Packed(b"rest")
                        }
                    };
                    let value = Value { bytes: &bytes, is_tagged: true };
                    assert_eq!(Stored::read(value), Stored { header, body });
                }
            }
        }
        let plain = Value { bytes: b"", is_tagged: false };
        let expected = Stored { header: Header::PLAIN, body: Body::Packed(b"") };
        assert_eq!(Stored::read(plain), expected);
    }

    #[test]
    fn a_value_expires_at_its_time() {
        let header = Header { kind: Kind::Set, expires_ms: Some(100) };
        assert!(!header.has_expired(99));
        assert!(header.has_expired(100));
        assert!(!Header::PLAIN.has_expired(u64::MAX));
    }
}
