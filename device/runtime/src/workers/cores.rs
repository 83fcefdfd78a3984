// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pinning of a thread to one processor core, so that its memory stays in that core's caches.

use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

/// Pins a thread to core `core`.
///
/// # Errors
/// A description of the reason, in most cases that the process may not run on that core.
pub(super) fn pin<T>(thread: &JoinHandle<T>, core: usize) -> Result<(), String> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(format!("there is no core {core}"));
    }
    // SAFETY: a set of cores is an array of numbers, for which all zeros is the empty set.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core is within the set.
    unsafe { libc::CPU_SET(core, &mut cores) };
    let id = thread.as_pthread_t();
    // SAFETY: the thread is not joined yet, and the set has the size passed.
    let failed = unsafe { libc::pthread_setaffinity_np(id, size_of_val(&cores), &cores) };
    match failed {
        0 => Ok(()),
        error => {
            let why = std::io::Error::from_raw_os_error(error);
            Err(format!("its thread cannot be pinned to core {core}: {why}"))
        }
    }
}
