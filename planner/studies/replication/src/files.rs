// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files as the log of writes leaves them.

use crate::entry::{Entry, entries};
use std::collections::BTreeMap;

/// Largest file in bytes: files are in memory.
pub const FILE_BYTES: u64 = 1 << 32;

/// Files by their paths, in memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Files {
    files: BTreeMap<String, Vec<u8>>,
}

impl Files {
    /// Applies all writes of a chunk's body.
    pub fn apply(&mut self, body: &[u8]) {
        entries(body).for_each(|entry| self.write(entry));
    }

    /// Applies a write. Bytes between the end of a file and a write behind it are zero. A write
    /// beyond [`FILE_BYTES`], which no client can make, is left out.
    pub fn write(&mut self, entry: Entry<'_>) {
        let end = entry.offset.checked_add(entry.data.len() as u64);
        let Some(end) = end.filter(|end| *end <= FILE_BYTES) else { return };
        if !self.files.contains_key(entry.path) {
            self.files.insert(entry.path.into(), Vec::new());
        }
        let file = self.files.get_mut(entry.path).expect("it was inserted");
        let (begin, end) = (entry.offset as usize, end as usize);
        if file.len() < end {
            file.resize(end, 0);
        }
        file[begin..end].copy_from_slice(entry.data);
    }

    /// Returns the contents of a file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Returns a hash of all paths and contents.
    pub fn hash(&self) -> u32 {
        self.files.iter().fold(0, |hash, (path, contents)| {
            let lengths = [path.len() as u64, contents.len() as u64].map(u64::to_le_bytes);
            let parts = [lengths.as_flattened(), path.as_bytes(), contents];
            parts.into_iter().fold(hash, crc32c::crc32c_append)
        })
    }
}
