// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of the log: writes to files. A chunk has whole entries.

/// Longest path in bytes.
pub const PATH_BYTES: usize = 255;
/// Bytes of an entry without its path and data.
const FIXED_BYTES: usize = 13;

/// A write to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The file.
    pub path: &'a str,
    /// First byte in the file.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
}

/// Returns the number of bytes of an entry of such a path without its data.
pub fn overhead(path: &str) -> usize {
    FIXED_BYTES + path.len()
}

impl Entry<'_> {
    /// Appends the entry to a body.
    pub fn put(&self, body: &mut Vec<u8>) {
        body.push(self.path.len() as u8);
        body.extend(self.path.as_bytes());
        body.extend(self.offset.to_le_bytes());
        body.extend((self.data.len() as u32).to_le_bytes());
        body.extend(self.data);
    }
}

/// Returns the entries of a body, up to one that is damaged.
pub fn entries(mut body: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        let (entry, rest) = first(body)?;
        body = rest;
        Some(entry)
    })
}

fn first(body: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (&length, rest) = body.split_first()?;
    let (path, rest) = rest.split_at_checked(length.into())?;
    let (offset, rest) = rest.split_at_checked(8)?;
    let (length, rest) = rest.split_at_checked(4)?;
    let offset = u64::from_le_bytes(offset.try_into().expect("8 bytes"));
    let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
    let (data, rest) = rest.split_at_checked(length as usize)?;
    Some((Entry { path: std::str::from_utf8(path).ok()?, offset, data }, rest))
}
