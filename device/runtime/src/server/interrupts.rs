// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SIGINT and SIGTERM as a request to stop: the program ends between two batches, after sending all
//! its output. A second signal ends the process immediately.

use std::io;
use std::mem::MaybeUninit;

/// Exit status of a process that a second signal ended.
const ENDED_AT_ONCE: i32 = 130;

/// Makes the first of these signals call `stop`, which requests the worker to end, and may wait for
/// that. Call this before other threads start, because they inherit the signal mask.
///
/// # Errors
/// No thread, or the kernel refuses the mask.
pub fn stop_on_interrupts(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: there is room for a set.
    unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has initialized it, which cannot fail.
    let mut signals = unsafe { signals.assume_init() };
    // SAFETY: the set is initialized.
    unsafe { libc::sigaddset(&mut signals, libc::SIGINT) };
    // SAFETY: as above.
    unsafe { libc::sigaddset(&mut signals, libc::SIGTERM) };
    // SAFETY: the set is initialized; a null pointer requests no previous mask.
    let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    let wait = move || {
        let mut signal = 0;
        // SAFETY: both live for the length of the call.
        unsafe { libc::sigwait(&signals, &mut signal) == 0 }
    };
    let take_signals = move || {
        if wait() {
            let asks = std::thread::Builder::new().name("stop".into());
            // If no thread can be started, only the second signal ends the process.
            let _ = asks.spawn(stop);
        }
        if wait() {
            std::process::exit(ENDED_AT_ONCE);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(take_signals).map(drop)
}
