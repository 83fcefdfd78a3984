// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit
//! words; an odd last byte is padded with 0.

/// A running sum; pieces may be added in any order if each but the last has an even length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(2);
        for word in &mut words {
            self.0 += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            self.0 += u64::from(*last) << 8;
        }
        self
    }

    /// Adds the pseudo header of UDP or TCP over IPv4 (RFC 768, RFC 793).
    pub fn pseudo_header(self, source: u32, target: u32, protocol: u8, length: usize) -> Self {
        let length = length as u64;
        let addresses = self.bytes(&source.to_be_bytes()).bytes(&target.to_be_bytes());
        Self(addresses.0 + u64::from(protocol) + (length >> 16) + (length & 0xffff))
    }

    /// Returns the checksum of the bytes added. Bytes that include their own valid checksum give 0.
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

/// Returns the checksum of some bytes.
pub fn of(bytes: &[u8]) -> u16 {
    Sum::default().bytes(bytes).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(of(&bytes), !0xddf2);
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_half() {
        assert_eq!(of(&[0x12, 0x34, 0x56]), of(&[0x12, 0x34, 0x56, 0x00]));
    }

    #[test]
    fn bytes_with_their_own_checksum_give_zero() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let mut bytes: Vec<u8> = (0..random.usize(2..100)).map(|_| random.u8(..)).collect();
            bytes[..2].fill(0);
            let sum = of(&bytes);
            bytes[..2].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(of(&bytes), 0);
            let at = random.usize(..bytes.len());
            let old = bytes[at];
            bytes[at] ^= 1 << random.u32(0..8);
            assert_ne!(of(&bytes), 0, "byte {at} was {old}");
        }
    }
}
