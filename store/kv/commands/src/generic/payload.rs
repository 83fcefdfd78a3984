// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payloads of DUMP: a value in bytes, which RESTORE reads again, also on another server.
//!
//! ```text
//! byte 0       number of the type
//! ...          the value, as its type serializes it
//! byte -9      version of this form
//! bytes -8..   CRC-64 (XZ) of all bytes before, least significant byte first
//! ```
//!
//! The form is our own. A payload of a Redis server has another checksum and is refused, as a
//! server of another version would refuse it.

use freeport_kv_keyspace::{Detached, Kind, ValueRef};
use freeport_kv_types::Limits;

use crate::error::Error;

const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;

/// A value as a payload.
pub(super) fn payload_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut payload = vec![value.kind() as u8];
    value.serialize(&mut payload);
    payload.push(VERSION);
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// Bytes of a value in a payload, without what belongs to the payload.
pub(super) fn serialized_bytes(value: ValueRef<'_>) -> usize {
    let mut bytes = vec![];
    value.serialize(&mut bytes);
    bytes.len()
}

/// A payload whose checksum is right.
pub(super) struct Payload<'a>(&'a [u8]);

impl<'a> Payload<'a> {
    /// Checks version and checksum.
    ///
    /// # Errors
    /// They are not right.
    pub(super) fn check(bytes: &'a [u8]) -> Result<Self, Error> {
        const WRONG: Error = Error::fixed("ERR DUMP payload version or checksum are wrong");
        match bytes.split_last_chunk::<CHECKSUM_BYTES>() {
            Some((checked @ [body @ .., VERSION], checksum))
                if crc64(checked) == u64::from_le_bytes(*checksum) =>
            {
                Ok(Self(body))
            }
            _ => Err(WRONG),
        }
    }

    /// Reads the value. Its checksum proves nothing against a peer that means harm, so nothing in
    /// it is trusted.
    ///
    /// # Errors
    /// It is no value.
    pub(super) fn value(&self, limits: &Limits) -> Result<Detached, Error> {
        const BAD: Error = Error::fixed("ERR Bad data format");
        let (&number, bytes) = self.0.split_first().ok_or(BAD)?;
        let kind = *Kind::ALL.get(usize::from(number)).ok_or(BAD)?;
        Detached::deserialize(kind, bytes, limits).map_err(|_| BAD)
    }
}

/// CRC-64 with the polynomial of ECMA-182, lowest bits first, as in the file format XZ.
fn crc64(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(u64::MAX, |crc, byte| crc >> 8 ^ CRC64[usize::from(crc as u8 ^ byte)])
}

/// Remainders of each byte.
const CRC64: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xC96C_5795_D787_0F42 };
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
    fn the_checksum_is_that_of_xz() {
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
    }

    #[test]
    fn every_changed_bit_is_found() {
        let payload = payload_of(ValueRef::String(b"value"));
        assert!(Payload::check(&payload).is_ok());
        for bit in 0..8 * payload.len() {
            let mut wrong = payload.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Payload::check(&wrong).is_err(), "bit {bit}");
        }
        for length in 0..payload.len() {
            assert!(Payload::check(&payload[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn values_of_no_type_are_refused() {
        let refused = |body: &[u8]| Payload(body).value(&Limits::default()).is_err();
        assert!(refused(b"") && refused(&[6]) && refused(&[1, 0]) && refused(&[4, 9, 9]));
        assert!(!refused(&[0]));
    }
}
