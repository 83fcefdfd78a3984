// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changing a registration whose descriptor was closed. The kernel keeps it for as long as another
//! descriptor of the socket is open, but changes it only by the closed number. So the socket gets
//! that number again for the call, if it is free.

use super::registration::Registration;
use crate::kernel::raw;
use crate::state::table;
use core::sync::atomic::Ordering;

/// Calls `act` while the socket of a registration has the number with which it was made. Does not
/// call it if another file has that number.
pub fn with_number<T: Default>(known: &Registration, act: impl FnOnce() -> T) -> T {
    let at = known.descriptor;
    let Some(stream) = known.stream().filter(|_| table::get(at).is_none()) else { return act() };
    // The lowest free number from there on: never one that is open.
    let from = stream.local.descriptor.load(Ordering::Relaxed);
    // It may be closing at this moment, with its stream kept for another connection.
    let own = raw::inode(from);
    if own.is_ok() && raw::inode(at) == own {
        return act();
    }
    let Ok(given) = raw::fcntl(from, libc::F_DUPFD_CLOEXEC, at) else { return act() };
    let result = if given == at { act() } else { T::default() };
    _ = raw::close(given);
    result
}
