// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sparse registers: runs of equal ones.
//!
//! | run | bytes |
//! |---|---|
//! | 1 to 64 zeros | `00llllll`, the length less 1 |
//! | 1 to 16384 zeros | `01llllll llllllll`, the length less 1, high bits first |
//! | 1 to 4 times the value 1 to 32 | `1vvvvvll`, the value less 1 and the length less 1 |

use super::{InvalidString, REGISTERS, Registers};

/// Longest run of zeros in one byte.
const SHORT_ZEROS: usize = 64;
/// Longest run of a value.
const LONGEST_VALUES: usize = 4;
/// Largest value of a run.
const LARGEST_VALUE: u8 = 32;
/// Runs that are looked at for merging after a change.
const MERGED_RUNS: usize = 5;

/// Outcome of raising a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The register had the value, or a larger one.
    None,
    /// The register was raised.
    Raised,
    /// The registers have to become dense first.
    NoRoom,
}

/// Equal registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Value of the registers.
    pub value: u8,
    /// Number of the registers.
    pub len: usize,
    /// Bytes that encode it.
    pub bytes: usize,
}

impl Run {
    /// Reads the run at the start of `body`.
    fn read(body: &[u8]) -> Option<Self> {
        match *body {
            [first @ 0..0x40, ..] => Some(Self { value: 0, len: usize::from(first) + 1, bytes: 1 }),
            [first @ 0x40..0x80, second, ..] => {
                let len = usize::from(first & 0x3f) << 8 | usize::from(second);
                Some(Self { value: 0, len: len + 1, bytes: 2 })
            }
            [first @ 0x80..=0xff, ..] => {
                let (value, len) = ((first >> 2 & 0x1f) + 1, usize::from(first & 3) + 1);
                Some(Self { value, len, bytes: 1 })
            }
            _ => None,
        }
    }
}

/// The runs in `body`; the last one is `None` if it is cut off.
pub(super) fn runs_of(body: &[u8]) -> impl Iterator<Item = Option<Run>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let run = Run::read(rest);
        rest = run.map_or(&[], |run| &rest[run.bytes..]);
        Some(run)
    })
}

/// Appends a run of at most 16384 zeros.
pub(super) fn append_zeros(out: &mut Vec<u8>, len: usize) {
    let less = len - 1;
    if len <= SHORT_ZEROS {
        out.push(less as u8);
    } else {
        out.extend_from_slice(&[0x40 | (less >> 8) as u8, less as u8]);
    }
}

/// Appends a run of registers, unless it is empty. A run of a value is not longer than 4.
fn append(out: &mut Vec<u8>, value: u8, len: usize) {
    match (value, len) {
        (_, 0) => {}
        (0, _) => append_zeros(out, len),
        _ => out.push(values(value, len)),
    }
}

fn values(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len - 1) as u8
}

/// Raises a register to `value`, in the runs from `start` of `bytes`, which may take `most_bytes`
/// with all that is before.
///
/// # Errors
/// [`InvalidString::Corrupt`] if no run has the register.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    start: usize,
    most_bytes: usize,
    index: usize,
    value: u8,
) -> Result<Change, InvalidString> {
    if value > LARGEST_VALUE {
        return Ok(Change::NoRoom);
    }
    let (mut at, mut before, mut first) = (start, start, 0);
    let run = loop {
        let run = Run::read(&bytes[at..]).ok_or(InvalidString::Corrupt)?;
        if index < first + run.len {
            break run;
        }
        first += run.len;
        before = at;
        at += run.bytes;
    };
    if run.value >= value {
        return Ok(Change::None);
    }
    let mut pieces = Vec::with_capacity(5);
    append(&mut pieces, run.value, index - first);
    pieces.push(values(value, 1));
    append(&mut pieces, run.value, first + run.len - 1 - index);
    if pieces.len() > run.bytes && bytes.len() + pieces.len() - run.bytes > most_bytes {
        return Ok(Change::NoRoom);
    }
    bytes.splice(at..at + run.bytes, pieces);
    merge_runs(bytes, before);
    Ok(Change::Raised)
}

/// Joins runs of the same value from `at`.
fn merge_runs(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGED_RUNS {
        let Some(run) = Run::read(&bytes[at..]) else { return };
        match Run::read(&bytes[at + run.bytes..]) {
            Some(next)
                if run.value != 0
                    && next.value == run.value
                    && run.len + next.len <= LONGEST_VALUES =>
            {
                bytes[at + 1] = values(run.value, run.len + next.len);
                bytes.remove(at);
            }
            _ => at += run.bytes,
        }
    }
}

/// Raises each register to that in `body`, if it is less.
///
/// # Errors
/// [`InvalidString::Corrupt`] if the runs are not of all registers exactly.
pub(super) fn merge_into(registers: &mut Registers, body: &[u8]) -> Result<(), InvalidString> {
    let mut index = 0;
    for run in runs_of(body) {
        let run = run.ok_or(InvalidString::Corrupt)?;
        let range = registers.get_mut(index..index + run.len).ok_or(InvalidString::Corrupt)?;
        if run.value != 0 {
            range.iter_mut().for_each(|register| *register = (*register).max(run.value));
        }
        index += run.len;
    }
    if index == REGISTERS { Ok(()) } else { Err(InvalidString::Corrupt) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(parts: &[(u8, usize)]) -> Vec<u8> {
        let mut bytes = vec![];
        parts.iter().for_each(|&(value, len)| append(&mut bytes, value, len));
        bytes
    }

    #[test]
    fn a_run_is_split_and_equal_ones_are_joined() {
        let mut bytes = runs(&[(0, REGISTERS)]);
        let mut raise = |index, value| raise(&mut bytes, 0, 100, index, value);
        assert_eq!(raise(1000, 3), Ok(Change::Raised));
        assert_eq!(raise(1001, 3), Ok(Change::Raised));
        assert_eq!(raise(1001, 2), Ok(Change::None));
        assert_eq!(raise(999, 3), Ok(Change::Raised));
        assert_eq!(raise(0, 33), Ok(Change::NoRoom));
        assert_eq!(bytes, runs(&[(0, 999), (3, 3), (0, REGISTERS - 1002)]));
        assert_eq!(super::raise(&mut bytes, 0, 6, 1, 1), Ok(Change::NoRoom));
        assert_eq!(super::raise(&mut bytes, 0, 100, 1000, 7), Ok(Change::Raised));
        let expected = [(0, 999), (3, 1), (7, 1), (3, 1), (0, REGISTERS - 1002)];
        assert_eq!(bytes, runs(&expected));
    }

    #[test]
    fn wrong_numbers_of_registers_are_found() {
        let check = |body: &[u8]| merge_into(&mut [0; REGISTERS], body);
        assert_eq!(check(&runs(&[(0, REGISTERS)])), Ok(()));
        assert_eq!(check(&runs(&[(0, REGISTERS), (1, 1)])), Err(InvalidString::Corrupt));
        assert_eq!(check(&runs(&[(0, REGISTERS - 1)])), Err(InvalidString::Corrupt));
        assert_eq!(check(&[0x7f]), Err(InvalidString::Corrupt));
        assert_eq!(super::raise(&mut vec![5], 0, 100, 7, 1), Err(InvalidString::Corrupt));
    }
}
