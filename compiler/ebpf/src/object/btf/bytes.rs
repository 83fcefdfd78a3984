// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sequential reading of numbers.

/// The unread bytes.
pub(super) struct Bytes<'d>(pub &'d [u8]);

impl<'d> Bytes<'d> {
    /// Reads `N` 32-bit numbers.
    pub(super) fn words<const N: usize>(&mut self) -> Option<[u32; N]> {
        let mut words = [0; N];
        for word in &mut words {
            let (bytes, rest) = self.0.split_first_chunk()?;
            (*word, self.0) = (u32::from_le_bytes(*bytes), rest);
        }
        Some(words)
    }

    /// Reads `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Option<Bytes<'d>> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Bytes(taken))
    }

    /// Reads the header of `.BTF` and `.BTF.ext`. Returns the length of the whole header; offsets
    /// count from its end.
    pub(super) fn header(&mut self) -> Result<usize, String> {
        let Some([kind, length]) = self.words() else {
            return Err("the header is truncated".to_owned());
        };
        match (kind & 0xffff, kind >> 16 & 0xff) {
            (0xeb9f, 1) => Ok(length as usize),
            (0xeb9f, version) => Err(format!("version {version} is not supported")),
            (magic, _) => Err(format!("begins with {magic:#x} and not with 0xeb9f")),
        }
    }
}
