// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys as requests have them: literal, or base64 of binary keys.

use crate::base64;

/// Maximum number of bytes of a key as it is written in a request.
pub const KEY_BYTES_MAX: usize = 250;

/// A key of a meta request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The key as the request has it, with up to [`KEY_BYTES_MAX`] bytes.
    pub written: &'a [u8],
    /// It is base64 (flag `b`), and valid.
    pub is_base64: bool,
}

impl<'a> Key<'a> {
    /// Checks a key.
    #[inline]
    pub(super) fn new(written: &'a [u8], is_base64: bool) -> Option<Self> {
        let is_valid = !is_base64 || base64::decoded_bytes(written).is_some();
        is_valid.then_some(Self { written, is_base64 })
    }

    /// The bytes of the key, decoded into `scratch` if needed.
    #[inline]
    pub fn bytes<'b>(&self, scratch: &'b mut [u8; KEY_BYTES_MAX]) -> &'b [u8]
    where
        'a: 'b,
    {
        if self.is_base64 { base64::decode(self.written, scratch) } else { self.written }
    }

    /// Number of bytes of the key.
    pub fn length(&self) -> usize {
        let decoded = || base64::decoded_bytes(self.written).unwrap_or(0);
        if self.is_base64 { decoded() } else { self.written.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_keys_are_decoded() {
        let key = Key::new(b"AAEC/w==", true).expect("it is valid");
        assert_eq!(key.bytes(&mut [0; KEY_BYTES_MAX]), [0, 1, 2, 0xff]);
        assert_eq!(key.length(), 4);
        assert!(Key::new(b"AAEC/w=", true).is_none());
        let key = Key::new(b"AAEC/w=", false).expect("any word is a literal key");
        assert_eq!((key.bytes(&mut [0; KEY_BYTES_MAX]), key.length()), (&b"AAEC/w="[..], 7));
    }
}
