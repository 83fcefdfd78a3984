// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes of texts, by which scripts are known.

use sha1::{Digest, Sha1};

/// The SHA-1 of a text, in hexadecimal.
pub(crate) fn hash(text: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    Sha1::digest(text).iter().flat_map(|&byte| digits(byte)).map(char::from).collect()
}
