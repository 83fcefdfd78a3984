// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compression of bodies of chunks.

/// Compression of chunks by the processor. A chunk that does not become smaller is sent raw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// None: all chunks are sent raw.
    None,
    /// LZ4.
    Lz4,
}

/// Marks of stored bodies.
pub(crate) const RAW: u32 = 0;
const LZ4: u32 = 1;

/// Returns the mark and the stored body, if it is smaller.
pub(crate) fn compress(compression: Compression, body: &[u8]) -> Option<(u32, Vec<u8>)> {
    let stored = match compression {
        Compression::None => return None,
        Compression::Lz4 => lz4_flex::block::compress(body),
    };
    (stored.len() < body.len()).then_some((LZ4, stored))
}

/// Returns the raw body of a stored one, or none if it is damaged.
pub(crate) fn decompress(codec: u32, stored: &[u8], raw: usize) -> Option<Vec<u8>> {
    match codec {
        LZ4 => lz4_flex::block::decompress(stored, raw).ok().filter(|body| body.len() == raw),
        _ => None,
    }
}
