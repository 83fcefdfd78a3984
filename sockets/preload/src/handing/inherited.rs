// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that a program is begun with: those of the process that began it, or that became it.

use crate::handing;
use crate::kernel::raw;
use crate::socket::{opening, table};
use crate::waiting::epoll;

/// Sockets that are told from each other. Further ones stay in the kernel.
const SOCKETS: usize = 64;
/// Bytes of a folder that are read at once.
const BYTES: usize = 1024;

/// Room for entries of a folder.
#[repr(C, align(8))]
struct Entries([u8; BYTES]);

/// Descriptors that are looked at before all others. A program that has no socket among them is not
/// worth more: what it has is left to the kernel.
const FIRST: usize = 128;

/// When the program begins: adopts the stream sockets among its descriptors. Without `/proc` there
/// are none.
#[cold]
pub fn adopt_all() {
    if !is_worth_it() {
        return;
    }
    let Ok(folder) = raw::open_folder(c"/proc/self/fd") else { return };
    let mut adopted = Adopted { count: 0, sockets: [(0, 0); SOCKETS] };
    let mut entries = Entries([0; BYTES]);
    while let Ok(bytes @ 1..) = raw::entries(folder, &mut entries.0) {
        each_number(entries.0.get(..bytes).unwrap_or_default(), |descriptor| {
            if descriptor != folder {
                adopted.adopt(descriptor);
            }
        });
    }
    _ = raw::close(folder);
}

/// Whether there is a socket but the standard streams, as far as one call of the kernel tells.
fn is_worth_it() -> bool {
    let mut asked = [libc::pollfd { fd: -1, events: 0, revents: 0 }; FIRST];
    for (place, descriptor) in asked.iter_mut().zip(libc::STDERR_FILENO + 1..) {
        place.fd = descriptor;
    }
    let is_open = |one: &&libc::pollfd| one.revents & libc::POLLNVAL == 0;
    match raw::poll_at_once(&mut asked) {
        Ok(_) => asked.iter().filter(is_open).any(|one| raw::cookie(one.fd).is_some()),
        // There may be fewer descriptors than that.
        Err(_) => true,
    }
}

/// What was adopted so far.
struct Adopted {
    count: usize,
    /// What the kernel calls each socket, and its descriptor.
    sockets: [(u64, i32); SOCKETS],
}

impl Adopted {
    /// Adopts a descriptor, if it is of a stream socket. Several may be of the same one, as with
    /// programs that are given a connection as standard input and output.
    fn adopt(&mut self, descriptor: i32) {
        let Some(name) = raw::cookie(descriptor) else { return epoll::has_come(descriptor) };
        if table::get(descriptor).is_some() {
            return;
        }
        let mut known = self.sockets.iter().take(self.count);
        if let Some((_, first)) = known.find(|(other, _)| *other == name) {
            opening::note_same(*first, descriptor);
            return;
        }
        let Some(place) = self.sockets.get_mut(self.count) else { return };
        handing::adopt(descriptor);
        if table::get(descriptor).is_some() {
            *place = (name, descriptor);
            self.count += 1;
        }
    }
}

/// Calls `visit` with each number that is a name among the entries of a folder, as `getdents64`
/// gives them.
fn each_number(entries: &[u8], mut visit: impl FnMut(i32)) {
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut rest = entries;
    while let Some(length) = rest.get(LENGTH..LENGTH + 2) {
        let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let Some(name) = rest.get(NAME..length) else { return };
        if let Some(number) = number(name) {
            visit(number);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// The number that a text up to its zero is.
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
        each_number(entries, |number| found.push(number));
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
        let folder = raw::open_folder(c"/proc/self/fd").unwrap();
        let mut entries = Entries([0; BYTES]);
        let bytes = raw::entries(folder, &mut entries.0).unwrap();
        assert!(numbers(&entries.0[..bytes]).contains(&folder));
        raw::close(folder).unwrap();
    }
}
