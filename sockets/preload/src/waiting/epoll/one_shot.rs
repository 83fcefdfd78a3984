// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registrations with `EPOLLONESHOT`, before the library reports them itself: only the kernel knows
//! whether it has reported them.
//!
//! A connection is often handled by one of several threads, which relies on no other thread getting
//! a report of it.

use crate::kernel::raw;
use crate::kernel::scratch::Scratch;

/// Bytes of a line that are read: `tfd: %8d events: %8x`, and a few more.
const LINE: usize = 48;
/// The event bits that the kernel keeps after it has reported a registration.
const KEPT: i32 = libc::EPOLLONESHOT | libc::EPOLLET | libc::EPOLLWAKEUP | libc::EPOLLEXCLUSIVE;

/// Whether the kernel has reported a one-shot registration of a descriptor in a set. False as well
/// if that cannot be read.
#[cold]
pub fn was_reported(set: i32, descriptor: i32) -> bool {
    let Ok(file) = raw::open_information(set) else { return false };
    let (mut lines, mut scratch) = (Lines::new(descriptor), Scratch::new());
    while lines.events.is_none() {
        let room = scratch.bytes();
        match raw::read(file, room.as_mut_ptr(), room.len()) {
            Ok(count @ 1..) => lines.read(room.get(..count).unwrap_or_default()),
            _ => break,
        }
    }
    _ = raw::close(file);
    lines.events.is_some_and(|events| events & !KEPT.cast_unsigned() == 0)
}

/// The lines of an `fdinfo` file, read in pieces.
struct Lines {
    descriptor: i32,
    line: [u8; LINE],
    length: usize,
    /// The events of the descriptor, once they are known.
    events: Option<u32>,
}

impl Lines {
    fn new(descriptor: i32) -> Self {
        Self { descriptor, line: [0; LINE], length: 0, events: None }
    }

    fn read(&mut self, piece: &[u8]) {
        for byte in piece {
            if *byte == b'\n' {
                let line = self.line.get(..self.length).unwrap_or_default();
                self.events = self.events.or(events_in(line, self.descriptor));
                self.length = 0;
            } else if let Some(place) = self.line.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }
}

/// The events that a line gives for a descriptor, if it does.
fn events_in(line: &[u8], descriptor: i32) -> Option<u32> {
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let is_it = words.next() == Some("tfd:") && words.next()?.parse() == Ok(descriptor);
    let has_events = is_it && words.next() == Some("events:");
    if has_events { u32::from_str_radix(words.next()?, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_was_told_once_is_known() {
        let (one, _other) = UnixStream::pair().unwrap();
        // SAFETY: no memory is passed.
        let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let events = (libc::EPOLLOUT | libc::EPOLLONESHOT | libc::EPOLLET) as u32;
        let event = libc::epoll_event { events, u64: 7 };
        raw::epoll_ctl(set, libc::EPOLL_CTL_ADD, one.as_raw_fd(), event).unwrap();
        assert!(!was_reported(set, one.as_raw_fd()));
        let mut room = [event; 4];
        assert_eq!(raw::epoll_ready(set, &mut room), Ok(1));
        assert!(was_reported(set, one.as_raw_fd()));
        assert!(!was_reported(set, set) && !was_reported(-1, 0));
        raw::epoll_ctl(set, libc::EPOLL_CTL_MOD, one.as_raw_fd(), event).unwrap();
        assert!(!was_reported(set, one.as_raw_fd()));
        raw::close(set).unwrap();
    }

    #[test]
    fn lines_may_come_in_any_pieces() {
        let text = "pos:\t0\ntfd:        4 events:        1 data: 5\ntfd: 12 events: 4000201f\n";
        for size in 1..text.len() {
            let mut lines = Lines::new(12);
            text.as_bytes().chunks(size).for_each(|piece| lines.read(piece));
            assert_eq!(lines.events, Some(0x4000_201f), "{size}");
        }
    }
}
