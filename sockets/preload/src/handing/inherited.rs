// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that a program is begun with: those of the process that began it, or that became it.

use crate::handing;
use crate::kernel::{folder, raw};
use crate::socket::opening;
use crate::state::table;
use crate::waiting::epoll;

/// Sockets that are told from each other. Further ones stay in the kernel.
const SOCKETS: usize = 64;
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
    let mut adopted = Adopted { count: 0, sockets: [(0, 0); SOCKETS] };
    _ = folder::each_number_in(c"/proc/self/fd", |folder, descriptor| {
        if descriptor != folder {
            adopted.adopt(descriptor);
        }
        true
    });
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
