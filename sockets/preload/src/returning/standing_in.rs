// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Using the peer's end of a connection, when the peer does not do its part.

use crate::kernel::raw;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::rest;

/// A copy of the peer's descriptor, if the kernel allows that (`pidfd_getfd(2)`). It is taken from
/// the process that the peer names, or else from the one that has claimed the connection: a child
/// that held it as well may have exited.
pub fn take(stream: &Stream) -> Option<i32> {
    let (named, descriptor) = stream.slot()?.peer_descriptor()?;
    let claimed = stream.shared.peer.load(Ordering::Relaxed);
    take_from(stream, named, descriptor).or_else(|| take_from(stream, claimed, descriptor))
}

/// A copy of that descriptor of a process, if it is the peer's end of the stream.
fn take_from(stream: &Stream, process: u32, descriptor: i32) -> Option<i32> {
    let process = i32::try_from(process).ok().filter(|process| *process > 0)?;
    let handle = raw::process_handle(process).ok()?;
    let taken = raw::descriptor_of(handle, descriptor);
    _ = raw::close(handle);
    let taken = taken.ok()?;
    // The peer names the process and the descriptor. Unless the socket is the one that the monitor
    // saw, it has nothing to do with this connection.
    let seen = stream.shared.peer_cookie.load(Ordering::Relaxed);
    if seen != 0 && raw::cookie(taken) == Some(seen) {
        return Some(taken);
    }
    _ = raw::close(taken);
    None
}

impl Stream {
    /// Closes the connection in the peer's place, if the peer has closed it and kept the stream, so
    /// that the kernel does on this side what it does after a real close.
    #[cold]
    pub fn ends_for_real(&self) {
        let Some(slot) = self.slot().filter(Slot::does_peer_rest) else { return };
        if slot.rest_is_over() == rest::DEAD {
            return;
        }
        if let Some(taken) = take(self) {
            raw::shutdown(taken, libc::SHUT_RDWR as usize);
            _ = raw::close(taken);
        }
    }
}
