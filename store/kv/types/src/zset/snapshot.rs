// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets in snapshots.
//!
//! A packed set is the byte 0 and its own bytes. A large one is the byte 1, the number of elements,
//! and the elements in order: the score (8 bytes, lowest first), the length of the member, and the
//! member. Numbers are [`varint`]s.

use super::{Large, ZSet, ZSetRef, small};
use crate::corrupt::Corrupt;
use crate::limits::Limits;
use crate::packed::Packed;
use crate::varint;

/// First byte of a packed set.
const PACKED: u8 = 0;
/// First byte of a large set.
const LARGE: u8 = 1;

impl ZSetRef<'_> {
    /// Appends the set to `out`, for [`ZSet::deserialize`].
    pub fn serialize(self, out: &mut Vec<u8>) {
        match self {
            Self::Packed(packed) => {
                out.push(PACKED);
                packed.write(out);
            }
            Self::Large(large) => {
                out.push(LARGE);
                varint::write(large.len() as u64, out);
                for (member, score) in large.range(0..large.len()) {
                    out.extend_from_slice(&score.to_le_bytes());
                    varint::write(member.len() as u64, out);
                    out.extend_from_slice(member);
                }
            }
        }
    }
}

impl ZSet {
    /// Reads what [`ZSetRef::serialize`] wrote, in O(n). A packed set above the limits becomes
    /// large.
    ///
    /// # Errors
    /// [`Corrupt`] if a length leads beyond the end, a score is not a number, elements are not in
    /// order, or a member is repeated.
    pub fn deserialize(bytes: &[u8], limits: &Limits) -> Result<Self, Corrupt> {
        match bytes.split_first() {
            Some((&PACKED, rest)) => {
                small::validate(rest).map_err(|corrupt| corrupt.behind(1))?;
                Ok(if small::is_within(limits, Packed::new(rest)) {
                    Self::Packed(rest.to_vec())
                } else {
                    Self::Large(Box::new(small::enlarge(limits, Packed::new(rest))))
                })
            }
            Some((&LARGE, _)) => Ok(Self::Large(Box::new(read_large(bytes, limits)?))),
            _ => Err(Corrupt::at(0, "unknown form of a sorted set")),
        }
    }
}

/// Reads a large set, whose first byte is its form.
fn read_large(bytes: &[u8], limits: &Limits) -> Result<Large, Corrupt> {
    let (len, size) = varint::read(&bytes[1..]).ok_or(Corrupt::at(1, "no number of elements"))?;
    let start = 1 + size;
    let mut at = start;
    for _ in 0..len {
        let (_, score, end) = element(bytes, at).ok_or(Corrupt::at(at, "no whole element"))?;
        if score.is_nan() {
            return Err(Corrupt::at(at, "a score is not a number"));
        }
        at = end;
    }
    if at < bytes.len() {
        return Err(Corrupt::at(at, "bytes behind the last element"));
    }
    let elements = || {
        let mut at = start;
        std::iter::from_fn(move || {
            let element = element(bytes, at)?;
            at = element.2;
            Some(element)
        })
    };
    let sorted = elements().map(|(member, score, _)| (member, score));
    Large::from_sorted(limits.hash_seed, sorted).map_err(|number| {
        let before = number.checked_sub(1).and_then(|last| elements().nth(last));
        let at = before.map_or(start, |(_, _, end)| end);
        Corrupt::at(at, "an element is not after the one before, or is repeated")
    })
}

/// The element at `at`: member, score and end.
fn element(bytes: &[u8], at: usize) -> Option<(&[u8], f64, usize)> {
    let (score, rest) = bytes.get(at..)?.split_first_chunk::<8>()?;
    let (length, size) = varint::read(rest)?;
    let member = rest[size..].get(..usize::try_from(length).ok()?)?;
    Some((member, f64::from_le_bytes(*score), at + 8 + size + member.len()))
}
