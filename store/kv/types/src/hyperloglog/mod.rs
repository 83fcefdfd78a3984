// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HyperLogLog: the approximate number of distinct elements, in 12 KiB or less.
//!
//! The value is the byte string that Redis stores, so that values can be exchanged with it: 16
//! bytes of header, then 16384 registers. The header is `HYLL`, one byte for the encoding, three
//! zeros, and the last count in eight bytes, little-endian; its highest bit says that registers
//! changed since. Dense registers have six bits each. Sparse ones are run lengths (`sparse.rs`).
//!
//! An element goes into the register that 14 bits of its hash choose, which keeps the largest
//! number of zeros that the other bits began with (Flajolet and others, "HyperLogLog: the analysis
//! of a near-optimal cardinality estimation algorithm", 2007).

mod dense;
mod estimate;
mod inspect;
mod sparse;

use crate::limits::Limits;
pub use inspect::{describe_runs, is_dense, registers};
use sparse::Change;
use thiserror::Error;

/// Number of bits of a hash that choose a register.
const INDEX_BITS: u32 = 14;
/// Number of registers.
const REGISTERS: usize = 1 << INDEX_BITS;
/// Number of the other bits of a hash; the largest value of a register is one more.
const VALUE_BITS: u32 = 64 - INDEX_BITS;

const HEADER_BYTES: usize = 16;
const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const COUNT_AT: usize = 8;
/// Bit of the last byte of the count that says that it is outdated.
const OUTDATED: u8 = 0x80;

/// Values of all registers.
pub type Registers = [u8; REGISTERS];

/// Strings that cannot be counted. The texts are those of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidString {
    /// The string has no header, or the wrong size.
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    WrongType,
    /// The sparse registers are not 16384.
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    Corrupt,
}

/// Returns a string without elements.
pub fn new() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[ENCODING_AT] = SPARSE;
    sparse::append_zeros(&mut bytes, REGISTERS);
    bytes
}

/// Adds an element (PFADD). Returns whether a register changed.
///
/// # Errors
/// [`InvalidString`]; registers may have changed.
pub fn add(limits: &Limits, bytes: &mut Vec<u8>, element: &[u8]) -> Result<bool, InvalidString> {
    check(bytes)?;
    let (index, value) = estimate::place(element);
    let is_changed = raise(limits, bytes, index, value)?;
    if is_changed {
        mark_outdated(bytes)?;
    }
    Ok(is_changed)
}

/// As [`add`], for a string with dense registers, which keeps its length.
///
/// # Errors
/// [`InvalidString`], also if the registers are sparse.
pub fn add_dense(bytes: &mut [u8], element: &[u8]) -> Result<bool, InvalidString> {
    if !is_dense(bytes)? {
        return Err(InvalidString::WrongType);
    }
    let (index, value) = estimate::place(element);
    let is_changed = dense::raise(&mut bytes[HEADER_BYTES..], index, value);
    if is_changed {
        mark_outdated(bytes)?;
    }
    Ok(is_changed)
}

/// Says that the stored count is not that of the registers any more.
///
/// # Errors
/// [`InvalidString::WrongType`].
pub fn mark_outdated(bytes: &mut [u8]) -> Result<(), InvalidString> {
    check(bytes)?;
    bytes[COUNT_AT + 7] |= OUTDATED;
    Ok(())
}

/// Returns the approximate number of distinct elements (PFCOUNT with one key): the stored one, or a
/// new one, which the caller may store with [`store_count`].
///
/// # Errors
/// [`InvalidString`].
pub fn count(bytes: &[u8]) -> Result<u64, InvalidString> {
    check(bytes)?;
    if let Some(count) = stored_count(bytes) {
        return Ok(count);
    }
    count_union(&[bytes])
}

/// Returns the count in the header, unless registers changed since.
pub fn stored_count(bytes: &[u8]) -> Option<u64> {
    let count = bytes.get(COUNT_AT..HEADER_BYTES)?.try_into().ok()?;
    (bytes[COUNT_AT + 7] & OUTDATED == 0).then(|| u64::from_le_bytes(count))
}

/// Stores a count in the header.
///
/// # Errors
/// [`InvalidString::WrongType`].
pub fn store_count(bytes: &mut [u8], count: u64) -> Result<(), InvalidString> {
    check(bytes)?;
    bytes[COUNT_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// Returns the approximate number of elements that are in one of the strings (PFCOUNT with several
/// keys).
///
/// # Errors
/// [`InvalidString`].
pub fn count_union(strings: &[&[u8]]) -> Result<u64, InvalidString> {
    let mut registers = [0; REGISTERS];
    for bytes in strings {
        merge_into(&mut registers, bytes)?;
    }
    Ok(estimate::count(&registers))
}

/// Adds the elements of all `sources` (PFMERGE). The string becomes dense if one of them is.
///
/// # Errors
/// [`InvalidString`]; the string is unchanged.
pub fn merge(limits: &Limits, bytes: &mut Vec<u8>, sources: &[&[u8]]) -> Result<(), InvalidString> {
    let mut registers = [0; REGISTERS];
    merge_into(&mut registers, bytes)?;
    for source in sources {
        merge_into(&mut registers, source)?;
    }
    if sources.iter().any(|source| source[ENCODING_AT] == DENSE) {
        make_dense(bytes)?;
    }
    for (index, &value) in registers.iter().enumerate().filter(|&(_, &value)| value != 0) {
        raise(limits, bytes, index, value)?;
    }
    mark_outdated(bytes)
}

/// Checks the header.
fn check(bytes: &[u8]) -> Result<(), InvalidString> {
    let is_valid = bytes.len() >= HEADER_BYTES
        && bytes.starts_with(MAGIC)
        && match bytes[ENCODING_AT] {
            DENSE => bytes.len() == HEADER_BYTES + dense::BYTES,
            SPARSE => true,
            _ => false,
        };
    is_valid.then_some(()).ok_or(InvalidString::WrongType)
}

/// Raises a register to `value`. Returns whether it was less.
fn raise(
    limits: &Limits,
    bytes: &mut Vec<u8>,
    index: usize,
    value: u8,
) -> Result<bool, InvalidString> {
    if bytes[ENCODING_AT] == SPARSE {
        match sparse::raise(bytes, HEADER_BYTES, limits.sparse_bytes, index, value)? {
            Change::None => return Ok(false),
            Change::Raised => return Ok(true),
            Change::NoRoom => make_dense(bytes)?,
        }
    }
    Ok(dense::raise(&mut bytes[HEADER_BYTES..], index, value))
}

/// Stores the registers one by one.
///
/// # Errors
/// [`InvalidString`]; the string is unchanged.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<(), InvalidString> {
    if bytes[ENCODING_AT] == DENSE {
        return Ok(());
    }
    let mut registers = [0; REGISTERS];
    merge_into(&mut registers, bytes)?;
    bytes.truncate(HEADER_BYTES);
    bytes[ENCODING_AT] = DENSE;
    bytes.resize(HEADER_BYTES + dense::BYTES, 0);
    for (index, &value) in registers.iter().enumerate() {
        dense::raise(&mut bytes[HEADER_BYTES..], index, value);
    }
    Ok(())
}

/// Raises each register to that of the string, if it is less.
fn merge_into(registers: &mut Registers, bytes: &[u8]) -> Result<(), InvalidString> {
    check(bytes)?;
    let body = &bytes[HEADER_BYTES..];
    if bytes[ENCODING_AT] == SPARSE {
        return sparse::merge_into(registers, body);
    }
    dense::merge_into(registers, body);
    Ok(())
}
