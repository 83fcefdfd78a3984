// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another process's end of a connection, for what that would have to do and does not.

use crate::kernel::raw;
use crate::state::connections::Stream;
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
    // The peer says which descriptor of which process it is. It is the one that the monitor saw, or
    // something is done with a socket that has nothing to do with this connection.
    let seen = stream.shared.peer_cookie.load(Ordering::Relaxed);
    if seen != 0 && raw::cookie(taken) == Some(seen) {
        return Some(taken);
    }
    _ = raw::close(taken);
    None
}
