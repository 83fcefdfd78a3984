// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time of one-sided requests as a sum of parameters with weights. Estimates add it up, and a
//! fit solves for the parameters.

use super::{Cache, KIB};

/// A parameter of a section, and how often a request needs it.
pub type Weight = (&'static str, f64);

/// Requests that a core works on at the same time by itself: a batch is felt only where it is
/// longer.
const AT_ONCE: f64 = 8.0;
/// Bytes of a cache line: those that arrive with the address.
const LINE_BYTES: f64 = 64.0;
/// Bytes of a page. A core fetches ahead only within one.
const PAGE_BYTES: f64 = 4096.0;
/// Bytes of a message after which the cores fetch the rest ahead.
const MESSAGE_FIRST_BYTES: f64 = 1024.0;
/// Nanoseconds of a picosecond.
const PS: f64 = 1e-3;

/// Shares of random addresses by what holds them; they add up to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shares {
    /// The nearest cache.
    pub near: f64,
    /// The core's largest cache.
    pub middle: f64,
    /// The last-level cache.
    pub last: f64,
    /// Only memory.
    pub memory: f64,
}

/// Returns what holds random addresses of a range in bytes.
pub fn shares(cache: &Cache, range: u64) -> Shares {
    let missing = |size: f64| (1.0 - size * KIB / range as f64).max(0.0);
    let (near, middle, last) = (missing(cache.near), missing(cache.middle), missing(cache.last));
    Shares { near: 1.0 - near, middle: near - middle, last: middle - last, memory: last }
}

/// Returns how much of the additional time of single requests is felt in batches of this length:
/// from 1 down to 0.
pub fn batch_share(batch: u32) -> f64 {
    AT_ONCE / (AT_ONCE + f64::from(batch) - 1.0)
}

/// Returns the weights of an atomic operation.
pub fn word_weights(cache: &Cache, batch: u32, range: u64) -> [Weight; 6] {
    let (shares, alone) = (shares(cache, range), batch_share(batch));
    [
        ("post", 1.0),
        ("alone", alone),
        ("last", shares.last),
        ("last_alone", shares.last * alone),
        ("memory", shares.memory),
        ("memory_alone", shares.memory * alone),
    ]
}

/// Returns the weights of a copy. `ahead` is the parameter of that name.
pub fn copy_weights(cache: &Cache, ahead: f64, bytes: u64, batch: u32, range: u64) -> [Weight; 13] {
    let Shares { near, middle, last, memory } = shares(cache, range);
    let [post, alone, last_post, last_alone, memory_post, memory_alone] =
        word_weights(cache, batch, range);
    let (length, far) = (PS * bytes as f64, PS * far_bytes(bytes as f64, ahead));
    // The own buffer is used again after as many bytes of the other side.
    let between = 2.0 * bytes as f64 / KIB;
    let is_in = |from: f64, to: f64| between > from && between < to;
    let own = if is_in(cache.near, cache.middle) { length } else { 0.0 };
    let own_last = if between >= cache.middle { length } else { 0.0 };
    [
        post,
        alone,
        last_post,
        last_alone,
        memory_post,
        memory_alone,
        ("near_byte", length * near),
        ("middle_byte", length * middle),
        ("last_byte", far * last),
        ("memory_byte", far * memory),
        ("own_middle_byte", own * (near + middle)),
        ("own_far_byte", own * (last + memory)),
        ("own_last_byte", own_last),
    ]
}

/// Returns the weights of a message of a batch and its answer: the first one of a batch takes a
/// round trip.
pub fn message_weights(bytes: u64, batch: u32) -> [Weight; 5] {
    let (bytes, first) = (bytes as f64, 1.0 / f64::from(batch));
    let further = 1.0 - first;
    [
        ("trip", first),
        ("trip_byte", first * bytes * PS),
        ("next", further),
        ("next_first_byte", further * bytes.min(MESSAGE_FIRST_BYTES) * PS),
        ("next_byte", further * bytes * PS),
    ]
}

/// Returns for how many bytes a copy of `bytes` has to wait that are in no cache of the core: in
/// each page, the first line comes with the address, and the last lines have been fetched ahead.
fn far_bytes(bytes: f64, ahead: f64) -> f64 {
    let rest = bytes % PAGE_BYTES;
    let share = ((rest - LINE_BYTES) / (ahead - LINE_BYTES)).clamp(0.0, 1.0);
    bytes - rest + share * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE: Cache = Cache { near: 32.0, middle: 1024.0, last: 32_768.0 };

    #[test]
    fn ranges_are_held_by_caches() {
        let of = |range| shares(&CACHE, range);
        assert_eq!(of(32 << 10), Shares { near: 1.0, middle: 0.0, last: 0.0, memory: 0.0 });
        assert_eq!(of(2 << 20).last, 0.5);
        let far = of(64 << 20);
        assert_eq!((far.memory, far.last), (0.5, 0.5 - 1.0 / 64.0));
        assert_eq!(far.near + far.middle + far.last + far.memory, 1.0);
    }

    #[test]
    fn pages_are_fetched_ahead() {
        assert_eq!(far_bytes(64.0, 2112.0), 0.0);
        assert_eq!(far_bytes(64.0 + 1024.0, 2112.0), 2048.0);
        assert_eq!(far_bytes(3000.0, 2112.0), 4096.0);
        assert_eq!(far_bytes(4096.0 * 3.0, 2112.0), 4096.0 * 3.0);
    }
}
