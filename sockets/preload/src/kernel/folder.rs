// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Folders whose entries are numbers, as in `/proc`.

use super::raw::{self, Result, argument, checked_call};
use core::ffi::CStr;

/// Bytes of a folder that are read at once.
const BYTES: usize = 1024;

/// Room for entries of a folder.
#[repr(C, align(8))]
struct Entries([u8; BYTES]);

/// Visits each number that is a name in a folder, with the folder's descriptor, while `visit`
/// returns true; returns whether it did for all.
///
/// # Errors
/// The folder cannot be read.
pub fn each_number_in(path: &CStr, mut visit: impl FnMut(i32, i32) -> bool) -> Result<bool> {
    let folder = raw::open(path)?;
    let mut entries = Entries([0; BYTES]);
    let all = loop {
        match read(folder, &mut entries.0) {
            Ok(0) => break Ok(true),
            Ok(bytes) => {
                let entries = entries.0.get(..bytes).unwrap_or_default();
                if !each_number(entries, |number| visit(folder, number)) {
                    break Ok(false);
                }
            }
            Err(error) => break Err(error),
        }
    };
    _ = raw::close(folder);
    all
}

/// Reads entries by `getdents64`, and returns their size in bytes.
fn read(folder: i32, into: &mut [u8]) -> Result {
    let (at, count) = (into.as_mut_ptr() as usize, into.len());
    // SAFETY: room that lives as long as the call.
    unsafe { checked_call(libc::SYS_getdents64, [argument(folder), at, count, 0, 0, 0]) }
}

/// Visits each number that is a name among the entries of `getdents64`, while `visit` returns true;
/// returns whether it did for all.
fn each_number(entries: &[u8], mut visit: impl FnMut(i32) -> bool) -> bool {
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut rest = entries;
    while let Some(length) = rest.get(LENGTH..LENGTH + 2) {
        let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let Some(name) = rest.get(NAME..length) else { return true };
        if number(name).is_some_and(|number| !visit(number)) {
            return false;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    true
}

/// The number that a text, up to its zero, spells.
fn number(text: &[u8]) -> Option<i32> {
    let mut digits = text.iter().take_while(|byte| **byte != 0).peekable();
    digits.peek()?;
    digits.try_fold(0_i32, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.cast_signed())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Vec<u8> {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = vec![0; 16];
        bytes.extend((length as u16).to_ne_bytes());
        bytes.push(10);
        bytes.extend(name.bytes());
        bytes.resize(length, 0);
        bytes
    }

    fn numbers(entries: &[u8]) -> Vec<i32> {
        let mut found = vec![];
        each_number(entries, |number| {
            found.push(number);
            true
        });
        found
    }

    #[test]
    fn numbers_are_read_from_names() {
        let all = [".", "..", "0", "12", "1048575", "x7", "99999999999"].map(entry).concat();
        assert_eq!(numbers(&all), [0, 12, 1048575]);
        assert_eq!(numbers(&[]), []);
    }

    #[test]
    fn entries_that_are_cut_or_wrong_are_the_end() {
        let all = ["3", "4"].map(entry).concat();
        for length in 0..all.len() {
            assert!(numbers(&all[..length]).len() <= 1);
        }
        let mut without_length = entry("3");
        without_length[16..18].fill(0);
        assert_eq!(numbers(&without_length), []);
    }

    #[test]
    fn descriptors_of_this_process_are_among_them() {
        let mut found = vec![];
        let all = each_number_in(c"/proc/self/fd", |folder, number| {
            found.push((folder, number));
            true
        });
        assert_eq!(all, Ok(true));
        assert!(found.iter().any(|(folder, number)| folder == number), "{found:?}");
        assert_eq!(each_number_in(c"/proc/self/fd", |_, _| false), Ok(false));
        assert_eq!(each_number_in(c"/nowhere", |_, _| true), Err(libc::ENOENT));
    }
}
