// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compression of bodies of chunks.

/// Compression of chunks by the processor. A chunk that does not become smaller is sent raw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Compression {
    /// None: all chunks are sent raw.
    None,
    /// LZ4.
    Lz4,
    /// A share of the chunk, if the rest of it repeats itself every 4 KiB: data for tests of a
    /// ratio can be made so that this is their size.
    Repeats(f64),
}

/// Marks of stored bodies.
pub(crate) const RAW: u32 = 0;
const LZ4: u32 = 1;
const REPEATS: u32 = 2;

/// Distance of repetitions in bytes.
pub(crate) const PERIOD: usize = 4096;

/// Returns the mark and the stored body, if it is smaller.
pub(crate) fn compress(compression: Compression, body: &[u8]) -> Option<(u32, Vec<u8>)> {
    let (codec, stored) = match compression {
        Compression::None => return None,
        Compression::Lz4 => (LZ4, lz4_flex::block::compress(body)),
        Compression::Repeats(share) => {
            let kept = (body.len() as f64 * share).ceil() as usize;
            let from = kept.checked_sub(PERIOD)?;
            let repeats = body.get(kept..)? == &body[from..body.len() - PERIOD];
            (REPEATS, repeats.then(|| body[..kept].to_vec())?)
        }
    };
    (stored.len() < body.len()).then_some((codec, stored))
}

/// Returns the raw body of a stored one, or none if it is damaged.
pub(crate) fn decompress(codec: u32, stored: &[u8], raw: usize) -> Option<Vec<u8>> {
    match codec {
        LZ4 => lz4_flex::block::decompress(stored, raw).ok().filter(|body| body.len() == raw),
        REPEATS if stored.len() >= PERIOD && stored.len() <= raw => {
            let mut body = stored.to_vec();
            while body.len() < raw {
                let from = body.len() - PERIOD;
                body.extend_from_within(from..from + PERIOD.min(raw - body.len()));
            }
            Some(body)
        }
        _ => None,
    }
}
