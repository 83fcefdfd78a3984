// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another process's end of a connection, for what that would have to do and does not.

use crate::kernel::raw;
use crate::socket::connections::Stream;
use crate::socket::diagnosis;
use core::mem;
use core::sync::atomic::Ordering;

/// A copy of the peer's descriptor, if this process may have that (`pidfd_getfd(2)`). It is the one
/// of the process that the peer names, or else of the one that has claimed the connection: a child
/// that had it as well may be gone.
pub fn take(stream: &Stream) -> Option<i32> {
    let (named, descriptor) = stream.slot()?.peer_descriptor()?;
    let claimed = stream.shared.peer.load(Ordering::Relaxed);
    take_from(stream, named, descriptor).or_else(|| take_from(stream, claimed, descriptor))
}

/// A copy of the descriptor that a process calls by that number, if it is the other end of the
/// stream.
fn take_from(stream: &Stream, process: u32, descriptor: i32) -> Option<i32> {
    let process = i32::try_from(process).ok().filter(|process| *process > 0)?;
    let handle = raw::process_handle(process).ok()?;
    let taken = raw::descriptor_of(handle, descriptor);
    _ = raw::close(handle);
    let taken = taken.ok()?;
    if is_other_end(stream.local.descriptor.load(Ordering::Relaxed), taken) {
        return Some(taken);
    }
    _ = raw::close(taken);
    None
}

/// Whether each of two sockets has the other's name as that of its peer. Those of Unix sockets do
/// not tell, but the kernel does.
fn is_other_end(here: i32, there: i32) -> bool {
    let mut family = 0_i32;
    let known = raw::get_option(here, libc::SOL_SOCKET, libc::SO_DOMAIN, &mut family);
    if known.is_ok() && family == libc::AF_UNIX {
        return diagnosis::peer(here).is_some_and(|inode| raw::inode(there) == Ok(inode));
    }
    let name = |descriptor, of_peer| {
        // SAFETY: an address of zeroes is valid.
        let mut address: libc::sockaddr_storage = unsafe { mem::zeroed() };
        raw::address(descriptor, of_peer, &mut address).ok()?;
        Some(comparable(&address))
    };
    let matches = |one: Option<[u8; 32]>, other| one.is_some() && one == other;
    matches(name(here, false), name(there, true)) && matches(name(here, true), name(there, false))
}

/// The bytes of an address that tell it from others: the family, the port and the host.
fn comparable(address: &libc::sockaddr_storage) -> [u8; 32] {
    let mut bytes = [0; 32];
    let start: *const u8 = core::ptr::from_ref(address).cast();
    for (at, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: an address has more bytes than that.
        let place = unsafe { start.add(at) };
        // SAFETY: as above, and all of them are initialised.
        *byte = unsafe { place.read() };
    }
    bytes
}
