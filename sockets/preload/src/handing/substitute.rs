// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another socket in the place of one whose peer is gone, and has left something in the ring: who
//! gets it next finds that in the kernel, and the end behind it.
//!
//! It is another connection, so its names are others. Nobody can put bytes into the one that there
//! was, whose other end is closed.

use crate::kernel::raw;
use crate::process;
use crate::returning::resending;
use crate::socket::closing;
use crate::state::connections::Stream;
use crate::state::table::{self, What};
use core::mem;
use core::sync::atomic::Ordering;

/// Puts one in the place of each descriptor that this process has of a socket. False: there is none
/// that takes all that was left, which stays where it is as far as it was not taken.
pub fn put(stream: &Stream) -> bool {
    if process::is_guest() {
        // The descriptors are the child's, and what is known of them is its parent's.
        return false;
    }
    let Ok((new, feeder)) = connected_pair() else { return false };
    let is_all = feed(stream, feeder);
    _ = raw::close(feeder);
    if is_all {
        if stream.shared.nonblocking.load(Ordering::Relaxed) {
            _ = raw::fcntl(new, libc::F_SETFL, libc::O_NONBLOCK);
        }
        replace(stream.number, new);
    }
    _ = raw::close(new);
    is_all
}

/// Sends what was left to where it is read from then on. False: not all of it.
fn feed(stream: &Stream, feeder: i32) -> bool {
    let shared = stream.shared;
    let held = shared.send.take(shared.is_alone()).zip(shared.receive.take(shared.is_alone()));
    let Some(((mut send, mut receive), slot)) = held.zip(stream.slot()) else { return false };
    stream.leave_ends(&mut send, &mut receive);
    let area = shared.receive.area.load(Ordering::Relaxed);
    // Room enough for a whole ring is what a connection of the kernel has.
    resending::send_for_peer(feeder, &slot, (area, receive.cursor())).1
}

/// Puts a socket in the place of all descriptors of another one.
fn replace(number: u32, new: i32) {
    table::each(|descriptor, what| {
        if what == What::Stream(number) {
            let flags = raw::fcntl(descriptor, libc::F_GETFD, 0).unwrap_or(0);
            let is_closed_on_exec = flags & libc::FD_CLOEXEC != 0;
            closing::is_closing(descriptor);
            _ = raw::duplicate(new, descriptor, is_closed_on_exec);
        }
    });
}

/// Two ends of a connection over the loopback interface.
fn connected_pair() -> raw::Result<(i32, i32)> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    let listener = raw::socket(libc::AF_INET, kind)?;
    let feeder = raw::socket(libc::AF_INET, kind);
    let pair = feeder.and_then(|feeder| {
        let accepted = raw::connect_through(listener, feeder);
        accepted.inspect_err(|_| _ = raw::close(feeder)).map(|accepted| (accepted, feeder))
    });
    _ = raw::close(listener);
    let (accepted, feeder) = pair?;
    if is_other_end(accepted, feeder) {
        return Ok((accepted, feeder));
    }
    // Somebody else was quicker to connect there.
    _ = raw::close(accepted);
    _ = raw::close(feeder);
    Err(libc::EAGAIN)
}

fn is_other_end(one: i32, other: i32) -> bool {
    let port = |descriptor, of_peer| {
        // SAFETY: an address of zeroes is valid.
        let mut address: libc::sockaddr_storage = unsafe { mem::zeroed() };
        raw::address(descriptor, of_peer, &mut address).ok()?;
        // SAFETY: both are sockets of this family.
        Some(unsafe { (*(&raw const address).cast::<libc::sockaddr_in>()).sin_port })
    };
    let found = port(one, true);
    found.is_some() && found == port(other, false)
}
