// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hash slots, which divide keys among workers. Clients that have a connection to each worker
//! compute them as the server does.

/// Number of hash slots, as in Redis Cluster.
pub const SLOTS: u16 = 16_384;

/// Number of the worker, of `workers`, that has a key: each has consecutive slots.
#[inline]
pub fn worker_of(key: &[u8], workers: usize) -> usize {
    match workers {
        0 | 1 => 0,
        workers => usize::from(slot_of(key)) * workers / usize::from(SLOTS),
    }
}

/// Hash slot of a key: CRC-16 (XMODEM) of the key, or of its part between the first `{` and the
/// next `}` if that is not empty, so that clients can keep keys together.
pub fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    let crc = tag
        .unwrap_or(key)
        .iter()
        .fold(0_u16, |crc, byte| crc << 8 ^ CRC16[usize::from(crc >> 8 ^ u16::from(*byte))]);
    crc % SLOTS
}

/// Remainders of each first byte by the polynomial 0x1021.
const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
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
    fn every_worker_has_keys() {
        let workers: Vec<usize> =
            (0..1_000).map(|number| worker_of(format!("{number}").as_bytes(), 3)).collect();
        for worker in 0..3 {
            let share = workers.iter().filter(|one| **one == worker).count();
            assert!((250..420).contains(&share), "{share}");
        }
        assert_eq!([worker_of(b"foo", 0), worker_of(b"foo", 1)], [0, 0]);
        assert_eq!(worker_of(b"foo", 16_384), 12_182);
    }
}
