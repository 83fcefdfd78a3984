// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hash slots, which divide keys among workers. Clients that have a connection to each worker
//! compute them as the server does.

/// Number of hash slots, as in Redis Cluster.
pub const SLOTS: u16 = 16_384;
/// 2^16 divided by the golden ratio.
const FIBONACCI: u16 = 40_503;

/// Number of the worker, of `workers`, that has a key.
#[inline]
pub fn worker_of(key: &[u8], workers: usize) -> usize {
    match workers {
        0 | 1 => 0,
        workers => worker_of_slot(slot_of(key), workers),
    }
}

/// Number of the worker, of `workers`, that has the keys of a slot: multiplicative hashing (Knuth,
/// "The Art of Computer Programming", 6.4), so that the consecutive slots that a node of a cluster
/// has are spread over its workers. The remainder of a division would keep all keys of one letter
/// together with three workers, as CRC-16 has that pattern.
#[inline]
pub fn worker_of_slot(slot: u16, workers: usize) -> usize {
    (usize::from(slot.wrapping_mul(FIBONACCI)) * workers) >> 16
}

/// Hash slot of a key: CRC-16 (XMODEM) of the key, or of its part between the first `{` and the
/// next `}` if that is not empty, so that clients can keep keys together.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(if has_brace(key) { hashed_part(key) } else { key }) % SLOTS
}

/// The key has a `{`. Eight bytes are compared at once.
#[inline]
fn has_brace(key: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    let (chunks, rest) = key.as_chunks();
    // Braces become zeros. Taking one from each byte sets a bit 7 that was not set, of the lowest
    // zero and of no byte below it (Anderson, "Bit Twiddling Hacks", a word with a zero byte).
    let is_in = |chunk: &[u8; 8]| {
        let zeros = u64::from_ne_bytes(*chunk) ^ (ONES * u64::from(b'{'));
        zeros.wrapping_sub(ONES) & !zeros & ONES << 7 != 0
    };
    chunks.iter().any(is_in) || rest.contains(&b'{')
}

#[cold]
fn hashed_part(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    tag.unwrap_or(key)
}

/// CRC-16 by the polynomial 0x1021. The remainders of eight bytes do not depend on each other
/// (Kounavis and Berry 2005, "slicing by 8").
#[inline]
fn crc16(bytes: &[u8]) -> u16 {
    let of = |zeros: usize, byte: u8| REMAINDERS[zeros][usize::from(byte)];
    let (chunks, rest) = bytes.as_chunks();
    let crc = chunks.iter().fold(0_u16, |crc, &[b0, b1, b2, b3, b4, b5, b6, b7]| {
        let [high, low] = crc.to_be_bytes();
        let first = of(7, b0 ^ high) ^ of(6, b1 ^ low) ^ of(5, b2) ^ of(4, b3);
        first ^ of(3, b4) ^ of(2, b5) ^ of(1, b6) ^ of(0, b7)
    });
    rest.iter().fold(crc, |crc, byte| {
        let [high, low] = crc.to_be_bytes();
        u16::from(low) << 8 ^ of(0, high ^ byte)
    })
}

/// Remainders of each byte, by the number of zero bytes behind it.
static REMAINDERS: [[u16; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 * tables.len() {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
            if bit % 8 == 0 {
                tables[bit / 8 - 1][byte] = crc;
            }
        }
        byte += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        // The check value of CRC-16/XMODEM is 0x31C3; the others by CLUSTER KEYSLOT.
        assert_eq!(slot_of(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b""), 0);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{foo}bar"), slot_of(b"foo"));
        assert_eq!(slot_of(b"foo{}{bar}"), 8_363);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
    }

    #[test]
    fn eight_bytes_at_once_are_eight_bytes() {
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..5_000 {
            // Few different bytes, so that braces are frequent.
            let key: Vec<u8> = (0..round % 40).map(|_| rng.u8(b'x'..=b'~')).collect();
            let bit = |crc: u16, bit: bool| {
                if bit == (crc & 0x8000 != 0) { crc << 1 } else { crc << 1 ^ 0x1021 }
            };
            let bits = |bytes: &[u8]| -> Vec<bool> {
                let bits = |byte: u8| (0..8).rev().map(move |bit| byte >> bit & 1 == 1);
                bytes.iter().flat_map(|byte| bits(*byte)).collect()
            };
            let crc = |bytes: &[u8]| bits(bytes).into_iter().fold(0, bit);
            assert_eq!(has_brace(&key), key.contains(&b'{'), "{key:?}");
            assert_eq!(slot_of(&key), crc(hashed_part(&key)) % SLOTS, "{key:?}");
        }
    }

    #[test]
    fn every_worker_has_keys() {
        let workers: Vec<usize> =
            (0..1_000).map(|number| worker_of(format!("{number}").as_bytes(), 3)).collect();
        for worker in 0..3 {
            let share = workers.iter().filter(|one| **one == worker).count();
            assert!((250..420).contains(&share), "{share}");
        }
        assert_eq!([worker_of(b"foo", 0), worker_of(b"foo", 1)], [0, 0]);
        assert_eq!([b"a", b"b", b"c"].map(|key| worker_of(key, 3)), [0, 1, 2]);
        assert_eq!(worker_of_slot(16_383, 64), 8);
        for workers in 2..=64 {
            // A third of the slots, as a node has them.
            let slots = 5_461..10_922;
            let mut shares = vec![0_usize; workers];
            slots.clone().for_each(|slot| shares[worker_of_slot(slot, workers)] += 1);
            let even = slots.len() / workers;
            assert!(shares.iter().all(|share| share.abs_diff(even) < 10), "{shares:?}");
        }
    }
}
