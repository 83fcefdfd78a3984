// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another process's end of a connection, for what that would have to do and does not.

use crate::kernel::raw;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::rest;

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
    // The peer says which descriptor of which process it is. It is the one that the monitor saw, or
    // something is done with a socket that has nothing to do with this connection.
    let seen = stream.shared.peer_cookie.load(Ordering::Relaxed);
    if seen != 0 && raw::cookie(taken) == Some(seen) {
        return Some(taken);
    }
    _ = raw::close(taken);
    None
}

impl Stream {
    /// The peer has closed the connection and kept the stream; the kernel has to do on this side
    /// what it does where the peer has really closed it: so it is closed in the peer's place.
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
