// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames, which logs and snapshots consist of, and the header of each file.
//!
//! A file begins with a header of [`FILE_BYTES`]. Frames follow each other without gaps:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic: a batch of units, a block of entries, or the end of a snapshot |
//! | 4 | 4 | check of the header: CRC-32C of salt, place, and the fields below |
//! | 8 | 8 | bytes of the items that follow |
//! | 16 | 8 | sequence number |
//! | 24 | 8 | a batch: position up to which the log was durable; an end: number of entries |
//! | 32 | 4 | CRC-32C of the items |
//! | 36 | 4 | number of items |
//! | 40 | | items, each with its length in 4 bytes before it |
//!
//! All numbers are little-endian. The *place* of a batch is its position in the log, that of a
//! block its offset in the file. Salt and place are not stored: a copy of a frame at another place,
//! or one that a client has put into a value, is not valid.

/// Bytes of a frame before its items.
pub(crate) const FRAME_BYTES: usize = 40;

/// Bytes of a file before its first frame.
pub const FILE_BYTES: u64 = 32;

/// Bytes of an item's length.
pub(crate) const LENGTH_BYTES: usize = 4;

/// The largest unit or entry.
pub const MAX_ITEM_BYTES: u64 = 2 << 30;

/// The version of the format, in each file.
pub(crate) const VERSION: u32 = 1;

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Batch,
    Block,
    End,
}

impl Kind {
    pub fn magic(self) -> [u8; 4] {
        match self {
            Kind::Batch => [0xf7, b'K', b'B', 0x0d],
            Kind::Block => [0xf7, b'K', b'S', 0x0d],
            Kind::End => [0xf7, b'K', b'E', 0x0d],
        }
    }
}

/// The fields of a frame before its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub bytes: u64,
    pub sequence: u64,
    /// Position up to which the log was durable (`Batch`), or number of entries (`End`).
    pub mark: u64,
    pub items_check: u32,
    pub items: u32,
}

impl Header {
    /// The bytes of the header, for a frame at `place`.
    pub fn encode(&self, salt: u64, place: u64) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[..4].copy_from_slice(&self.kind.magic());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.mark.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.items_check.to_le_bytes());
        bytes[36..].copy_from_slice(&self.items.to_le_bytes());
        let check = header_check(&bytes, salt, place);
        bytes[4..8].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The header in these bytes, if they are one of a frame at `place`.
    pub fn decode(bytes: &[u8; FRAME_BYTES], salt: u64, place: u64) -> Option<Header> {
        let kinds = [Kind::Batch, Kind::Block, Kind::End];
        let kind = kinds.into_iter().find(|kind| bytes.starts_with(&kind.magic()))?;
        if number4(bytes, 4) != header_check(bytes, salt, place) {
            return None;
        }
        Some(Header {
            kind,
            bytes: number8(bytes, 8),
            sequence: number8(bytes, 16),
            mark: number8(bytes, 24),
            items_check: number4(bytes, 32),
            items: number4(bytes, 36),
        })
    }
}

fn header_check(bytes: &[u8; FRAME_BYTES], salt: u64, place: u64) -> u32 {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&salt.to_le_bytes());
    seed[8..].copy_from_slice(&place.to_le_bytes());
    let check = crc32c::crc32c_append(crc32c::crc32c(&seed), &bytes[..4]);
    crc32c::crc32c_append(check, &bytes[8..])
}

/// Units or entries that follow each other, each after its length of four bytes. It iterates over
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items<'a> {
    bytes: &'a [u8],
    count: u32,
}

impl<'a> Items<'a> {
    /// The items in these bytes.
    ///
    /// # Errors
    ///
    /// There are more or fewer than `count`, or the last one is not complete: the reason.
    pub fn parse(bytes: &'a [u8], count: u32) -> Result<Items<'a>, &'static str> {
        let mut rest = Items { bytes, count };
        for _ in 0..count {
            if rest.bytes.len() < LENGTH_BYTES {
                return Err("the frame has fewer items than it says");
            }
            rest.next().ok_or("an item is longer than its frame")?;
        }
        if rest.bytes.is_empty() {
            Ok(Items { bytes, count })
        } else {
            Err("the frame has more bytes than its items")
        }
    }

    /// Items that are known to be complete.
    pub(crate) fn known(bytes: &'a [u8], count: u32) -> Items<'a> {
        Items { bytes, count }
    }

    /// The bytes of all items that are left, with their lengths.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of items that are left.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let (item, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.bytes = rest;
        self.count = self.count.saturating_sub(1);
        Some(item)
    }
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Log => b"FPKVLOG\n",
            FileKind::Snapshot => b"FPKVSNP\n",
        }
    }
}

/// The header of a file: magic, version, number of the file, salt, and the check of these.
pub(crate) fn file_header(kind: FileKind, number: u64, salt: u64) -> [u8; FILE_BYTES as usize] {
    let mut bytes = [0; FILE_BYTES as usize];
    bytes[..8].copy_from_slice(kind.magic());
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&number.to_le_bytes());
    bytes[20..28].copy_from_slice(&salt.to_le_bytes());
    let check = crc32c::crc32c(&bytes[..28]);
    bytes[28..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Whether the bytes are the header of that file; otherwise what is wrong with them.
pub(crate) fn check_file_header(
    bytes: &[u8; FILE_BYTES as usize],
    kind: FileKind,
    number: u64,
    salt: u64,
) -> Result<(), String> {
    if !bytes.starts_with(kind.magic()) {
        return Err("the file does not begin as a file of this kind".to_owned());
    }
    let version = number4(bytes, 8);
    if version != VERSION {
        return Err(format!("the file has version {version}, and this program reads {VERSION}"));
    }
    if number4(bytes, 28) != crc32c::crc32c(&bytes[..28]) {
        return Err("the header of the file does not match its check".to_owned());
    }
    if number8(bytes, 12) != number || number8(bytes, 20) != salt {
        return Err("the file belongs to another folder or has another name".to_owned());
    }
    Ok(())
}

fn number4(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn number8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_valid_only_at_its_place() {
        let header = Header {
            kind: Kind::Batch,
            bytes: 12,
            sequence: 3,
            mark: 100,
            items_check: 5,
            items: 1,
        };
        let bytes = header.encode(7, 200);
        assert_eq!(Header::decode(&bytes, 7, 200), Some(header));
        assert_eq!(Header::decode(&bytes, 8, 200), None);
        assert_eq!(Header::decode(&bytes, 7, 201), None);
        for at in 0..FRAME_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Header::decode(&changed, 7, 200), None, "byte {at}");
        }
    }

    #[test]
    fn items_fill_their_frame() {
        let bytes = [2, 0, 0, 0, 8, 9, 0, 0, 0, 0];
        let both: Vec<&[u8]> = Items::parse(&bytes, 2).expect("two items").collect();
        assert_eq!(both, [&[8u8, 9][..], &[]]);
        assert!(Items::parse(&bytes, 1).is_err());
        assert!(Items::parse(&bytes, 3).is_err());
        assert!(Items::parse(&bytes[..9], 2).is_err());
        assert!(Items::parse(&bytes, u32::MAX).is_err());
    }
}
