// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals that end a long-running command.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor that becomes readable when a signal asks the process to end. Threads that are
/// started later do not get these signals either.
///
/// # Errors
/// Those of the system.
pub fn stop_signals() -> io::Result<OwnedFd> {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: the pointer is to writable memory of the size of a set.
    unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has initialised it, which cannot fail.
    let mut signals = unsafe { signals.assume_init() };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(&mut signals, libc::SIGINT) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(&mut signals, libc::SIGTERM) };
    // SAFETY: the set is initialised; null: the previous mask is not requested.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()) };
    // SAFETY: the set is initialised, and lives as long as the call.
    let descriptor = unsafe { libc::signalfd(-1, &signals, libc::SFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
